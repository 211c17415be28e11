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
    exact = any(argument.type.kind is Kind.DECIMAL for argument in arguments[first:])
    for index, argument in enumerate(arguments[first:], start=first):
        counts_as = decimal_type_of(argument) if exact and argument.type.kind is Kind.INTEGER else argument.type
        common = common_type(result, counts_as)
        if common is None:
            raise SignatureProblem(
                f"expected {_in_words(result)} like the values before, this is {_in_words(argument.type)}", index
            )
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
    left = next(argument for argument in arguments if argument.type.kind is not Kind.NULL)
    right = arguments[culprit]
    return SignatureProblem(
        f"{_in_words(left.type)} cannot be compared with {_in_words(right.type)}",
        culprit if len(arguments) > 2 else None,
        _comparison_hint(left, right),
    )


def arithmetic(on_decimals: Callable[[Type, Type], Type], *, exact_integers: bool) -> Infer:
    """Two numbers. Integers stay integers where their result is exact, else they count as decimals."""

    def infer(arguments: Sequence[Argument]) -> Signature:
        a, b = (numeric(argument, index) for index, argument in enumerate(arguments))
        if a.kind is Kind.NULL or b.kind is Kind.NULL:
            known = next((type_ for type_ in (a, b) if type_.kind is not Kind.NULL), NULL)
            if exact_integers or known.kind is not Kind.INTEGER:
                return Signature((known, known), known)
            known = as_decimal(known)
            return Signature((known, known), on_decimals(known, known))
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
            return "a string"
        case Kind.INTEGER:
            return "an integer"
        case Kind.NULL:
            return "NULL"
        case _:
            return f"a {type_}"


def _comparison_hint(left: Argument, right: Argument) -> str | None:
    text, other = (left, right) if left.type.kind is Kind.STRING else (right, left)
    if text.type.kind is not Kind.STRING:
        return None
    if other.type.is_numeric and text.is_constant:
        return "write the number without quotes"
    if other.type.is_numeric:
        quoted = "write the number in quotes, or " if other.is_constant else ""
        return f"{quoted}convert the string with TO_DECIMAL or TO_INTEGER"
    if other.type.kind in {Kind.DATE, Kind.TIMESTAMP}:
        return 'write DATE("YYYY-MM-DD")' if text.is_constant else "convert the string with TO_DATE"
    return None
