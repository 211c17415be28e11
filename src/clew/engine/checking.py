"""Checks on Spark: what they count rides on a job that reads the rows anyway, the rest is one job for each point.

Counts of rows that fail and totals are observed while rows are written. Duplicates, matches in other datasets, and
totals that cannot be added up piece by piece take a job, all those of a point together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from decimal import Decimal

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import CHECK_FAILED
from clew.engine.creating import Pinned, visible
from clew.engine.expressing import Expressing
from clew.engine.names import named
from clew.engine.operations.update import joined_rows
from clew.engine.sql import quoted
from clew.events.values import CheckResult
from clew.lang.conversion import to_text
from clew.lang.evaluation import Row, evaluator
from clew.lang.functions import FUNCTIONS, Family
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, columns_of, value_from_text, walk
from clew.lang.types import BOOLEAN, Kind
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.plan.privacy import privacy_by_column, privacy_of_dataset
from clew.storage.parts import ORDINAL
from clew.storage.row_identity import RowIds

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_ADDED_UP = frozenset({"SUM", "COUNT", "COUNT_ALL", "MIN_AGG", "MAX_AGG"})
"""Aggregates of two sets of rows that follow from those of each."""
_MOST_TOLD = 5

Measured = Mapping[str, str | None]
"""Texts of numbers and values, by the name of their measure."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What deciding checks needs to know of a run."""

    run_id: str
    plan: Plan
    expressing: Expressing
    pinned: Pinned


@dataclass(slots=True)
class PointWatch:
    """Watches the rows of one point on their way, and decides its checks."""

    context: CheckContext
    checks: Sequence[PlannedCheck]
    _seen: list[Observation] = field(default_factory=list)

    def watched(self, rows: DataFrame) -> DataFrame:
        """The rows, observed. Rows that come in several pieces are watched piece by piece."""
        sql = self._sums()
        if not sql:
            return rows
        observation = Observation()
        self._seen.append(observation)
        kept = [quoted(name) for name in rows.columns]
        marked = rows.selectExpr(*kept, *(named(flag, name) for name, flag in self._flags().items()))
        seen = marked.observe(observation, *(F.expr(text).alias(name) for name, text in sql.items()))
        return seen.selectExpr(*kept)

    def forget(self) -> None:
        """Before rows are written once more: what was seen so far does not count."""
        self._seen.clear()

    def results(self, rows: DataFrame) -> tuple[CheckResult, ...]:
        """What the checks found. `rows` are the rows of the point, for what could not be observed."""
        pieces: list[Measured] = [{name: _text(each) for name, each in seen.get.items()} for seen in self._seen]
        found = dict(_measured(self._jobs(rows, also_sums=not pieces)))
        if not pieces:
            pieces = [found]
        return tuple(
            _Decision(self.context, check, index, pieces, found).result() for index, check in enumerate(self.checks)
        )

    def _flags(self) -> dict[str, str]:
        """Whether a row is looked at and whether it fails, for each check, as SQL."""
        flags = dict[str, str]()
        for index, check in enumerate(self.checks):
            sql, table = _sql_of(self.context, check), _table_of(self.context, check)
            if check.within is not None or check.total is not None:
                flags[f"__c{index}_in"] = f"coalesce({sql(check.is_checked(table))}, FALSE)"
            condition = check.condition(table)
            if condition is not None:
                flags[f"__c{index}_bad"] = f"coalesce({sql(condition)}, FALSE)"
        return flags

    def _sums(self) -> dict[str, str]:
        """The aggregates that can be observed, by measure."""
        sums = dict[str, str]()
        for index, check in enumerate(self.checks):
            if check.failing is not None:
                bad = f"__c{index}_bad"
                sums[f"c{index}_failed"] = f"count_if({bad})"
                sums[f"c{index}_first"] = f"min(CASE WHEN {bad} THEN {ORDINAL} END)"
            if check.failing is not None or check.keys or check.join is not None:
                sums[f"c{index}_rows"] = f"count_if({_looked_at(index, check)})"
            for number, leaf in enumerate(_leaves(check)):
                if _adds_up(check):
                    flag = ColumnValue(_table_of(self.context, check), f"__c{index}_in", BOOLEAN)
                    sql = _sql_of(self.context, check)(_guarded(leaf, flag))
                    sums[f"c{index}_t{number}"] = f"CAST({sql} AS STRING)"
        return sums

    def _jobs(self, rows: DataFrame, *, also_sums: bool) -> Iterator[DataFrame]:
        """One row of measures each, as names and texts."""
        sums = self._sums()
        marked = rows.selectExpr("*", *(named(flag, name) for name, flag in self._flags().items()))
        if also_sums and sums:
            yield _row(marked.agg(*(F.expr(text).alias(name) for name, text in sums.items())), sums)
        for index, check in enumerate(self.checks):
            looked_at = marked.where(_looked_at(index, check))
            if check.keys:
                yield _row(_duplicates(looked_at, check), [f"c{index}_failed", f"c{index}_first"])
            if check.join is not None:
                failing = _unmatched(looked_at, check, self.context)
                yield _row(failing, [f"c{index}_failed", f"c{index}_first"])
            if not _adds_up(check):
                sql = _sql_of(self.context, check)
                leaves = [F.expr(f"CAST({sql(leaf)} AS STRING)") for leaf in _leaves(check)]
                names = [f"c{index}_t{number}" for number in range(len(leaves))]
                if leaves:
                    yield _row(looked_at.agg(*leaves), names)
            if check.tie is not None and check.tie.dataset is not None:
                other = visible(self.context.pinned(check.tie.dataset))
                tied = _aggregates(check.tie.value.tree)
                if tied:
                    values = [F.expr(f"CAST({self.context.expressing.source_sql(leaf)} AS STRING)") for leaf in tied]
                    yield _row(other.agg(*values), [f"c{index}_o{number}" for number in range(len(tied))])


