"""What can be wrong with an expression."""

from clew.diagnostics.diagnostic import Code

SYNTAX_ERROR = Code(
    "SyntaxError",
    "{problem}",
    "The text is not an expression of the language, or the file is not YAML.",
    "correct the text at the place shown",
)
UNKNOWN_COLUMN = Code(
    "UnknownColumn",
    'no column "{column}" in {table}',
    "A reference names a column that does not exist at this point of the pipeline.",
    "`clew plan` shows the columns that exist before each step",
)
UNKNOWN_TABLE = Code(
    "UnknownTable",
    'no table or join alias "{table}" here',
    "A reference `table.column` names neither the project's table nor a join alias of the same operation.",
    "use the name of the input dataset's table, or an alias that this operation's joins define",
)
UNKNOWN_PARAMETER = Code(
    "UnknownParameter",
    'no parameter "{name}"',
    "An expression reads, or a run is given, a parameter that the project does not have.",
    "declare it under `parameters` of the project",
)
AMBIGUOUS_COLUMN = Code(
    "AmbiguousColumn",
    '"{column}" could be {candidates}',
    "A bare column name exists in more than one of the tables that the expression can see.",
    "put the table or alias in front of it",
)
UNKNOWN_FUNCTION = Code(
    "UnknownFunction",
    'no function "{name}"',
    "The language has no function of this name.",
    "docs/reference/functions.md lists all functions",
)
WRONG_ARGUMENT_COUNT = Code(
    "WrongArgumentCount",
    "{function} takes {expected}, got {actual}",
    "A function is called with too few or too many arguments.",
    "docs/reference/functions.md shows how each function is called",
)
TYPE_MISMATCH = Code(
    "TypeMismatch",
    "{problem}",
    "The value has the wrong type for this place.",
    "convert it with TO_STRING, TO_INTEGER, TO_DECIMAL or TO_DATE",
)
AGGREGATE_NOT_ALLOWED = Code(
    "AggregateNotAllowed",
    "{function} is an aggregate function and is not allowed {place}",
    "An aggregate function is used outside the aggregations of `aggregate` and `append`, or inside another one.",
    "use aggregate functions only in the aggregations of an aggregate or append operation",
)
AGGREGATE_REQUIRED = Code(
    "AggregateRequired",
    '"{column}" is used outside an aggregate function',
    "An aggregation uses a column that is neither grouped by nor inside an aggregate function.",
    "put it inside SUM, COUNT, AVG, MIN_AGG or MAX_AGG, or add it to group_by",
)
VALUE_OUT_OF_RANGE = Code(
    "ValueOutOfRange",
    "{problem}",
    "The value does not fit the target type or cannot be converted to it.",
    "widen the type of the column, or correct the value",
)

LANGUAGE_CODES = (
    SYNTAX_ERROR,
    UNKNOWN_COLUMN,
    UNKNOWN_TABLE,
    UNKNOWN_PARAMETER,
    AMBIGUOUS_COLUMN,
    UNKNOWN_FUNCTION,
    WRONG_ARGUMENT_COUNT,
    TYPE_MISMATCH,
    AGGREGATE_NOT_ALLOWED,
    AGGREGATE_REQUIRED,
    VALUE_OUT_OF_RANGE,
)
