"""The operations of a project: one file for each type, and the table of all types.

The union is closed: if a `match` lacks a type, the type checker reports it.
"""

from collections.abc import Mapping
from typing import TypeAlias

from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.aggregate import Aggregate, Aggregation
from clew.definitions.operations.append import Append, AppendAggregation
from clew.definitions.operations.base import MOST_SEQ, OperationBase
from clew.definitions.operations.delete import Delete
from clew.definitions.operations.output import (
    Destination,
    Location,
    LocationDestination,
    Output,
    PathDestination,
    TableDestination,
    WriteMode,
)
from clew.definitions.operations.update import AssignmentDefinition, RuntimeJoin, Update
from clew.definitions.shapes import EXPRESSION, NAME, TEXT, ByKey, Located, MapOf, Record, Tagged, Whole, key, record

__all__ = [
    "MOST_SEQ",
    "OPERATION",
    "Aggregate",
    "Aggregation",
    "Append",
    "AppendAggregation",
    "AssignmentDefinition",
    "Delete",
    "Destination",
    "FragmentUse",
    "Location",
    "LocationDestination",
    "Operation",
    "OperationBase",
    "Output",
    "PathDestination",
    "RuntimeJoin",
    "TableDestination",
    "Update",
    "Use",
    "WriteMode",
]


@record("the fragment to use")
class FragmentUse(Located):
    """A fragment and the name that it goes by here."""

    fragment: str = key(NAME, "The id of the fragment.")
    alias: str | None = key(
        TEXT, "The name in the fragment's breakpoints; by default derived from its position.", named="as", default=None
    )
    arguments: Mapping[str, ExpressionText] = key(
        MapOf(EXPRESSION, "expressions"),
        "The arguments of the fragment: for each an expression as this project or fragment sees it.",
        default_factory=dict,
    )


@record("a use")
class Use(Located):
    """The operations of a fragment in this place."""

    seq: int | None = key(
        Whole(1, MOST_SEQ),
        "The seq of the fragment's first operation; by default it follows the previous entry.",
        default=None,
    )
    use: FragmentUse = key(Record(FragmentUse), "The fragment.")


Operation: TypeAlias = Update | Aggregate | Append | Delete | Output

_OPERATION: Tagged[Operation] = Tagged(
    "an operation",
    "type",
    {
        "update": Record(Update),
        "aggregate": Record(Aggregate),
        "append": Record(Append),
        "delete": Record(Delete),
        "output": Record(Output),
    },
)

OPERATION: ByKey[Operation | Use] = ByKey("an operation", {"use": Record(Use)}, otherwise=_OPERATION)
