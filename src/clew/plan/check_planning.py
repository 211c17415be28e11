"""Checks as the compiler checks and plans them, at the points of the plan at which they look.

A check that quarantines becomes a delete with a reason. It takes the next free seq, so that the seqs of operations stay
what their author wrote.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

from clew.deferred import dataclass
from clew.definitions import ExpressionText
from clew.definitions.checks import (
    END,
    LOAD,
    Check,
    Complete,
    Freshness,
    InSet,
    JoinMustMatch,
    NotNull,
    PatternCheck,
    Range,
    RowExpression,
    SchemaCheck,
    Severity,
    Total,
    TotalTie,
    Unique,
)
from clew.definitions.operations import Output, Update
from clew.diagnostics import Problems, did_you_mean
from clew.diagnostics.codes.project import INVALID_CHECK
from clew.diagnostics.codes.workspace import DUPLICATE_ID
from clew.lang import Scope, Table
from clew.lang.typed import Apply, Constant, Expression
from clew.lang.types import BOOLEAN, NULL, Kind
from clew.plan.catalogue import Catalogue
from clew.plan.datasets import DatasetUse
from clew.plan.expansion import MAIN, PlacedOperation
from clew.plan.expressions import Expressions
from clew.plan.joined_days import on_day, read_on
from clew.plan.operations import DeleteStep
from clew.plan.operations.context import UNGROUPABLE, PlanningState, dataset_table, grouping_columns, reads
from clew.plan.planned_checks import PlannedCheck, Tie
from clew.plan.steps import Join, PlannedExpression

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_CHECK_IDS = uuid.UUID("3a1f3a1e-36c7-5d2c-8f53-7cf9a2f3d1a4")
"""Namespace for the ids of steps that quarantine rows."""
_IN_A_CHECK = "in a check"


@dataclass(frozen=True, slots=True)
class CheckPoint:
    """Rows that checks look at: the working dataset between two steps, or a dataset as it is loaded."""

    state: PlanningState
    rows_after: int
    """The last step that changed the rows; 0 is loading."""
    scope: Scope
    within: PlannedExpression | None = None
    """Which of the rows count, whatever a check says: those that an output registers."""
    dataset: DatasetUse | None = None
    of_dataset: bool = False

    @classmethod
    def of_working(cls, state: PlanningState, rows_after: int) -> "CheckPoint":
        """The working dataset."""
        scope = Scope((Table(state.table, state.schema.types, is_opaque=state.is_opaque),))
        return cls(state, rows_after, scope)

    @classmethod
    def of_loaded(cls, use: DatasetUse, state: PlanningState) -> "CheckPoint":
        """A dataset that is joined or appended, as it is loaded."""
        table = Table(use.table, {**{column.name: column.type for column in use.columns}, "_deleted": BOOLEAN})
        return cls(state, 0, Scope((table,)), dataset=use, of_dataset=True)


@dataclass(slots=True)
class CheckPlanning:
    """Plans the checks of one project while the compiler goes through its operations."""

    written: Sequence[Check]
    placed: Sequence[PlacedOperation]
    catalogue: Catalogue
    plan: str
    expressions: Expressions
    problems: Problems
    found: list[PlannedCheck] = field(default_factory=list)
    _names: dict[str, Check] = field(default_factory=dict)
    _quarantining: dict[str, int] = field(default_factory=dict)
    """How many steps quarantine rows for the checks of a name."""
    _anchors: dict[int, int | None] = field(default_factory=dict)
    """The step of each check of the project, by its position; None where that is not known."""

    def __post_init__(self) -> None:
        self._anchors = {index: self._anchor(check) for index, check in enumerate(self.written)}

    def at_load(self, source: DatasetUse | None, state: PlanningState) -> list[DeleteStep]:
        """The checks of the rows as they are loaded: those of the dataset first."""
        point = CheckPoint.of_working(state, 0)
        steps = list[DeleteStep]()
        if source is not None:
            own = replace(point, dataset=source)
            steps += self._planned(self.catalogue.checks_of(source), own, 0, self._next_seq(0))
        return steps + self._planned(self._written_at(0), point, 0 + len(steps), self._next_seq(0))

    def of_datasets(self, uses: Sequence[DatasetUse], state: PlanningState) -> None:
        """The checks of datasets that are joined or appended. Their rows cannot be deleted, so quarantine fails."""
        for use in {use.key: use for use in uses}.values():
            checks = [
                check for check in self.catalogue.checks_of(use) if not isinstance(check, JoinMustMatch | SchemaCheck)
            ]
            self._planned(checks, CheckPoint.of_loaded(use, state), 0, 0)

    def before(self, each: PlacedOperation, state: PlanningState, rows_after: int, last: int) -> list[DeleteStep]:
        """The checks that look at the rows that an operation is going to take."""
        operation, point = each.operation, CheckPoint.of_working(state, rows_after)
        if isinstance(operation, Update):
            for check in self._joins_of(each):
                self._report_or_add(check, self._joined_by(check, operation, point), point)
        if isinstance(operation, Output) and operation.registers:
            declared = self.catalogue.datasets.get(operation.registers)
            if declared is not None and declared.checks:
                selector = self.expressions.selector(operation.selector, point.scope) if operation.selector else None
                use = DatasetUse(declared.id, declared.name, state.table, "none", ())
                own = replace(point, within=selector, dataset=use)
                return self._planned(declared.checks, own, last, each.seq)
        return []

    def after(self, each: PlacedOperation, state: PlanningState, rows_after: int) -> list[DeleteStep]:
        """The checks of the project that look at the rows after an operation."""
        point = CheckPoint.of_working(state, rows_after)
        return self._planned(self._written_at(each.seq), point, each.seq, self._next_seq(each.seq))

    # Where checks look

    def _anchor(self, check: Check) -> int | None:
        if check.at == END:
            return self._end(check)
        if check.at in {LOAD, "0"}:
            return 0
        for each in self.placed:
            own = each.operation
            if check.at == str(each.seq) or (each.path == MAIN and own.name == check.at) or own.assign == check.at:
                return each.seq
        known = [name for each in self.placed for name in (each.operation.name, each.operation.assign) if name]
        hint = did_you_mean(check.at, known) or f"write a seq, a name or a breakpoint label, {LOAD} or {END}"
        problem = f'looks at "{check.at}", which is not an operation of this project'
        self.problems.report(INVALID_CHECK.at(check.place("at"), name=check.label, problem=problem, hint=hint))
        return None

    def _end(self, check: Check) -> int:
        """The last step. Rows that are quarantined must not be in the outputs that come after the last change."""
        quarantines = check.severity is Severity.QUARANTINE
        seqs = (each.seq for each in self.placed if not (quarantines and isinstance(each.operation, Output)))
        return max(seqs, default=0)

    def _written_at(self, seq: int) -> list[Check]:
        return [
            check
            for index, check in enumerate(self.written)
            if self._anchors[index] == seq and not (isinstance(check, JoinMustMatch) and isinstance(check.join, str))
        ]

    def _joins_of(self, each: PlacedOperation) -> Iterator[JoinMustMatch]:
        """The checks that name a join of an operation by its alias, which is looked at where it is made."""
        for check in self.written:
            if isinstance(check, JoinMustMatch) and isinstance(check.join, str) and self._operation_of(check) is each:
                yield check

    def _operation_of(self, check: JoinMustMatch) -> PlacedOperation | None:
        alias = check.join if isinstance(check.join, str) else check.join.alias
        having = [each for each in self.placed if alias in each.operation.aliases]
        if check.at == END:
            return having[-1] if having else None
        anchor = self._anchors[self.written.index(check)]
        return next((each for each in having if each.seq == anchor), None)

    def unmatched_aliases(self) -> None:
        """Report checks that name a join which there is not."""
        aliases = [alias for each in self.placed for alias in each.operation.aliases]
        for check in self.written:
            is_alias = isinstance(check, JoinMustMatch) and isinstance(check.join, str)
            if is_alias and isinstance(check, JoinMustMatch) and self._operation_of(check) is None:
                hint = did_you_mean(check.subject, aliases) or "name a join of an update, or give alias, dataset_id, on"
                problem = f'names a join "{check.subject}", which no update has there'
                place = check.place("join_must_match")
                self.problems.report(INVALID_CHECK.at(place, name=check.label, problem=problem, hint=hint))

    def _next_seq(self, seq: int) -> int | None:
        return next((each.seq for each in self.placed if each.seq > seq), None)

    # Planning

    def _planned(
        self, checks: Sequence[Check], point: CheckPoint, last_seq: int, next_seq: int | None
    ) -> list[DeleteStep]:
        """Plan checks at a point; those that quarantine become steps between the two seqs."""
        steps = list[DeleteStep]()
        lineage = point.state.lineage
        for check in checks:
            planned = self._plan(check, point)
            if planned is not None and planned.severity == "quarantine" and point.of_dataset:
                planned = replace(planned, severity="fail")
            if planned is not None and planned.severity == "quarantine":
                step = self._quarantine(check, planned, last_seq + 1 + len(steps), next_seq)
                if step is None:
                    continue
                steps.append(step)
                lineage = step.lineage_after(lineage)
                planned = replace(planned, quarantined_by=step.seq)
            self._report_or_add(check, planned, point)
        return steps

    def _report_or_add(self, check: Check, planned: PlannedCheck | None, point: CheckPoint) -> None:
        if planned is None:
            return
        if point.dataset is None or not point.of_dataset:
            first = self._names.setdefault(planned.name, check)
            if first is not check and first.node is not check.node:
                where = f"{first.span.file} line {first.span.line}"
                self.problems.report(DUPLICATE_ID.at(check.span, kind="check", id=planned.name, first=where))
                return
        self.found.append(planned)

    def _quarantine(self, check: Check, planned: PlannedCheck, seq: int, next_seq: int | None) -> DeleteStep | None:
        place = check.place("severity")
        if planned.failing is None:
            problem = f"cannot quarantine: a {check.kind} check does not tell single rows by themselves"
            hint = "write `severity: fail` or `severity: warn`"
            self.problems.report(INVALID_CHECK.at(place, name=planned.name, problem=problem, hint=hint))
            return None
        if next_seq is not None and seq >= next_seq:
            problem = f"has no seq for the step that quarantines: {seq} is taken by the next operation"
            hint = "leave room between the seqs of operations, for example 10, 20, 30"
            self.problems.report(INVALID_CHECK.at(place, name=planned.name, problem=problem, hint=hint))
            return None
        failing = PlannedExpression(planned.failing.text, _within(planned.failing.tree, planned.within))
        return DeleteStep(
            seq=seq,
            id=self._step_id(planned.name),
            name=f"Quarantine: {planned.name}",
            description=planned.description or None,
            path=MAIN,
            place=check.span,
            breakpoint=None,
            selector=failing,
            reads=reads([("check", failing)]),
            adds=(),
            reason=f'the check "{planned.name}" failed: {planned.text}',
        )

    def _step_id(self, name: str) -> str:
        """Of its own for each step: the check of a dataset may quarantine where it is loaded and where registered."""
        before = self._quarantining.get(name, 0)
        self._quarantining[name] = before + 1
        return str(uuid.uuid5(_CHECK_IDS, f"{self.plan}/{name}" + (f"/{before}" if before else "")))

    def _plan(self, check: Check, point: CheckPoint) -> PlannedCheck | None:
        within = self._where(check, point)
        if check.where is not None and within is None:
            return None
        planned = PlannedCheck(
            name=_name_at(check, point),
            kind=check.kind,  # type: ignore[arg-type]
            severity=check.severity.value,
            at=point.rows_after,
            text=check.subject if check.kind == "expression" else f"{check.kind} {check.subject}",
            description=check.description,
            place=check.span,
            dataset=point.dataset,
            of_dataset=point.of_dataset,
            within=_both(point.within, within),
        )
        match check:
            case NotNull() | InSet() | Range() | PatternCheck():
                failing = self.expressions.condition(
                    check.failing(point.scope.tables[0].columns), point.scope, _IN_A_CHECK
                )
                return None if failing is None else replace(planned, failing=failing)
            case RowExpression():
                holds = self.expressions.selector(check.expression, point.scope, _IN_A_CHECK)
                if holds is None:
                    return None
                failing = PlannedExpression(holds.text, Apply("NOT", (holds.tree,), BOOLEAN))
                return replace(planned, failing=failing)
            case Unique():
                texts = [check.text_at(_quoted(name), check.kind) for name in check.columns]
                keys = grouping_columns(texts, point.scope, self.problems, UNGROUPABLE)
                return replace(planned, keys=keys) if len(keys) == len(check.columns) else None
            case Total(total=total) if isinstance(total, TotalTie):
                return self._tied(check, total, planned, point)
            case Total() | Freshness() | Complete():
                text = check.total if isinstance(check, Total) else check.condition
                assert isinstance(text, ExpressionText)  # noqa: S101 - the other form is the case before
                holds = self.expressions.aggregation(text, point.scope, frozenset(), None)
                return None if holds is None or not self._is_condition(check, holds) else replace(planned, total=holds)
            case JoinMustMatch():
                join = self._join(check, point)
                return None if join is None else replace(planned, join=join)
            case SchemaCheck():
                return self._decided(check, planned, point)
            case _:
                assert_never(check)

    def _where(self, check: Check, point: CheckPoint) -> PlannedExpression | None:
        if check.where is None:
            return None
        return self.expressions.selector(check.where, point.scope, _IN_A_CHECK)

    def _is_condition(self, check: Check, holds: PlannedExpression) -> bool:
        if holds.tree.type in {BOOLEAN, NULL}:
            return True
        problem = f"is not a condition: `{holds.text}` is a {holds.tree.type}"
        hint = "compare it, for example COUNT_ALL() > 0"
        self.problems.report(INVALID_CHECK.at(check.place(check.kind), name=check.label, problem=problem, hint=hint))
        return False

    def _tied(self, check: Total, total: TotalTie, planned: PlannedCheck, point: CheckPoint) -> PlannedCheck | None:
        use = None
        for reference in check.datasets:
            use = self.catalogue.use(reference, self.problems)
            if use is None:
                return None
        own = self.expressions.aggregation(total.expression, point.scope, frozenset(), None)
        other_scope = point.scope if use is None else Scope((dataset_table(use, use.table),))
        other = self.expressions.aggregation(total.equals, other_scope, frozenset(), None)
        if own is None or other is None:
            return None
        for text, value in (("expression", own), ("equals", other)):
            if value.tree.type.kind not in _NUMBERS:
                problem = f"is not a number: `{value.text}` is a {value.tree.type}"
                place = check.place("total", text)
                self.problems.report(INVALID_CHECK.at(place, name=check.label, problem=problem))
                return None
        return replace(planned, total=own, tie=Tie(other, use, f"{total.tolerance:f}"))

    def _join(self, check: JoinMustMatch, point: CheckPoint) -> Join | None:
        written = check.join
        if isinstance(written, str):
            return None
        use = read_on(self.catalogue.use(written.dataset, self.problems), written, self.problems)
        if use is None:
            return None
        scope = replace(point.scope, tables=(*point.scope.tables, dataset_table(use, written.alias)))
        condition = self.expressions.condition(written.on, scope, "in a join condition")
        condition = on_day(condition, written, point.scope, self.expressions)
        return None if condition is None else Join(written.alias, use, condition)

    def _joined_by(self, check: JoinMustMatch, operation: Update, point: CheckPoint) -> PlannedCheck | None:
        """The check of a join that an update makes, for the rows that it is made for."""
        written = next(join for join in operation.arguments.joins if join.alias == check.subject)
        quiet = Problems()
        inside = self.expressions.reporting_to(quiet)
        selector = inside.selector(operation.selector, point.scope) if operation.selector else None
        scope = point.scope
        use = read_on(self.catalogue.use(written.dataset, quiet), written, quiet)
        condition = None
        if use is not None:
            tables = (*scope.tables, dataset_table(use, written.alias))
            condition = inside.condition(written.on, replace(scope, tables=tables), "in a join condition")
            condition = on_day(condition, written, scope, inside)
        if use is None or condition is None or (operation.selector and selector is None):
            problem = (
                f'cannot look at the join "{check.subject}": it needs what the same update joins before or selects by'
            )
            hint = "check the result with not_null, or write a join of its own with alias, dataset_id and on"
            place = check.place("join_must_match")
            self.problems.report(INVALID_CHECK.at(place, name=check.label, problem=problem, hint=hint))
            return None
        within = _both(selector, self._where(check, point))
        if check.severity is Severity.QUARANTINE:
            self._quarantine(check, _of_join(check, point, within, condition, use, written.alias), 0, None)
            return None
        return _of_join(check, point, within, condition, use, written.alias)

    def _decided(self, check: SchemaCheck, planned: PlannedCheck, point: CheckPoint) -> PlannedCheck | None:
        """What the columns are is known now. Nothing is decided where something else is wrong with them."""
        if point.state.is_opaque:
            return None
        columns = {column.name: column.type for column in point.state.schema.visible}
        problem = "; ".join(_schema_problems(check, columns))
        if problem and check.severity is not Severity.WARN:
            self.problems.report(INVALID_CHECK.at(check.place("schema"), name=check.label, problem=f"fails: {problem}"))
            return None
        return replace(planned, decided=problem)


def _of_join(
    check: JoinMustMatch,
    point: CheckPoint,
    within: PlannedExpression | None,
    condition: PlannedExpression,
    use: DatasetUse,
    alias: str,
) -> PlannedCheck:
    return PlannedCheck(
        name=check.label,
        kind="join_must_match",
        severity=check.severity.value,
        at=point.rows_after,
        text=f"join_must_match {alias}: {condition.text}",
        description=check.description,
        place=check.span,
        within=within,
        join=Join(alias, use, condition),
    )


def _schema_problems(check: SchemaCheck, columns: Mapping[str, object]) -> Iterator[str]:
    expected = check.expected
    for name, type_ in expected.columns.items():
        if name not in columns:
            yield f'there is no column "{name}"'
        elif columns[name] != type_:
            yield f'"{name}" is a {columns[name]}, not a {type_}'
    if expected.exact:
        yield from (f'there is another column "{name}"' for name in columns if name not in expected.columns)


def _name_at(check: Check, point: CheckPoint) -> str:
    """The name of a check in a run; those of a dataset carry its id."""
    return check.label if point.dataset is None else f"{point.dataset.dataset_id}: {check.label}"


def _both(first: PlannedExpression | None, second: PlannedExpression | None) -> PlannedExpression | None:
    if first is None or second is None:
        return first or second
    return PlannedExpression(f"({first.text}) AND ({second.text})", Apply("AND", (first.tree, second.tree), BOOLEAN))


def _within(failing: Expression, within: PlannedExpression | None) -> Expression:
    """A condition for rows that are checked; what may fail is not asked about other rows."""
    return failing if within is None else Apply("IF", (within.tree, failing, Constant(False, BOOLEAN)), BOOLEAN)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
