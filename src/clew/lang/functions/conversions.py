"""Functions that convert from one type to another."""

from collections.abc import Callable, Sequence

from clew.diagnostics import ClewError
from clew.lang.arithmetic import fit
from clew.lang.conversion import to_date, to_decimal, to_integer, to_text
from clew.lang.day_patterns import DayPatternProblem, parts_of, read_day, reading, written_day
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import require
from clew.lang.functions.patterns import literal_text
from clew.lang.number_patterns import NumberPatternProblem, number_pattern, written_number
from clew.lang.typed import Value
from clew.lang.types import (
    DATE,
    INTEGER,
    INTEGER_AS_DECIMAL,
    PLAIN_DECIMAL,
    STRING,
    Kind,
    Type,
    decimal,
)


def _infer_to_string(arguments: Sequence[Argument]) -> Signature:
    if len(arguments) == 1:
        return Signature((arguments[0].type,), STRING)
    pattern, kind = literal_text(arguments, 1, "the pattern"), arguments[0].type.kind
    is_taken = kind in {Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.NULL}
    require(arguments[0], 0, is_taken, "a date, a timestamp or an exact number for a pattern")
    try:
        if pattern is not None and kind in {Kind.INTEGER, Kind.DECIMAL}:
            number_pattern(pattern)
        elif pattern is not None and kind is not Kind.NULL:
            parts_of(pattern)
    except (NumberPatternProblem, DayPatternProblem) as problem:
        raise SignatureProblem(str(problem), 1, problem.hint) from None
    return Signature((arguments[0].type, STRING), STRING)


def _to_string(signature: Signature) -> Callable[..., Value]:
    if len(signature.parameters) == 1:
        return to_text
    if signature.parameters[0].kind in {Kind.DATE, Kind.TIMESTAMP}:
        return written_day
    return lambda value, pattern: written_number(to_decimal(value), pattern)


def _infer_to_integer(arguments: Sequence[Argument]) -> Signature:
    require(arguments[0], 0, _reads_as_number(arguments[0].type), "a string or a number")
    return Signature((arguments[0].type,), INTEGER)


def _infer_to_decimal(arguments: Sequence[Argument]) -> Signature:
    source = arguments[0].type
    require(arguments[0], 0, _reads_as_number(source), "a string or a number")
    parameters = (source, INTEGER, INTEGER)[: len(arguments)]
    if len(arguments) == 1:
        return Signature(parameters, _natural_decimal(source))
    digits = [_constant(argument, index) for index, argument in enumerate(arguments[1:], start=1)]
    try:
        return Signature(parameters, decimal(digits[0], digits[1] if len(digits) > 1 else 0))
    except ValueError as error:
        raise SignatureProblem(str(error), 1, "write for example TO_DECIMAL(x, 18, 2)") from None


def _natural_decimal(source: Type) -> Type:
    match source.kind:
        case Kind.DECIMAL:
            return source
        case Kind.INTEGER | Kind.BOOLEAN:
            return INTEGER_AS_DECIMAL
        case _:
            return PLAIN_DECIMAL


def _constant(argument: Argument, index: int) -> int:
    if argument.type.kind is Kind.INTEGER and isinstance(argument.constant, int):
        return argument.constant
    problem = "precision and scale must be literal whole numbers"
    raise SignatureProblem(problem, index, "write for example TO_DECIMAL(x, 18, 2)")


def _reads_as_number(type_: Type) -> bool:
    return type_.is_numeric or type_.kind in {Kind.STRING, Kind.NULL, Kind.BOOLEAN}


def _infer_to_date(arguments: Sequence[Argument]) -> Signature:
    source = arguments[0].type
    if len(arguments) > 1:
        pattern = literal_text(arguments, 1, "the pattern")
        require(arguments[0], 0, source.kind in {Kind.STRING, Kind.NULL}, "a string for a pattern")
        try:
            reading(pattern or "yyyy-MM-dd")
        except DayPatternProblem as problem:
            raise SignatureProblem(str(problem), 1, problem.hint) from None
        return Signature((STRING, STRING), DATE)
    fits = source.kind in {Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.NULL}
    require(arguments[0], 0, fits, "a string, a date or a timestamp")
    return Signature((source,), DATE)


def _to_date(signature: Signature) -> Callable[..., Value]:
    return to_date if len(signature.parameters) == 1 else read_day


