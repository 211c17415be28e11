"""What can be wrong with captures and postlude jobs."""

from clew.diagnostics.diagnostic import Code, Nature

UNKNOWN_BREAKPOINT = Code(
    "UnknownBreakpoint",
    'no breakpoint "{name}" in {project}',
    "The plan has no such breakpoint, or several breakpoints share the label.",
    "`clew plan PROJECT --breakpoints` lists them",
    Nature.NOT_FOUND,
)
CAPTURE_NOT_ALLOWED = Code(
    "CaptureNotAllowed",
    "{problem}",
    "The environment does not allow what a capture or postlude job asks for: its mode, store or time to live, or a "
    "personal or secret column. The run does not start.",
    "stay within the environment's `captures` and `sinks` in clew.yaml, or change them",
)
NO_MATCHING_COLUMN = Code(
    "NoMatchingColumn",
    'no column at {breakpoint} is called "{pattern}", or matches it',
    "The rows at the breakpoint have no column that matches this name or pattern.",
    "`clew plan PROJECT` shows the columns after each step",
)
CAPTURE_NOT_FOUND = Code(
    "CaptureNotFound",
    'no capture "{capture_id}"',
    "No capture has this id. Capture ids must be given in full.",
    "`clew captures` lists them",
    Nature.NOT_FOUND,
)
CAPTURE_EXPIRED = Code(
    "CaptureExpired",
    "capture {capture_id} expired on {when}",
    "The time to live of the capture is over; its rows are deleted or will be soon.",
    "run the project again with a longer `ttl_days`",
    Nature.NOT_FOUND,
)
CAPTURE_NOT_READY = Code(
    "CaptureNotReady",
    "capture {capture_id} is {status}{because}",
    "The capture has no rows: it is still waiting, failed, was dropped, or keeps only statistics.",
    "`clew capture show ID` shows its status; `clew worker` processes waiting captures",
)
CAPTURE_DAMAGED = Code(
    "CaptureDamaged",
    "capture {capture_id} is damaged: {problem}",
    "Files of the capture are missing or have changed.",
    "restore the files, or capture again",
)
CAPTURE_ACCESS_DENIED = Code(
    "CaptureAccessDenied",
    "{problem}",
    "The role or tenant of the caller may not read these rows.",
    "ask someone whose role may read them",
)
NO_COMMON_KEY = Code(
    "NoCommonKey",
    "{problem}",
    "Captures of different runs are compared by key columns that both of them have.",
    "name the key columns with --key",
)
BUDGET_EXCEEDED = Code(
    "BudgetExceeded",
    "{problem}",
    "A postlude job ran out of time, or would write more rows or bytes than its budget allows.",
    "raise the `budget` of the job, or let it do less",
)
CAPTURE_ABANDONED = Code(
    "CaptureAbandoned",
    "abandoned after {attempts} attempts{because}",
    "A capture or postlude job failed or lost its worker on every allowed attempt.",
    "check the workers, then run the project again",
)

CAPTURE_CODES = (
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
