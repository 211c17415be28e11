"""Expressions that may have failed on a value, with the rows for which a step evaluates them."""

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame

from clew.deferred import dataclass
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Convert, Expression, columns_of
from clew.plan.datasets import DatasetUse
from clew.plan.steps import Assignment, PlannedExpression


@dataclass(frozen=True, slots=True)
class Suspect:
    """An expression, and the rows for which a step evaluates it."""

    what: str
    tree: Expression
    rows: DataFrame
    source: DatasetUse | None = None
    """The dataset that the rows are of, where they are not those of the working dataset."""
    alias: str | None = None


def selector_suspects(selector: PlannedExpression | None, rows: DataFrame) -> Iterator[Suspect]:
    """The selector of a step, where it has one, over the rows that it decides about."""
    if selector is not None:
        yield Suspect("the selector", selector.tree, rows)


def tables_of(tree: Expression) -> set[str]:
    """The tables whose columns an expression reads."""
    return {table for table, _ in columns_of(tree)}


def parts_of(tree: Expression) -> Iterator[Expression]:
    """The largest parts of a condition that look at one table only."""
    if len(tables_of(tree)) == 1:
        yield tree
    elif isinstance(tree, Apply):
        for argument in tree.arguments:
            yield from parts_of(argument)
    elif isinstance(tree, Convert):
        yield from parts_of(tree.operand)


def arguments_of(aggregations: Iterable[Assignment]) -> Iterator[tuple[str, Expression]]:
    """The parts of aggregations that are evaluated row by row."""
    for each in aggregations:
        yield from ((f"column {each.column}", tree) for tree in _arguments(each.value.tree))


def _arguments(tree: Expression) -> Iterator[Expression]:
    match tree:
        case Apply(function, arguments) if isinstance(FUNCTIONS[function], AggregateFunction):
            yield from arguments
        case Apply(_, arguments):
            for argument in arguments:
                yield from _arguments(argument)
        case Convert(operand):
            yield from _arguments(operand)
        case _:
            return