class CheckWatches:
    """The points of a group of steps at which checks are due, each with its rows once they are known."""

    def __init__(self, context: CheckContext, due: Iterable[PlannedCheck]) -> None:
        by_point = dict[int, list[PlannedCheck]]()
        for check in due:
            if not check.of_dataset:
                by_point.setdefault(check.at, []).append(check)
        self._points = {at: PointWatch(context, checks) for at, checks in sorted(by_point.items())}
        self._rows = dict[int, DataFrame]()
        self._results = dict[int, tuple[CheckResult, ...]]()

    def seqs_until(self, seq: int) -> list[int]:
        """The points up to a step."""
        return [at for at in self._points if at <= seq]

    def found(self, seq: int, rows: DataFrame) -> None:
        """The rows after a step."""
        if seq in self._points:
            self._rows[seq] = rows

    def watch_any(self, seqs: Iterable[int]) -> bool:
        """Whether checks are due after one of these steps."""
        return not self._points.keys().isdisjoint(seqs)

    def watched(self, seq: int, rows: DataFrame) -> DataFrame:
        """The rows after a step, watched if checks are due there."""
        return self._points[seq].watched(rows) if seq in self._points else rows

    def forget(self, seqs: Iterable[int]) -> None:
        """Before the rows after these steps are written once more. Others may be written by another thread."""
        for seq in seqs:
            if seq in self._points:
                self._points[seq].forget()

    def decided(self, until: int | None = None) -> tuple[CheckResult, ...]:
        """What the checks of all points whose rows are known have found, each once; up to a step where one is given."""
        found = list[CheckResult]()
        for at, point in self._points.items():
            if at in self._rows and at not in self._results and (until is None or at <= until):
                self._results[at] = point.results(self._rows[at])
                found += self._results[at]
        return tuple(found)