def _or_null(bind: Callable[[Signature], Callable[..., Value]]) -> Callable[[Signature], Callable[..., Value]]:
    """The same conversion, but NULL for what it refuses."""

    def bind_trying(signature: Signature) -> Callable[..., Value]:
        convert = bind(signature)

        def try_to_convert(*arguments: Value) -> Value:
            try:
                return convert(*arguments)
            except ClewError:
                return None

        return try_to_convert

    return bind_trying


def _to_decimal(signature: Signature) -> Callable[..., Value]:
    return lambda value, *_digits: fit(to_decimal(value), signature.result)


_PATTERN = Parameter("pattern", "a literal string", optional=True)


_TO_STRING = Function(
    "TO_STRING",
    Family.CONVERSION,
    (Parameter("value", "any type"), _PATTERN),
    "string",
    NullRule.PROPAGATES,
    "A value as a string: decimals with all digits of their scale, dates as YYYY-MM-DD. With a pattern, a date, "
    "a timestamp or an exact number in that form. See [patterns](#patterns).",
    (
        Example("TO_STRING(12.50)", '"12.50"'),
        Example('TO_STRING(DATE("2026-01-31"))', '"2026-01-31"'),
        Example('TO_STRING(DATE("2026-01-31"), "dd.MM.yyyy")', '"31.01.2026"'),
        Example('TO_STRING(1234567.891, "#,##0.00")', '"1,234,567.89"'),
    ),
    _infer_to_string,
    _to_string,
)


_TO_INTEGER = Function(
    "TO_INTEGER",
    Family.CONVERSION,
    (Parameter("value", "string, number or boolean"),),
    "integer",
    NullRule.PROPAGATES,
    "A whole number. Numbers are rounded half-up; a string that is not a whole number is an error.",
    (Example('TO_INTEGER(" 42 ")', "42"), Example("TO_INTEGER(2.5)", "3")),
    _infer_to_integer,
    lambda _signature: to_integer,
)


_TO_DECIMAL = Function(
    "TO_DECIMAL",
    Family.CONVERSION,
    (
        Parameter("value", "string, number or boolean"),
        Parameter("precision", "a literal whole number", optional=True),
        Parameter("scale", "a literal whole number", optional=True),
    ),
    "decimal",
    NullRule.PROPAGATES,
    "An exact number, rounded half-up to the scale; a string that is not a number is an error. "
    "Without precision a text becomes decimal(38,18), and a number keeps its digits.",
    (Example('TO_DECIMAL("12.345", 18, 2)', "12.35"), Example("TO_DECIMAL(7)", "7")),
    _infer_to_decimal,
    _to_decimal,
)


_TO_DATE = Function(
    "TO_DATE",
    Family.CONVERSION,
    (Parameter("value", "string, date or timestamp"), _PATTERN),
    "date",
    NullRule.PROPAGATES,
    "A day; a string that is not a date is an error. Strings are YYYY-MM-DD, or of the pattern. "
    "See [patterns](#patterns).",
    (
        Example('TO_DATE("2026-01-31")', "2026-01-31"),
        Example('TO_DATE("31-Jan-2026", "dd-MMM-yyyy")', "2026-01-31"),
    ),
    _infer_to_date,
    _to_date,
)


def _trying(name: str, function: Function, *examples: tuple[str, str]) -> Function:
    return Function(
        name,
        Family.CONVERSION,
        function.parameters,
        function.returns,
        NullRule.PROPAGATES,
        f"As {function.name}, but NULL where that is an error.",
        tuple(Example(expression, result) for expression, result in examples),
        function.infer,
        _or_null(function.bind),
    )


CONVERSIONS = (
    _TO_STRING,
    _TO_INTEGER,
    _TO_DECIMAL,
    _TO_DATE,
    _trying("TRY_TO_INTEGER", _TO_INTEGER, ('TRY_TO_INTEGER("4O")', "NULL"), ('TRY_TO_INTEGER("40")', "40")),
    _trying("TRY_TO_DECIMAL", _TO_DECIMAL, ('TRY_TO_DECIMAL("n/a", 18, 2)', "NULL"), ("TRY_TO_DECIMAL(7)", "7")),
    _trying(
        "TRY_TO_DATE",
        _TO_DATE,
        ('TRY_TO_DATE("2026-02-30")', "NULL"),
        ('TRY_TO_DATE("31/01/26", "dd/MM/yy")', "2026-01-31"),
    ),
)
