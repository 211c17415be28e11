"""Why a total differs between two runs: everything that differs between them is exchanged, one cause at a time.

Inputs are pinned and steps are pure functions, so that each mixture of both runs can really be calculated. The parts of
the causes add up to the difference exactly, and calculating both runs as they are must give what they have stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from decimal import Decimal, localcontext

from clew import budgets
from clew.change.bridge import BridgeCause, BridgeMode, CauseKind, CauseRow, ChangeBridge
from clew.change.comparing import require_same_project
from clew.change.material import LOADED, PERIOD, TODAY, Edit, Material, added_up, steps_until
from clew.change.points import Point, combined, conditions_at, points_of
from clew.change.recomputing import OWN_PERIOD, trees_of
from clew.change.row_edits import RowCells, RowEdit
from clew.change.shares import rounded, sequential_shares, shapley_shares
from clew.change.step_edits import StepEdit
from clew.deferred import dataclass
from clew.definitions.privacy import Sight
from clew.diagnostics import ClewError, UserError, did_you_mean
from clew.diagnostics.codes.changes import INVALID_COMPARISON, NOT_RECOMPUTABLE, RECOMPUTATION_DIFFERS
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.lang.typed import Value, columns_of
from clew.lang.types import Kind, Type
from clew.plan.binding import said_value
from clew.plan.operations import Step
from clew.privacy.eyes import ColumnEyes, RunEyes
from clew.storage.parts import ORDINAL
from clew.trace.reader import RunTrace

_MOST_CAUSES = 8
"""With more, all orders of causes are too many; causes are then taken together."""
_MOST_SINGLE_ROWS = 4
"""So many rows of a reference dataset are causes by themselves."""
_MOST_SHOWN = 20
_MOST_ALONE = 10


@dataclass(frozen=True, slots=True)
class AttributionSide:
    """One of two runs, and how the caller sees its columns and those of its datasets."""

    trace: RunTrace
    eyes: RunEyes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionQuestion:
    """The value that is asked about: the sum of a column over the rows that match a condition."""

    column: str
    where: str | None = None
    output: int | None = None
    at: int | None = None
    mode: BridgeMode = "shapley"


@dataclass(frozen=True, slots=True)
class _Cause:
    kind: CauseKind
    title: str
    edits: tuple[Edit, ...]
    details: tuple[str, ...] = ()


def attribute(a: AttributionSide, b: AttributionSide, question: AttributionQuestion) -> ChangeBridge:
    """Why the value of the second run is not that of the first."""
    require_same_project(a.trace, b.trace)
    for side in (a, b):
        side.eyes.working.require_condition(question.where)
        side.eyes.working.require(question.column, "ask about")
    points = points_of(a.trace, b.trace, question.output, question.at)
    _require_number(a.trace, b.trace, points, question.column)
    return _Attribution(a, b, question, points).bridge()


def _require_number(a: RunTrace, b: RunTrace, points: tuple[Point, Point], column: str) -> None:
    types = list[Type]()
    for trace, point in ((a, points[0]), (b, points[1])):
        known = dict(trace.run.columns(point.seq))
        if column not in known:
            table = f"{trace.plan.input.table} after step {point.seq} of {trace.run_id}"
            raise UserError(UNKNOWN_COLUMN.anywhere(column=column, table=table, hint=did_you_mean(column, known)))
        types.append(known[column])
    if any(type_.kind not in {Kind.INTEGER, Kind.DECIMAL} for type_ in types):
        problem = f'"{column}" is {types[0]}: only integers and decimals can be split exactly'
        raise UserError(INVALID_COMPARISON.anywhere(problem=problem, hint="ask about a column with exact numbers"))


@dataclass(slots=True)
class _Attribution:
    a: AttributionSide
    b: AttributionSide
    question: AttributionQuestion
    points: tuple[Point, Point]
    _worth: dict[frozenset[Edit], Decimal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _cached: dict[str, object] = field(default_factory=dict)

    def bridge(self) -> ChangeBridge:
        self._require_recomputable()
        material = Material.of(
            self.a.trace, self.b.trace, self.points, column=self.question.column, where=self.question.where
        )
        self._note_what_is_not_separate(material)
        causes = self._causes(material)
        everything = frozenset(edit for cause in causes for edit in cause.edits)
        worth = {frozenset[Edit](): self._stored(0), everything: self._stored(1)}
        for edits, stored in worth.items():
            self._require_same(material, edits, stored)
        mode = self.question.mode
        if mode == "shapley" and len(causes) > _MOST_CAUSES:
            mode = "sequential"
            self.notes.append(f"{len(causes)} causes have too many orders, so they are taken one after the other")

        def worth_of(made: frozenset[int]) -> Decimal:
            return self._value(material, frozenset(edit for each in made for edit in causes[each].edits))

        share = shapley_shares if mode == "shapley" else sequential_shares
        amounts = rounded(share(len(causes), worth_of), self._scale)
        told = [
            self._told(material, cause, amount, worth_of(frozenset({number})))
            for number, (cause, amount) in enumerate(zip(causes, amounts, strict=True))
        ]
        if mode == "shapley" and any(each.interaction for each in told):
            self.notes.append(
                "causes work together: the part of each is its Shapley value, what it adds on average over all orders"
            )
        effective = [each for each in told if each.amount or each.alone]
        return ChangeBridge(
            run_a=self.a.trace.run_id,
            run_b=self.b.trace.run_id,
            point_a=self.points[0],
            point_b=self.points[1],
            column=self.question.column,
            where=self.question.where,
            value_a=self._stored(0),
            value_b=self._stored(1),
            mode=mode,
            causes=tuple(sorted(effective, key=lambda each: -abs(each.amount)) if mode == "shapley" else effective),
            without_effect=tuple(each.title for each in told if each not in effective),
            notes=tuple(self.notes),
            recomputed=len(self._worth),
        )

    @property
    def _scale(self) -> int:
        return max(
            dict(side.trace.run.columns(point.seq))[self.question.column].scale
            for side, point in zip((self.a, self.b), self.points, strict=True)
        )

    def _require_recomputable(self) -> None:
        for side, point in zip((self.a, self.b), self.points, strict=True):
            trees = [tree for step in steps_until(side.trace, point) for tree in trees_of(step)]
            trees += conditions_at(side.trace, point, self.question.where)
            if any(column == "_row_id" for tree in trees for _, column in columns_of(tree)):
                problem = "the value depends on row ids, which differ from run to run"
                raise UserError(NOT_RECOMPUTABLE.anywhere(problem=problem))

    # Values

    def _stored(self, side: int) -> Decimal:
        """The value that a run has."""
        known = self._cached.get(f"stored {side}")
        if isinstance(known, Decimal):
            return known
        trace, point = (self.a, self.b)[side].trace, self.points[side]
        conditions = conditions_at(trace, point, self.question.where)
        condition = combined(trace.plan.input.table, conditions, includes_deleted=point.includes_deleted)
        column = self.question.column
        rows = trace.working(point.seq).matching(condition, [column], trace.see)
        total = added_up(cells[column] for _, cells in rows)
        self._cached[f"stored {side}"] = total
        return total

    def _value(self, material: Material, made: frozenset[Edit]) -> Decimal:
        """The value where some edits are made, really calculated."""
        if made not in self._worth:
            budgets.check()
            try:
                self._worth[made] = material.value(made)
            except ClewError as error:
                if isinstance(error, budgets.QuestionStopped):
                    raise
                problem = f"a mixture of both runs cannot be calculated: {error}"
                raise UserError(NOT_RECOMPUTABLE.anywhere(problem=problem)) from error
        return self._worth[made]

    def _require_same(self, material: Material, edits: frozenset[Edit], stored: Decimal) -> None:
        found = self._value(material, edits)
        if found != stored:
            run = self.a.trace.run_id if not edits else self.b.trace.run_id
            problem = f"{self.question.column} of {run} is {stored:,f}, and is {found:,f} when it is calculated again"
            raise UserError(RECOMPUTATION_DIFFERS.anywhere(problem=problem))

    # Causes

    def _causes(self, material: Material) -> list[_Cause]:
        """Everything that differs, in the finest pieces that are few enough."""
        fine = list(self._listed(material, single_rows=True))
        if len(fine) <= _MOST_CAUSES:
            return fine
        coarse = list(self._listed(material, single_rows=False))
        if len(coarse) <= _MOST_CAUSES:
            return coarse
        return list(_by_dataset(coarse))

    def _note_what_is_not_separate(self, material: Material) -> None:
        if material.steps.together is not None:
            self.notes.append(material.steps.together)
        if material.given.inseparable and self.a.trace.period != self.b.trace.period:
            listed = ", ".join(material.given.inseparable)
            self.notes.append(f"what {listed} says belongs to the operations, since only one of the runs asks for it")

    def _listed(self, material: Material, *, single_rows: bool) -> Iterator[_Cause]:
        for group in material.steps.groups:
            told = material.steps.told(group)
            if told:
                title = told[0] if len(told) == 1 else f"{len(told)} operations"
                yield _Cause("code", title, group, told if len(told) > 1 else ())
        name = self.a.trace.plan.input.name
        for kind in ("added", "removed", "changed"):
            found = tuple(edit for edit in material.loaded.edits if edit.kind == kind)
            if found:
                yield _Cause("input", f"{_rows(len(found))} of {name} {kind}", found)
        for slot, rows in material.datasets.items():
            edits, kind = rows.edits, material.kind_of(slot)
            if kind == "reference" and single_rows and len(edits) <= _MOST_SINGLE_ROWS:
                for edit in edits:
                    yield _Cause(kind, self._row_title(material, slot, edit), (edit,))
            elif edits:
                yield _Cause(kind, f"{_rows(len(edits))} of {material.use_of(slot).name}", edits)
        yield from (_Cause("parameter", edit.told(), (edit,)) for edit in material.given.parameters)
        if self.a.trace.period != self.b.trace.period or material.given.period:
            title = f"period {self.a.trace.period} -> {self.b.trace.period}"
            yield _Cause("period", title, (PERIOD,), tuple(edit.told() for edit in material.given.period))
        if self.a.trace.today != self.b.trace.today and material.asks_for_today:
            yield _Cause("today", f"TODAY() {self.a.trace.today} -> {self.b.trace.today}", (TODAY,))

    def _row_title(self, material: Material, slot: str, edit: RowEdit) -> str:
        row = self._cause_row(material, edit, None)
        name = ", ".join(said_value(value) for value in row.key.values())
        called = f"{material.use_of(slot).name} {name}".strip()
        if edit.kind != "changed":
            return f"{called} {edit.kind}"
        changes = ", ".join(
            f"{each} {said_value(row.old.get(each))} -> {said_value(row.new.get(each))}" for each in row.new
        )
        return f"{called} {changes}"

    def _told(self, material: Material, cause: _Cause, amount: Decimal, alone: Decimal) -> BridgeCause:
        rows = [edit for edit in cause.edits if isinstance(edit, RowEdit)]
        before = self._stored(0)
        singly = len(rows) <= _MOST_ALONE
        with localcontext(prec=100):
            return BridgeCause(
                kind=cause.kind,
                title=cause.title,
                amount=amount,
                alone=alone - before,
                details=cause.details,
                rows=tuple(
                    self._cause_row(
                        material, edit, self._value(material, frozenset({edit})) - before if singly else None
                    )
                    for edit in rows[:_MOST_SHOWN]
                ),
                row_count=len(rows),
                seq_a=_seq(cause, lambda edit: edit.old),
                seq_b=_seq(cause, lambda edit: edit.new),
            )

    def _cause_row(self, material: Material, edit: RowEdit, alone: Decimal | None) -> CauseRow:
        old_eyes, new_eyes = (self._eyes(material, edit.dataset, side) for side in (0, 1))
        differing = [name for name in edit.columns if not name.startswith("_") or name == "_labels"]
        return CauseRow(
            change=edit.kind,
            key=_seen(old_eyes if edit.old is not None else new_eyes, edit.key),
            old={} if edit.old is None else _seen(old_eyes, {name: edit.old.get(name) for name in differing}),
            new={} if edit.new is None else _seen(new_eyes, {name: edit.new.get(name) for name in differing}),
            alone=alone,
            row_a=_row_id(self.a.trace, edit.old),
            row_b=_row_id(self.b.trace, edit.new),
        )

    def _eyes(self, material: Material, slot: str, side: int) -> ColumnEyes:
        found = (self.a, self.b)[side]
        if slot == LOADED:
            return found.eyes.working
        use = material.uses[side].get(slot)
        return found.eyes.dataset(use if use is not None else material.use_of(slot))


def _seq(cause: _Cause, side: Callable[[StepEdit], Step | None]) -> int | None:
    """The operation of one of the runs that a cause is, if it is a single one."""
    found = [step for edit in cause.edits if isinstance(edit, StepEdit) and (step := side(edit)) is not None]
    return found[0].seq if len(found) == 1 else None


def _row_id(trace: RunTrace, cells: RowCells | None) -> str | None:
    found = None if cells is None else cells.get(ORDINAL)
    return trace.row_ids.row_id(found) if isinstance(found, int) else None


def _seen(eyes: ColumnEyes, values: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: eyes.value(name, value)
        for name, value in values.items()
        if value != OWN_PERIOD and eyes.sight(name) is not Sight.HIDDEN
    }


def _by_dataset(causes: Iterable[_Cause]) -> Iterator[_Cause]:
    """Causes of the same kind together."""
    kinds = dict[CauseKind, list[_Cause]]()
    for cause in causes:
        kinds.setdefault(cause.kind, []).append(cause)
    for kind, found in kinds.items():
        edits = tuple(edit for cause in found for edit in cause.edits)
        title = found[0].title if len(found) == 1 else f"{len(found)} changes of {_KIND_NAMES[kind]}"
        yield _Cause(kind, title, edits, tuple(cause.title for cause in found) if len(found) > 1 else ())


_KIND_NAMES = {
    "code": "operations",
    "input": "input rows",
    "reference": "reference data",
    "appended": "appended data",
    "parameter": "parameters",
    "period": "the period",
    "today": "the day",
}


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
