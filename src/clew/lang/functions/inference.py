"""Signatures from the types of arguments: the rules that several functions share."""

from collections.abc import Callable, Sequence

from clew.lang.conversion import converts_unasked
from clew.lang.functions.declaration import Argument, Signature, SignatureProblem
from clew.lang.types import BOOLEAN, DOUBLE, NULL, Kind, Type, as_decimal, common_type

Infer = Callable[[Sequence[Argument]], Signature]


def fixed(*parameters: Type, returns: Type) -> Infer:
    """A function that takes exactly these types, or the first few of them where its arity allows that."""

    def infer(arguments: Sequence[Argument]) -> Signature:
        taken = tuple(parameters[index] for index in range(len(arguments)))
        for index, (argument, parameter) in enumerate(zip(arguments, taken, strict=True)):
            require(argument, index, converts_unasked(argument.type, parameter), _in_words(parameter))
        return Signature(taken, returns)

    return infer


def repeated(parameter: Type, *, returns: Type) -> Infer:
    """A function that takes any number of arguments of one type."""

    def infer(arguments: Sequence[Argument]) -> Signature:
        for index, argument in enumerate(arguments):
            require(argument, index, converts_unasked(argument.type, parameter), _in_words(parameter))
        return Signature((parameter,) * len(arguments), returns)

    return infer


def require(argument: Argument, index: int, holds: bool, expected: str) -> None:
    """Complain about an argument unless something holds."""
    if not holds:
        raise SignatureProblem(f"expected {expected}, this is {_in_words(argument.type)}", index)


def numeric(argument: Argument, index: int) -> Type:
    """The type of a numeric argument; NULL counts as an integer."""
    require(argument, index, argument.type.is_numeric or argument.type.kind is Kind.NULL, "a number")
    return argument.type


def same_type(arguments: Sequence[Argument], first: int = 0) -> Type:
    """The one type to which all arguments from `first` on convert."""
    result = NULL
    for index, argument in enumerate(arguments[first:], start=first):
        common = common_type(result, argument.type)
        if common is None:
            raise SignatureProblem(f"{_in_words(argument.type)} where the ones before are {_in_words(result)}", index)
        result = common
    return result


def comparable(arguments: Sequence[Argument]) -> Signature:
    """Two or more values that can be compared. Exact numbers are compared as they are, not rounded to one scale."""
    kinds = {argument.type.kind for argument in arguments} - {Kind.NULL}
    if Kind.DECIMAL in kinds and kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        return Signature(tuple(as_decimal(argument.type) for argument in arguments), BOOLEAN)
    try:
        common = same_type(arguments)
    except SignatureProblem as problem:
        raise _not_comparable(arguments, problem.argument or 0) from None
    return Signature((common,) * len(arguments), BOOLEAN)


def _not_comparable(arguments: Sequence[Argument], culprit: int) -> SignatureProblem:
    left = next(argument.type for argument in arguments if argument.type.kind is not Kind.NULL)
    right = arguments[culprit].type
    return SignatureProblem(
        f"{_in_words(left)} cannot be compared with {_in_words(right)}",
        culprit if len(arguments) > 2 else None,
        _comparison_hint(left, right),
    )


def arithmetic(on_decimals: Callable[[Type, Type], Type], *, exact_integers: bool) -> Infer:
    """Two numbers. Integers stay integers where their result is exact, else they count as decimals."""

    def infer(arguments: Sequence[Argument]) -> Signature:
        a, b = (numeric(argument, index) for index, argument in enumerate(arguments))
        if a.kind is Kind.NULL or b.kind is Kind.NULL:
            known = next((type_ for type_ in (a, b) if type_.kind is not Kind.NULL), None)
            return Signature((known or NULL, known or NULL), known or NULL)
        if Kind.DOUBLE in {a.kind, b.kind}:
            return Signature((DOUBLE, DOUBLE), DOUBLE)
        if exact_integers and a.kind is b.kind is Kind.INTEGER:
            return Signature((a, b), a)
        left, right = decimal_type_of(arguments[0]), decimal_type_of(arguments[1])
        return Signature((left, right), on_decimals(left, right))

    return infer


def decimal_type_of(argument: Argument) -> Type:
    """The decimal type of an exact number; a whole constant has just the digits that it is written with."""
    if argument.type.kind is Kind.INTEGER and argument.is_constant and isinstance(argument.constant, int):
        return Type(Kind.DECIMAL, max(1, len(str(abs(argument.constant)))), 0)
    return as_decimal(argument.type)


def _in_words(type_: Type) -> str:
    match type_.kind:
        case Kind.STRING:
            return "text"
        case Kind.INTEGER:
            return "an integer"
        case Kind.NULL:
            return "NULL"
        case _:
            return f"a {type_}"


def _comparison_hint(left: Type, right: Type) -> str | None:
    kinds = {left.kind, right.kind}
    if Kind.STRING in kinds and kinds & {Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}:
        return "write the number without quotes, or convert the text with TO_DECIMAL or TO_INTEGER"
    if Kind.STRING in kinds and kinds & {Kind.DATE, Kind.TIMESTAMP}:
        return 'write DATE("YYYY-MM-DD"), or convert the text with TO_DATE'
    return None
