"""What can be wrong when a trace is read or a value explained."""

from clew.diagnostics.diagnostic import Code, Nature

ROW_NOT_FOUND = Code(
    "RowNotFound",
    "{problem}",
    "The run has no row with this id, or the row did not exist yet at this step. Row ids belong to one run: the same "
    "source row has a different id in another run.",
    "find rows by their values, with --where",
    Nature.NOT_FOUND,
)
STEP_OUT_OF_RANGE = Code(
    "StepOutOfRange",
    "{problem} {steps}",
    "The plan of the run has no such step, or the run ended before it. Step 0 means the rows as loaded.",
    "use one of the steps listed in the message",
    Nature.NOT_FOUND,
)
AMBIGUOUS_ROW = Code(
    "AmbiguousRow",
    "{count} rows match, where one is needed: {examples}",
    "The condition matches several rows, or none, where exactly one is needed.",
    "narrow the condition to one row, or give the row id",
    Nature.USAGE,
)
COLUMN_NOT_VISIBLE = Code(
    "ColumnNotVisible",
    "the role {role} may not {purpose} {column}, which is {privacy} and {sight} for it",
    "The environment does not show the column to this role as it is. Filtering, sorting, searching, statistics and "
    "explanations by it would give its values away.",
    "leave the column out, or ask someone whose role sees it; `privacy` in clew.yaml says which roles do",
    Nature.USAGE,
)
NOT_AN_OUTPUT = Code(
    "NotAnOutput",
    "{problem}",
    "The step does not write an output, or the plan has no outputs.",
    "`clew plan` shows which steps write outputs",
    Nature.USAGE,
)
TABLE_VERSION_GONE = Code(
    "TableVersionGone",
    "{file} can no longer be read: {problem}",
    "The run read a version of a Delta or Iceberg table where it lies, without a copy, and a file of that version is "
    "gone or is not the same: someone has vacuumed the table, expired the snapshot, or changed the file. Clew "
    "reads nothing from it, so that it never shows a wrong value.",
    "restore the file; to be independent of the table, set `tables: {inputs: copy}` in the environment and run again",
)
DAMAGED_TRACE = Code(
    "DamagedTrace",
    "{file} is damaged: {problem}",
    "A file of the run is missing, or its size or content has changed. Clew reads nothing from it, so that it never "
    "shows a wrong value.",
    "restore the file from a backup, or run again",
)
FORGED_HISTORY = Code(
    "ForgedHistory",
    "run {run_id} is not what was recorded: {problem}",
    "The events of a run, what it was asked for, or its saved state differ from what was sealed when it was written. "
    "Clew answers nothing from such a run, so that it never shows a value that someone has planted.",
    "`clew verify RUN` lists everything that differs; restore the state store from a backup, or run again",
)
FORGED_RECORD = Code(
    "ForgedRecord",
    "{kind} {name} is not what was recorded",
    "A row of the state store is not what the ledger vouches for: it was edited, or not written by Clew. Nothing rests "
    "on such a row: no run reads or builds on it, no one signs in with it, and no capture is shown.",
    "`clew verify --all` lists everything that differs; restore the state store from a backup",
)
INCOMPLETE_TRACE = Code(
    "IncompleteTrace",
    "{problem}",
    "A part that the answer needs is not in the history of the run.",
    "run again; if that does not help, report this with the events of the run",
)
TRACE_INTEGRITY_ERROR = Code(
    "TraceIntegrityError",
    "{problem}",
    "The parts of the run contradict each other: two of them created the same row, or changed it in the same step.",
    "report this with the events of the run",
)
NEWER_TRACE_LAYOUT = Code(
    "NewerTraceLayout",
    "{file} has layout version {found}; this version of Clew reads up to {known}",
    "A newer version of Clew wrote the trace.",
    "install that version here, too",
)
INVALID_PAGE = Code(
    "InvalidPage",
    "{problem}",
    "The page size is not positive, or the page starts after a row id of another run.",
    "ask for 1 or more rows, after a row id from the previous page",
    Nature.USAGE,
)
EVIDENCE_TOO_LARGE = Code(
    "EvidenceTooLarge",
    "the evidence would be too large to check: {problem}",
    "An evidence pack leaves nothing out, and there is too much behind the values that were asked for.",
    "ask for one value, or for a summary that fewer rows are behind",
)

RUN_NOT_FINISHED = Code(
    "RunNotFinished",
    "the run {run_id} is {status}: its trace can be read once it has ended",
    "The run is still in progress.",
    "wait until the run has ended; `clew show` shows its progress",
)

TRACE_CODES = (
    RUN_NOT_FINISHED,
    ROW_NOT_FOUND,
    STEP_OUT_OF_RANGE,
    AMBIGUOUS_ROW,
    COLUMN_NOT_VISIBLE,
    NOT_AN_OUTPUT,
    TABLE_VERSION_GONE,
    DAMAGED_TRACE,
    FORGED_HISTORY,
    FORGED_RECORD,
    INCOMPLETE_TRACE,
    TRACE_INTEGRITY_ERROR,
    NEWER_TRACE_LAYOUT,
    INVALID_PAGE,
    EVIDENCE_TOO_LARGE,
)
