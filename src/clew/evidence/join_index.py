"""A joined dataset in memory, so that millions of rows can look something up without a query for each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import EVIDENCE_TOO_LARGE
from clew.explain.pinned import dataset_rows
from clew.lang.evaluation import Evaluator, Row, evaluator
from clew.lang.typed import Apply, Expression, Value, columns_of
from clew.lang.types import Kind
from clew.plan.steps import Join
from clew.trace.reader import RunTrace

_MOST_ROWS = 5_000_000

Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class JoinIndex:
    """The rows of a joined dataset by the values that its condition compares for equality."""

    join: Join
    on: Evaluator
    keys: tuple[Evaluator, ...]
    """What gives the values for a row that looks something up."""
    rows: Mapping[Key, Sequence[Mapping[str, Value]]]
    nothing: Mapping[str, Value]

    @classmethod
    def of(cls, trace: RunTrace, join: Join) -> "JoinIndex":
        """Read a joined dataset as the run saw it."""
        if trace.run.pinned(join.dataset).counted > _MOST_ROWS:
            problem = f"{join.dataset.name} has more than {_MOST_ROWS:,} rows to look up"
            raise UserError(EVIDENCE_TOO_LARGE.anywhere(problem=problem))
        pairs = [pair for each in _conjuncts(join.on.tree) if (pair := _equality(each, join.alias)) is not None]
        theirs = [evaluator(inside) for inside, _ in pairs]
        rows = defaultdict[Key, list[Mapping[str, Value]]](list)
        for row in dataset_rows(trace, join.dataset, None, join.alias):
            seen = Row({join.alias: row.cells}, trace.today)
            key = tuple(value(seen) for value in theirs)
            if None not in key:
                rows[key].append(row.cells)
        nothing: Mapping[str, Value] = dict.fromkeys(column.name for column in join.dataset.columns)
        return cls(join, evaluator(join.on.tree), tuple(evaluator(outside) for _, outside in pairs), rows, nothing)

    def joined(self, seen: Row) -> Row:
        """A row with the one that it finds under the alias; with NULLs if it finds none."""
        key = tuple(value(seen) for value in self.keys)
        for cells in self.rows.get(key, ()):
            together = Row({**seen.tables, self.join.alias: cells}, seen.today)
            if self.on(together) is True:
                return together
        return Row({**seen.tables, self.join.alias: self.nothing}, seen.today)


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Apply) and condition.function == "AND":
        return [each for argument in condition.arguments for each in _conjuncts(argument)]
    return [condition]


def _equality(condition: Expression, alias: str) -> tuple[Expression, Expression] | None:
    """The two sides of an equality, that of the joined dataset first; None for other conditions.

    Doubles are left to the condition itself, since NaN equals NaN there.
    """
    if not isinstance(condition, Apply) or condition.function != "=":
        return None
    left, right = condition.arguments
    tables = [{table for table, _ in columns_of(side)} for side in (left, right)]
    if left.type.kind is Kind.DOUBLE:
        return None
    if tables[0] == {alias} and alias not in tables[1]:
        return left, right
    return (right, left) if tables[1] == {alias} and alias not in tables[0] else None
