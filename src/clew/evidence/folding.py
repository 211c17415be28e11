"""Aggregations of a group, row by row.

What is kept does not grow with the rows, except where values are distinct, sorted, or a mean of doubles.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

from clew.deferred import dataclass
from clew.lang import arithmetic
from clew.lang.evaluation import Row, contributing, evaluator, signature_of
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Expression, Value, walk
from clew.lang.types import Kind

_BUFFERED = 1_000


def aggregate_calls(expression: Expression) -> list[Apply]:
    """The calls of an expression that take all rows of a group."""
    return [
        node
        for node in walk(expression)
        if isinstance(node, Apply) and isinstance(FUNCTIONS[node.function], AggregateFunction)
    ]


@dataclass(slots=True)
class _Fold:
    """One aggregate call over the rows so far."""

    call: Apply
    argument: Callable[[Row], Any] | None
    count: int = 0
    total: Decimal = Decimal(0)
    buffer: list[Any] = field(default_factory=list)
    distinct: set[Value] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Another row."""
        value = self.argument(row) if self.argument is not None else None
        if value is None and self.argument is not None:
            return
        self.count += 1
        match self.call.function:
            case "COUNT" | "COUNT_ALL":
                pass
            case "COUNT_DISTINCT":
                self.distinct.add(value)
            case "AVG" if isinstance(value, Decimal):
                self.total = arithmetic.add(self.total, value)
            case "SUM" | "MIN_AGG" | "MAX_AGG":
                self.buffer.append(value)
                if len(self.buffer) > _BUFFERED:
                    self.buffer = [self._combined(self.buffer)]
            case _:
                self.buffer.append(value)

    def value(self) -> Value:
        """The value of the call."""
        match self.call.function:
            case "COUNT" | "COUNT_ALL":
                return self.count
            case "COUNT_DISTINCT":
                return self._combined(list(self.distinct))
            case "AVG" if self.call.type.kind is Kind.DECIMAL:
                if not self.count:
                    return None
                return arithmetic.fit(arithmetic.divide(self.total, Decimal(self.count)), self.call.type)
            case _:
                return self._combined(self.buffer)

    def _combined(self, values: Sequence[Any]) -> Value:
        function = FUNCTIONS[self.call.function]
        assert isinstance(function, AggregateFunction)  # noqa: S101 - chosen by `aggregate_calls`
        return function.combine(values, signature_of(self.call))


class GroupFold:
    """The aggregations of one group."""

    def __init__(self, trees: Sequence[Expression]) -> None:
        self._trees = trees
        self._first: Row | None = None
        self._folds = [
            _Fold(call, contributing(call) if call.arguments else None)
            for call in dict.fromkeys(call for tree in trees for call in aggregate_calls(tree))
        ]

    def add(self, row: Row) -> None:
        """Another row of the group."""
        if self._first is None:
            self._first = row
        for fold in self._folds:
            fold.add(row)

    def value(self, position: int) -> Value:
        """The value of an expression over the rows so far, at least one."""
        assert self._first is not None  # noqa: S101 - a group has a row
        values = {fold.call: fold.value() for fold in self._folds}
        return evaluator(self._trees[position])(Row(self._first.tables, self._first.today, values))
