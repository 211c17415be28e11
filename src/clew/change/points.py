"""Where two runs are compared: at an output of each, or after a step of each, and the rows that count there."""

# ruff: noqa: S608 - names are made here

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from clew import budgets
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import INVALID_COMPARISON
from clew.diagnostics.codes.trace import NOT_AN_OUTPUT
from clew.lang.failing import can_fail
from clew.lang.typed import Apply, ColumnValue, Constant, Expression, columns_of
from clew.lang.types import BOOLEAN, INTEGER
from clew.plan.operations import OutputStep, Step
from clew.storage.parts import ORDINAL
from clew.trace.json_values import arrow_type, table_of
from clew.trace.reader import RunTrace
from clew.trace.row_sets import Relation
from clew.trace.sql import Sql, joined

if TYPE_CHECKING:
    import pyarrow as pa

AnyStep = TypeVar("AnyStep", bound=Step)

_BYTES_PER_ORDINAL = 48
_LIVE = Sql("NOT coalesce(_deleted, FALSE)")


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a run: an output, or the working dataset after a step."""

    seq: int
    name: str
    columns: tuple[str, ...]
    output: OutputStep | None = None

    @property
    def includes_deleted(self) -> bool:
        """Whether deleted rows count."""
        return self.output is not None and self.output.include_deleted

    def to_json(self) -> dict[str, object]:
        """The form that commands and the server give."""
        return {"seq": self.seq, "name": self.name, "output": self.output is not None}


def points_of(a: RunTrace, b: RunTrace, output: int | None, at: int | None) -> tuple[Point, Point]:
    """The same point of two runs: an output of the first (by default its last), or a step; and the same of the second.

    Steps are the same if they have the same name, or else the same seq.
    """
    if output is not None and at is not None:
        raise UserError(INVALID_COMPARISON.anywhere(problem="an output and a step cannot be asked for at once"))
    if at is not None:
        first = a.run.checked_step(at)
        return _after(a, first), _after(b, _same_step(a, b, first))
    outputs = a.plan.outputs
    if not outputs:
        raise UserError(NOT_AN_OUTPUT.anywhere(problem="the plan writes no output"))
    chosen = outputs[-1] if output is None else next((each for each in outputs if each.seq == output), None)
    if chosen is None:
        listed = ", ".join(str(each.seq) for each in outputs)
        problem = f"step {output} does not write an output; the outputs are {listed}"
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=problem))
    other = counterpart(chosen, b.plan.outputs)
    if other is None:
        problem = f'the run {b.run_id} has no output "{chosen.name}" and none in step {chosen.seq}'
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=problem))
    return _written(a, chosen), _written(b, other)


def counterpart(step: AnyStep, others: Sequence[AnyStep]) -> AnyStep | None:
    """The step of another plan that a step corresponds to: that of the same name, or else with the same seq."""
    same_type = [each for each in others if each.type == step.type]
    named = [each for each in same_type if (each.name, each.path) == (step.name, step.path)]
    found = next((each for each in named if each.seq == step.seq), None) or next(iter(named), None)
    return found or next((each for each in same_type if each.seq == step.seq), None)


def _same_step(a: RunTrace, b: RunTrace, seq: int) -> int:
    if seq == 0:
        return 0
    step = a.run.step(seq)
    found = next((each for each in b.plan.steps if (each.name, each.type) == (step.name, step.type)), None)
    return b.run.checked_step(seq if found is None else found.seq)


def _after(trace: RunTrace, seq: int) -> Point:
    name = "as loaded" if seq == 0 else trace.run.step(seq).name
    return Point(seq, name, tuple(column for column, _ in trace.run.columns(seq) if column != "_deleted"))


def _written(trace: RunTrace, step: OutputStep) -> Point:
    trace.run.reached_step(step.seq)
    if trace.run.not_done.get(step.seq) is not None:
        problem = f'the run {trace.run_id} has skipped the output "{step.name}"'
        raise UserError(NOT_AN_OUTPUT.anywhere(problem=problem, hint="compare another output, or a step with --at"))
    return Point(step.seq, step.name, step.columns, step)


def conditions_at(trace: RunTrace, point: Point, where: str | None) -> list[Expression]:
    """The selector of an output and a condition of the question, in the order in which they are asked."""
    selector = point.output.selector if point.output is not None else None
    found = [] if selector is None else [selector.tree]
    return found if where is None else [*found, trace.condition(where, point.seq)]


def rows_at(trace: RunTrace, point: Point, where: str | None, columns: Sequence[str]) -> "CountedRows":
    """The rows that count at a point, for queries."""
    conditions = conditions_at(trace, point, where)
    return rows_where(trace, point.seq, conditions, columns, include_deleted=point.includes_deleted)


def rows_where(
    trace: RunTrace,
    seq: int,
    conditions: Sequence[Expression],
    columns: Sequence[str],
    *,
    include_deleted: bool = False,
) -> "CountedRows":
    """The rows after a step for which all conditions are true, for queries."""
    rows = trace.working(seq)
    translated = [rows.in_sql(each, trace.today) for each in conditions]
    known = [each for each in translated if each is not None]
    live = [] if include_deleted else [_LIVE]
    if len(known) == len(conditions):
        also = sorted({name for each in conditions for _, name in columns_of(each)})
        return CountedRows(rows.relation(columns, joined(" AND ", [Sql("TRUE"), *live, *known]), also), {})
    ordinals = list[int]()
    condition = combined(trace.plan.input.table, conditions, includes_deleted=include_deleted)
    for ordinal in _matching(trace, seq, condition):
        budgets.hold(_BYTES_PER_ORDINAL)
        ordinals.append(ordinal)
    name = f"matching_{uuid4().hex}"
    within = Sql(f"{ORDINAL} IN (SELECT {ORDINAL} FROM {name})")
    table = table_of([(ORDINAL, arrow_type(INTEGER), ordinals)])
    return CountedRows(rows.relation(columns, within), {name: table})


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows as a query, with the tables that it names beside files."""

    relation: Relation
    tables: dict[str, "pa.Table"]


def _matching(trace: RunTrace, seq: int, condition: Expression) -> Iterator[int]:
    """The rows for which a condition is true, judged in Python. No part of it sees a row that does not count."""
    for ordinal, _ in trace.working(seq).matching(condition, (), trace.see):
        yield ordinal


def combined(table: str, conditions: Sequence[Expression], *, includes_deleted: bool) -> Expression:
    """One condition out of several, of which each sees only rows for which those before it are true."""
    alive = Apply("NOT", (ColumnValue(table, "_deleted", BOOLEAN),), BOOLEAN)
    listed = list(conditions) if includes_deleted else [alive, *conditions]
    found = listed[-1] if listed else Constant(True, BOOLEAN)
    for each in reversed(listed[:-1]):
        if can_fail(found):
            found = Apply("IF", (each, found, Constant(False, BOOLEAN)), BOOLEAN)
        else:
            found = Apply("AND", (each, found), BOOLEAN)
    return found
