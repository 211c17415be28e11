"""What can be wrong with captures and postlude jobs."""

from clew.diagnostics.diagnostic import Code, Nature

UNKNOWN_BREAKPOINT = Code(
    "UnknownBreakpoint",
    'no breakpoint "{name}" in {project}',
    "A capture is asked for at a breakpoint that the plan does not have, or by a label that several breakpoints have.",
    "`clew plan PROJECT --breakpoints` lists them",
    Nature.NOT_FOUND,
)
CAPTURE_NOT_ALLOWED = Code(
    "CaptureNotAllowed",
    "{problem}",
    "The environment does not allow what a capture or a postlude job asks for: its mode, its store, its time to live, "
    "or a column that is personal or secret. The run is not started.",
    "ask for what the environment's `captures` and `sinks` in clew.yaml allow, or change them",
)
NO_MATCHING_COLUMN = Code(
    "NoMatchingColumn",
    'no column at {breakpoint} is called "{pattern}", or matches it',
    "A capture names a column, or a pattern of columns, that the rows at its breakpoint do not have.",
    "`clew plan PROJECT` shows the columns after each step",
)
CAPTURE_NOT_FOUND = Code(
    "CaptureNotFound",
    'no capture "{capture_id}"',
    "There is no capture with this id. Ids have to be given in full.",
    "`clew captures` lists them",
    Nature.NOT_FOUND,
)
CAPTURE_EXPIRED = Code(
    "CaptureExpired",
    "capture {capture_id} expired on {when}",
    "A capture has outlived its time to live; its rows are gone or are about to be.",
    "run the project again, with a capture that lives longer (`ttl_days`)",
    Nature.NOT_FOUND,
)
CAPTURE_NOT_READY = Code(
    "CaptureNotReady",
    "capture {capture_id} is {status}{because}",
    "A capture has no rows to show: it still waits, or it failed, or it was dropped, or it kept statistics only.",
    "`clew capture show ID` says where it stands; `clew worker` does those that wait",
)
CAPTURE_DAMAGED = Code(
    "CaptureDamaged",
    "capture {capture_id} is damaged: {problem}",
    "Files of a capture are missing, or are not what was written.",
    "restore them, or capture again",
)
CAPTURE_ACCESS_DENIED = Code(
    "CaptureAccessDenied",
    "{problem}",
    "Somebody asks for rows that their role, or their tenant, may not read.",
    "ask somebody whose role may",
)
NO_COMMON_KEY = Code(
    "NoCommonKey",
    "{problem}",
    "Two captures of different runs can only be compared by columns that tell rows apart, and that both have.",
    "name such columns with --key",
)
BUDGET_EXCEEDED = Code(
    "BudgetExceeded",
    "{problem}",
    "A postlude job has used up its time, or would write more rows or bytes than its budget allows.",
    "give the job more under `budget`, or let it do less",
)
CAPTURE_ABANDONED = Code(
    "CaptureAbandoned",
    "given up after {attempts} attempts{because}",
    "A capture or postlude job failed, or lost its worker, as often as the environment tries.",
    "look at what happened to the workers, then run the project again",
)

DEBUG_CODES = (
    UNKNOWN_BREAKPOINT,
    CAPTURE_NOT_ALLOWED,
    NO_MATCHING_COLUMN,
    CAPTURE_NOT_FOUND,
    CAPTURE_EXPIRED,
    CAPTURE_NOT_READY,
    CAPTURE_DAMAGED,
    CAPTURE_ACCESS_DENIED,
    NO_COMMON_KEY,
    BUDGET_EXCEEDED,
    CAPTURE_ABANDONED,
)