def _row(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """A frame with one row as rows of name and text, so that frames of several measures fit together."""
    named_columns = zip(names, frame.columns, strict=True)
    pairs = [
        F.struct(F.lit(name).alias("name"), F.col(quoted(column)).cast("string").alias("value"))
        for name, column in named_columns
    ]
    return frame.select(F.explode(F.array(*pairs)).alias("pair")).select("pair.name", "pair.value")


def _measured(frames: Iterator[DataFrame]) -> Iterator[tuple[str, str | None]]:
    together: DataFrame | None = None
    for frame in frames:
        together = frame if together is None else together.unionAll(frame)
    yield from together.collect() if together is not None else ()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _table_of(context: CheckContext, check: PlannedCheck) -> str:
    return check.dataset.table if check.of_dataset and check.dataset is not None else context.expressing.table


def _sql_of(context: CheckContext, check: PlannedCheck) -> Callable[[Expression], str]:
    return context.expressing.source_sql if check.of_dataset else context.expressing.sql


def _looked_at(index: int, check: PlannedCheck) -> str:
    return "NOT `_deleted`" if check.within is None else f"__c{index}_in"


def _aggregates(tree: Expression) -> list[Apply]:
    """The aggregates of a total, in the order of the tree."""
    return [
        node for node in walk(tree) if isinstance(node, Apply) and FUNCTIONS[node.function].family is Family.AGGREGATE
    ]


def _leaves(check: PlannedCheck) -> list[Apply]:
    """The aggregates over the rows of the point."""
    if check.total is None:
        return []
    own = check.tie.value.tree if check.tie is not None and check.tie.dataset is None else None
    return [*_aggregates(check.total.tree), *(_aggregates(own) if own is not None else [])]


def _adds_up(check: PlannedCheck) -> bool:
    return all(leaf.function in _ADDED_UP and leaf.type.kind is not Kind.DOUBLE for leaf in _leaves(check))


def _guarded(leaf: Apply, is_checked: Expression) -> Apply:
    """An aggregate over the rows that are looked at, among others."""
    if leaf.function == "COUNT_ALL":
        one: Expression = Constant(1, leaf.type)
        return Apply("COUNT", (Apply("IF", (is_checked, one, Constant(None, leaf.type)), leaf.type),), leaf.type)
    value = leaf.arguments[0]
    return Apply(leaf.function, (Apply("IF", (is_checked, value, Constant(None, value.type)), value.type),), leaf.type)


def _duplicates(rows: DataFrame, check: PlannedCheck) -> DataFrame:
    given = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in check.keys)
    counted = rows.where(given).groupBy(*map(quoted, check.keys))
    found = counted.agg(F.count(F.lit(1)).alias("__n"), F.min(ORDINAL).alias("__first")).where("__n > 1")
    return found.agg(F.expr("coalesce(sum(__n), 0)"), F.min("__first"))


def _unmatched(rows: DataFrame, check: PlannedCheck, context: CheckContext) -> DataFrame:
    join = check.join
    assert join is not None  # noqa: S101 - asked for these checks only
    other = joined_rows(visible(context.pinned(join.dataset)), join)
    condition = F.expr(context.expressing.sql(join.on.tree))
    needed = {name for table, name in columns_of(join.on.tree) if table == context.expressing.table}
    own = rows.selectExpr(ORDINAL, *map(quoted, sorted(needed - {"_row_id"})))
    return own.join(other, condition, "left_anti").agg(F.count(F.lit(1)), F.min(ORDINAL))


