"""What can be wrong with a project as a whole: found by the compiler."""

from clew.diagnostics.diagnostic import Code

UNKNOWN_SELECTOR = Code(
    "UnknownSelector",
    'no selector "{name}" in this project',
    "`{{NAME}}` names a selector that the project's `selectors` do not define.",
    "define it under `selectors`",
)
SELECTOR_CYCLE = Code(
    "SelectorCycle",
    "the selector refers to itself: {path}",
    "Named selectors refer to each other in a cycle.",
    "break the cycle",
)
DUPLICATE_SEQ = Code(
    "DuplicateSeq",
    'seq {seq} is already taken by "{first}" in line {first_line}',
    "Two operations of one project have the same seq.",
    "give each operation a different seq; gaps are allowed",
)
APPEND_COLUMN_MISMATCH = Code(
    "AppendColumnMismatch",
    "{problem}",
    "Appended rows have a column that the working dataset lacks, or has with a different type.",
    "add the column with an earlier update, or aggregate the source to existing columns",
)
DUPLICATE_ALIAS = Code(
    "DuplicateAlias",
    'the alias "{alias}" is already taken{where}',
    "Two joins of one operation share an alias, an alias is the name of the project's own table, or two uses of "
    "fragments in one place share theirs.",
    "choose another alias",
)
INVALID_LABEL = Code(
    "InvalidLabel",
    '"{label}" cannot be a {what}',
    "A breakpoint label or a fragment alias has characters other than letters, digits, '.', '_' and '-'.",
    "use letters, digits, '.', '_' and '-' only",
)
DUPLICATE_BREAKPOINT = Code(
    "DuplicateBreakpoint",
    'the breakpoint "{name}" exists already, at step {first_seq}',
    "Two operations of one plan have the same qualified breakpoint name.",
    "give each breakpoint its own label",
)
INVALID_CONTROL = Code(
    "InvalidControl",
    'the control total "{name}" {problem}',
    "A control total cannot be added up: it is not a number, may fail for a row, or no output comes after its columns "
    "are set.",
    "name a column with numbers, or set one with an update and name that",
)
INVALID_CHECK = Code(
    "InvalidCheck",
    'the check "{name}" {problem}',
    "A check cannot be made: it looks at an operation that does not exist, is not a condition, cannot quarantine, or "
    "is a schema check that the columns of the project fail.",
    "correct the check; docs/checks.md describes every kind",
)
MISSING_PARAMETER = Code(
    "MissingParameter",
    'no value is given for the parameter "{name}"',
    "A parameter of the project has no default, and the run gives it no value.",
    "give a value with the run, in the environment, or as the default of the parameter",
)
INVALID_PARAMETER = Code(
    "InvalidParameter",
    'the parameter "{name}": {problem}',
    "A value is not of the type of its parameter, or is not one of those that are allowed.",
    "give another value",
)
TASK_NOT_ALLOWED = Code(
    "TaskNotAllowed",
    '"{task}" is not a task of a postlude job',
    "An `after_request` job uses a task other than filter, take, sample, project, describe, histogram, topk, "
    "serialize_rowset, emit_training_log and emit_capture_store.",
    "use one of the tasks listed in docs/reference/errors.md",
)
SINK_NOT_ALLOWED = Code(
    "SinkNotAllowed",
    'the sink "{sink}" is not allowed{where}',
    "A job emits to a sink or store that the environment does not allow.",
    "allow it under the environment's `sinks` in clew.yaml, or emit elsewhere",
)
UNKNOWN_CAPABILITY = Code(
    "UnknownCapability",
    'this engine does not have the capability "{capability}"',
    "The plan needs a feature that this engine lacks. The run is rejected before it starts.",
    "use an engine that supports it, or remove the feature from the project",
)

UNREADABLE_PLAN = Code(
    "UnreadablePlan",
    "the plan cannot be read: {problem}",
    "The stored plan is damaged, or was written by a newer version of Clew.",
    "compile the project again, or use the version of Clew that wrote it",
)
REGISTRATION_CONFLICT = Code(
    "RegistrationConflict",
    "{problem}",
    "Two projects register the same dataset, a registered dataset does not have the columns that its definition "
    "declares or its definition names a resolver, projects depend on each other's output in a cycle, or a run would "
    "register a month whose "
    "quarter or year is already registered.",
    "let one project register each dataset, with the columns that its definition declares",
)
DATASET_CONFLICT = Code(
    "DatasetConflict",
    "{problem}",
    "A version of a registered dataset, or the current definition of a dataset, lacks columns that a project uses, has "
    "different types for them, or has another temporal mode.",
    "let the project that registers it write these columns again, or adapt and activate the project that uses them; "
    "`dataset_version` pins a version that fits",
)

PROJECT_CODES = (
    UNKNOWN_SELECTOR,
    SELECTOR_CYCLE,
    DUPLICATE_SEQ,
    APPEND_COLUMN_MISMATCH,
    DUPLICATE_ALIAS,
    INVALID_LABEL,
    DUPLICATE_BREAKPOINT,
    INVALID_CONTROL,
    INVALID_CHECK,
    MISSING_PARAMETER,
    INVALID_PARAMETER,
    TASK_NOT_ALLOWED,
    SINK_NOT_ALLOWED,
    UNKNOWN_CAPABILITY,
    UNREADABLE_PLAN,
    REGISTRATION_CONFLICT,
    DATASET_CONFLICT,
)
