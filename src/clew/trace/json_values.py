"""Values of Parquet files as values of the language, and as JSON has them."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from clew.lang.typed import Value
from clew.lang.types import Kind, Type

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(type_: Type) -> "pa.DataType":
    """The Arrow type for a type of the language."""
    import pyarrow as pa

    match type_.kind:
        case Kind.STRING:
            return pa.string()
        case Kind.INTEGER:
            return pa.int64()
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case Kind.NULL:
            return pa.null()


def values_of(column: "pa.ChunkedArray | pa.Array", type_: Type) -> list[Value]:
    """The values of a column as Python has them. Timestamps are instants in UTC, whether the file says so or not."""
    target = arrow_type(type_)
    if type_.kind is Kind.TIMESTAMP and column.type != target:
        import pyarrow as pa

        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    if column.type != target:
        column = column.cast(target)
    return cast("list[Value]", column.to_pylist())


def table_of(columns: Sequence[tuple[str, "pa.DataType", Sequence[object]]]) -> "pa.Table":
    """A table of columns with their types, which may have no rows."""
    import pyarrow as pa

    names = [name for name, _, _ in columns]
    return pa.Table.from_arrays([pa.array(values, type_) for _, type_, values in columns], names=names)


JsonValue = str | int | float | bool | None


def json_value(value: Value) -> JsonValue:
    """A value for `json.dumps`. Doubles that JSON has no number for are strings."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def json_state(state: Mapping[str, Value] | None) -> dict[str, JsonValue] | None:
    """The values of a row."""
    return None if state is None else {name: json_value(value) for name, value in state.items()}