@dataclass(frozen=True, slots=True)
class _Decision:
    """What was measured for one check, and what follows from it."""

    context: CheckContext
    check: PlannedCheck
    index: int
    pieces: Sequence[Measured]
    """What was observed, for each piece of the rows."""
    found: Measured
    """What a job of its own has found."""

    def result(self) -> CheckResult:
        check = self.check
        base = CheckResult(check.name, check.kind, check.severity, check.at, passed=True)
        if check.decided is not None:
            return replace(base, passed=not check.decided, message=check.decided)
        if check.total is not None:
            return self._of_total(base)
        own = check.failing is not None
        failed = self._count("failed", self.pieces if own else [self.found])
        first = self._first(self.pieces if own else [self.found])
        rows = self._count("rows", self.pieces)
        result = replace(base, passed=failed == 0, failed_rows=failed, checked_rows=rows)
        if failed == 0:
            return result
        example = RowIds(self.context.run_id).row_id(first) if first is not None and self._may_tell_rows else None
        return replace(result, message=f"{failed:,} of {rows:,} rows fail: {check.text}", example=example)

    def _count(self, what: str, pieces: Sequence[Measured]) -> int:
        return sum(int(piece.get(f"c{self.index}_{what}") or 0) for piece in pieces)

    def _first(self, pieces: Sequence[Measured]) -> int | None:
        given = [each for piece in pieces if (each := piece.get(f"c{self.index}_first")) is not None]
        return min(map(int, given), default=None)

    @property
    def _may_tell_rows(self) -> bool:
        return not self.check.of_dataset and not self._is_protected

    @property
    def _is_protected(self) -> bool:
        """Whether a column that is personal or secret decides it: many people read events."""
        check, plan = self.check, self.context.plan
        own = check.dataset if check.of_dataset else None
        classes = privacy_of_dataset(own) if own is not None else privacy_by_column(plan)
        read = check.columns(_table_of(self.context, check))
        tied = check.tie.dataset if check.tie is not None else None
        others = {name for _, name in columns_of(check.tie.value.tree)} if check.tie is not None else set()
        joined = privacy_of_dataset(check.join.dataset).keys() if check.join is not None else frozenset[str]()
        return (
            bool(read & classes.keys())
            or bool(check.joined_columns & joined)
            or (tied is not None and bool(others & privacy_of_dataset(tied).keys()))
        )

    def _of_total(self, base: CheckResult) -> CheckResult:
        check = self.check
        assert check.total is not None  # noqa: S101 - asked for totals only
        values = [self._leaf(number, leaf) for number, leaf in enumerate(_leaves(check))]
        own = _aggregates(check.total.tree)
        total = _with_values(check.total.tree, iter(values[: len(own)]))
        if check.tie is not None:
            return self._of_tie(base, total, values[len(own) :])
        holds = self._value(total)
        if holds is True:
            return base
        told = "NULL" if holds is None else "FALSE"
        sides = self._sides(total)
        return replace(base, passed=False, message=f"{check.text} is {told}{sides}")

    def _of_tie(self, base: CheckResult, total: Expression, rest: Sequence[Value]) -> CheckResult:
        tie = self.check.tie
        assert tie is not None  # noqa: S101 - asked for these only
        if tie.dataset is not None:
            leaves = _aggregates(tie.value.tree)
            texts = [self.found.get(f"c{self.index}_o{number}") for number in range(len(leaves))]
            rest = [_value_of(text, leaf) for text, leaf in zip(texts, leaves, strict=True)]
        one, other = self._value(total), self._value(_with_values(tie.value.tree, iter(rest)))
        left, right = _number(one), _number(other)
        if left is not None and right is not None and abs(left - right) <= Decimal(tie.tolerance):
            return base
        told = "" if self._is_protected else f": {_shown(one)} and {_shown(other)}"
        return replace(base, passed=False, message=f"{self.check.text} does not tie{told}")

    def _leaf(self, number: int, leaf: Apply) -> Value:
        name = f"c{self.index}_t{number}"
        pieces = self.pieces if _adds_up(self.check) else [self.found]
        values = [value for piece in pieces if (value := _value_of(piece.get(name), leaf)) is not None]
        return _together(leaf, values)

    def _sides(self, total: Expression) -> str:
        """Both sides of a comparison, where everyone may see them."""
        if self._is_protected or not isinstance(total, Apply) or total.function not in _COMPARISONS:
            return ""
        left, right = (self._value(side) for side in total.arguments)
        return f": {_shown(left)} {total.function} {_shown(right)}"

    def _value(self, tree: Expression) -> Value:
        return evaluator(tree)(Row({}, self._today))

    @property
    def _today(self) -> date:
        return self.context.expressing.today


def _together(leaf: Apply, values: Sequence[Value]) -> Value:
    """An aggregate over all rows from those of their pieces; NULL where there is no value, but a count is 0."""
    if leaf.function in {"COUNT", "COUNT_ALL"} and not values:
        return 0
    if len(values) <= 1:
        return values[0] if values else None
    if leaf.function in {"MIN_AGG", "MAX_AGG"}:
        choose = min if leaf.function == "MIN_AGG" else max
        return choose(values)  # type: ignore[type-var]
    return sum(values)  # type: ignore[arg-type]


def _value_of(text: str | None, leaf: Apply) -> Value:
    return None if text is None else value_from_text(text, leaf.type)


def _with_values(tree: Expression, values: Iterator[Value]) -> Expression:
    """A total with the values of its aggregates in their places, in the order of the tree."""
    match tree:
        case Apply(function, _, type_) if FUNCTIONS[function].family is Family.AGGREGATE:
            return Constant(next(values), type_)
        case Apply(function, arguments, type_):
            return Apply(function, tuple(_with_values(argument, values) for argument in arguments), type_)
        case Convert(operand, type_):
            return Convert(_with_values(operand, values), type_)
        case _:
            return tree


def _number(value: Value) -> Decimal | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return Decimal(value)
    number = Decimal(repr(value)) if isinstance(value, float) else None
    return number if number is not None and number.is_finite() else None


def _shown(value: Value) -> str:
    return "NULL" if value is None else to_text(value)


def stopped_by(results: Iterable[CheckResult], plan: Plan) -> UserError | None:
    """Why a run must not go on; None if no check stops it."""
    stopping = [result for result in results if result.stops]
    if not stopping:
        return None
    names = {0: "after loading"} | {step.seq: f'after step {step.seq} "{step.name}"' for step in plan.steps}
    told = [f'the check "{each.name}" failed {names.get(each.at, "")}: {each.message}' for each in stopping]
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return UserError(CHECK_FAILED.anywhere(problem="; ".join(told[:_MOST_TOLD]) + more))
