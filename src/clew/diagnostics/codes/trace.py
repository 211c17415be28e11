"""What can be wrong with reading a trace, and with asking why."""

from clew.diagnostics.diagnostic import Code, Nature

ROW_NOT_FOUND = Code(
    "RowNotFound",
    "{problem}",
    "No row of the run has this row id, or it did not exist yet at the step that was asked for. Row ids belong to one "
    "run: the same row of the source has another id in another run.",
    "find rows by their values, with --where",
    Nature.NOT_FOUND,
)
STEP_OUT_OF_RANGE = Code(
    "StepOutOfRange",
    "the run has no step {seq}; its steps are {steps}",
    "A step was asked for that the plan of the run does not have. 0 stands for the rows as they were loaded.",
    "use one of the steps that the message lists",
    Nature.NOT_FOUND,
)
AMBIGUOUS_ROW = Code(
    "AmbiguousRow",
    "{count} rows match, where one is needed: {examples}",
    "A condition that should name one row matches several, or one that should name a row matches none.",
    "add to the condition until it names one row, or give the row id",
    Nature.USAGE,
)
NOT_AN_OUTPUT = Code(
    "NotAnOutput",
    "{problem}",
    "Why a row is not in an output was asked of a step that writes none, or of a plan without outputs.",
    "`clew plan` shows which steps write outputs",
    Nature.USAGE,
)
DAMAGED_TRACE = Code(
    "DamagedTrace",
    "{file} is damaged: {problem}",
    "A file of a run is missing, shorter or longer than it was written, or does not hold what it should. Nothing is "
    "read from it, so that no wrong value is shown.",
    "restore the file from a backup, or run again",
)
INCOMPLETE_TRACE = Code(
    "IncompleteTrace",
    "{problem}",
    "A part of a run that is needed to answer is not among those that its history names.",
    "run again; if that does not help, report this with the events of the run",
)
TRACE_INTEGRITY_ERROR = Code(
    "TraceIntegrityError",
    "{problem}",
    "The parts of a run contradict each other: two of them claim to have created the same row, or changed it in the "
    "same step.",
    "report this with the events of the run",
)
NEWER_TRACE_LAYOUT = Code(
    "NewerTraceLayout",
    "{file} has layout version {found}; this version of Clew reads up to {known}",
    "A newer Clew wrote the trace.",
    "install the newer version here too",
)
INVALID_PAGE = Code(
    "InvalidPage",
    "{problem}",
    "A page of results was asked for with a size that is not positive, or after a row id of another run.",
    "ask for 1 or more rows, after a row id that a page before this one gave",
    Nature.USAGE,
)

RUN_NOT_FINISHED = Code(
    "RunNotFinished",
    "the run {run_id} is {status}: its trace can be read when it has ended",
    "The trace of a run that is still going on was asked for.",
    "wait until the run has ended; `clew show` tells how far it is",
)

TRACE_CODES = (
    RUN_NOT_FINISHED,
    ROW_NOT_FOUND,
    STEP_OUT_OF_RANGE,
    AMBIGUOUS_ROW,
    NOT_AN_OUTPUT,
    DAMAGED_TRACE,
    INCOMPLETE_TRACE,
    TRACE_INTEGRITY_ERROR,
    NEWER_TRACE_LAYOUT,
    INVALID_PAGE,
)
