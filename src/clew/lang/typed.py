"""The typed tree: names resolved, types known, every conversion written out.

Both evaluators read this tree, and neither has anything left to decide: where an integer meets a decimal, there is a
`Convert` node. It is plain data; `to_json` and `from_json` carry it into a plan and back.
"""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

from clew.deferred import dataclass
from clew.lang.types import NULL as NULL_TYPE
from clew.lang.types import Kind, Type, parse_type

Value = str | int | Decimal | float | bool | date | datetime | None
"""What a cell can hold. Timestamps are datetimes without zone, in UTC."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that was written in the expression, or that a run is given."""

    value: Value
    type: Type
    parameter: str | None = None
    """What the value is of, such as param.threshold, where it is given with each run."""


OVER = " over"
"""The table of the columns that stand for calls with a window. No name that users give begins with a space."""


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """The value of a column of the current row. `table` is the working table's name, a join alias or `OVER`."""

    table: str
    column: str
    type: Type


class _Branch:
    """A node with nodes below it, compared without recursion: Python's own comparison needs four calls for a level."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Apply | Convert):
            return self is other
        return _flat(self) == _flat(other)

    def __hash__(self) -> int:
        return hash(_flat(self))


@dataclass(frozen=True, slots=True, eq=False)
class Apply(_Branch):
    """A function of the catalogue, applied to arguments that have exactly the types it takes."""

    function: str
    arguments: tuple["Expression", ...]
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Convert(_Branch):
    """The operand as another type, rounded half-up where digits are lost; a value that does not fit is an error."""

    operand: "Expression"
    type: Type


Expression = Constant | ColumnValue | Apply | Convert


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        match current:
            case Apply():
                pending.extend(reversed(current.arguments))
            case Convert():
                pending.append(current.operand)
            case Constant() | ColumnValue():
                pass


def _flat(expression: object) -> tuple[object, ...]:
    """The nodes, parents first, each without what is below it; how many those are tells trees apart."""
    found = list[object]()
    for node in walk(expression) if isinstance(expression, Apply | Convert) else ():
        match node:
            case Apply(function, arguments, type_):
                found.append((function, len(arguments), type_))
            case Convert(_, type_):
                found.append(type_)
            case Constant() | ColumnValue():
                found.append(node)
    return tuple(found)


def columns_of(expression: Expression) -> frozenset[tuple[str, str]]:
    """The (table, column) pairs that an expression reads."""
    return frozenset((node.table, node.column) for node in walk(expression) if isinstance(node, ColumnValue))


def to_json(expression: Expression) -> list[object]:
    """A compact JSON form: a list that starts with the kind of node."""
    match expression:
        case Constant(value, type_, parameter):
            text = None if value is None else value_to_text(value)
            return ["constant", str(type_), text, *([] if parameter is None else [parameter])]
        case ColumnValue(table, column, type_):
            return ["column", str(type_), table, column]
        case Apply(function, arguments, type_):
            return ["apply", str(type_), function, *(to_json(argument) for argument in arguments)]
        case Convert(operand, type_):
            return ["convert", str(type_), to_json(operand)]


def from_json(data: object) -> Expression:
    """The expression that `to_json` wrote."""
    match data:
        case ["constant", str(type_name), None]:
            return Constant(None, _type_of(type_name))
        case ["constant", str(type_name), str(text)]:
            return Constant(value_from_text(text, _type_of(type_name)), _type_of(type_name))
        case ["constant", str(type_name), str() | None as text, str(parameter)]:
            type_ = _type_of(type_name)
            return Constant(None if text is None else value_from_text(text, type_), type_, parameter)
        case ["column", str(type_name), str(table), str(column)]:
            return ColumnValue(table, column, _type_of(type_name))
        case ["apply", str(type_name), str(function), *arguments]:
            return Apply(function, tuple(from_json(argument) for argument in arguments), _type_of(type_name))
        case ["convert", str(type_name), operand]:
            return Convert(from_json(operand), _type_of(type_name))
        case _:
            raise ValueError(f"not an expression: {data!r}")


def _type_of(name: str) -> Type:
    return NULL_TYPE if name == Kind.NULL.value else parse_type(name)


def value_to_text(value: Value) -> str:
    """A value, not NULL, as JSON and plans have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


def value_from_text(text: str, type_: Type) -> Value:
    """The value that `value_to_text` wrote."""
    match type_.kind:
        case Kind.STRING:
            return text
        case Kind.INTEGER:
            return int(text)
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.DOUBLE:
            return float(text)
        case Kind.BOOLEAN:
            return text == "true"
        case Kind.DATE:
            return date.fromisoformat(text)
        case Kind.TIMESTAMP:
            return datetime.fromisoformat(text)
        case Kind.NULL:
            raise ValueError("NULL has no text")
