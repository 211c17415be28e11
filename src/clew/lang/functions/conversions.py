"""Functions that convert from one type to another."""

from collections.abc import Callable, Sequence

from clew.lang.arithmetic import fit
from clew.lang.conversion import to_date, to_decimal, to_integer, to_text
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
    return Signature((arguments[0].type,), STRING)


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
    fits = source.kind in {Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.NULL}
    require(arguments[0], 0, fits, "a string, a date or a timestamp")
    return Signature((source,), DATE)


def _to_decimal(signature: Signature) -> Callable[..., Value]:
    return lambda value, *_digits: fit(to_decimal(value), signature.result)


CONVERSIONS = (
    Function(
        "TO_STRING",
        Family.CONVERSION,
        (Parameter("value", "any type"),),
        "string",
        NullRule.PROPAGATES,
        "A value as a string: decimals with all digits of their scale, dates as YYYY-MM-DD.",
        (Example("TO_STRING(12.50)", '"12.50"'), Example('TO_STRING(DATE("2026-01-31"))', '"2026-01-31"')),
        _infer_to_string,
        lambda _signature: to_text,
    ),
    Function(
        "TO_INTEGER",
        Family.CONVERSION,
        (Parameter("value", "string, number or boolean"),),
        "integer",
        NullRule.PROPAGATES,
        "A whole number. Numbers are rounded half-up; a string that is not a whole number is an error.",
        (Example('TO_INTEGER(" 42 ")', "42"), Example("TO_INTEGER(2.5)", "3")),
        _infer_to_integer,
        lambda _signature: to_integer,
    ),
    Function(
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
    ),
    Function(
        "TO_DATE",
        Family.CONVERSION,
        (Parameter("value", "string YYYY-MM-DD, date or timestamp"),),
        "date",
        NullRule.PROPAGATES,
        "A day; a string that is not a date is an error.",
        (Example('TO_DATE("2026-01-31")', "2026-01-31"),),
        _infer_to_date,
        lambda _signature: to_date,
    ),
)
