"""Explanations and why-nots as one role sees them.

Answers are made from the values as they are, since they recompute and follow them, and are filtered as a whole before
anyone sees them. Every record of an answer is named here; `tests/privacy/test_answer_records.py` fails when one gets
a field that this module does not know.
"""

from collections.abc import Callable
from dataclasses import replace

from clew.deferred import dataclass
from clew.explain.tree import (
    Appended,
    Cause,
    Contributor,
    Decision,
    Deleted,
    Explanation,
    Input,
    JoinedRow,
    KeptRow,
    Loaded,
    Parents,
    Recomputed,
    Summarised,
    Unset,
    Updated,
    WindowRows,
)
from clew.explain.why_not import (
    DeletedBefore,
    Elsewhere,
    InOutput,
    LeftOut,
    MadeLater,
    NeverLoaded,
    NotWritten,
    Verdict,
    Whereabouts,
    WhyNot,
)
from clew.plan.datasets import DatasetUse
from clew.plan.operations import ChangingStep, CreatingStep
from clew.privacy.eyes import ColumnEyes, RunEyes
from clew.privacy.masking import NOT_SHOWN


@dataclass(frozen=True, slots=True)
class Answers:
    """Filters answers. Explanations may lead into other runs, each with a plan of its own."""

    eyes_of: Callable[[str], RunEyes]
    """The eyes of the role on a run, by its id."""

    def explanation(self, told: Explanation) -> Explanation:
        """An explanation as the role sees it."""
        eyes = self.eyes_of(told.run_id)
        return replace(
            told,
            label=eyes.working.label(told.label),
            value=eyes.working.value(told.column, told.value),
            cause=self._cause(told, eyes),
        )

    def why_not(self, told: WhyNot) -> WhyNot:
        """Why rows are missing from an output, as the role sees it."""
        eyes = self.eyes_of(told.run_id).working
        elsewhere = told.never_loaded
        return replace(
            told,
            rows=tuple(_whereabouts(row, eyes) for row in told.rows),
            never_loaded=None if elsewhere is None else self._never_loaded(elsewhere, eyes),
        )

    def _never_loaded(self, told: NeverLoaded, eyes: ColumnEyes) -> NeverLoaded:
        found = list[Elsewhere]()
        for each in told.elsewhere:
            columns = eyes if each.run_id is None else self.eyes_of(each.run_id).working
            found.append(replace(each, label=columns.label(each.label)))
        return replace(told, elsewhere=tuple(found), upstream=tuple(map(self.why_not, told.upstream)))

    def _maybe(self, told: Explanation | None) -> Explanation | None:
        return None if told is None else self.explanation(told)

    def _cause(self, told: Explanation, eyes: RunEyes) -> Cause:
        cause, working = told.cause, eyes.working
        match cause:
            case Loaded():
                return replace(cause, upstream=self._maybe(cause.upstream))
            case Updated():
                return self._updated(cause, told.column, eyes)
            case Summarised():
                return self._summarised(cause, told.column, eyes)
            case Appended():
                source = eyes.step(cause.step.seq).datasets[0].use
                return replace(
                    cause,
                    inputs=tuple(self._input(each, _of_dataset(each, source, eyes)) for each in cause.inputs),
                    recomputed=_recomputed(cause.recomputed, told.column, working),
                    upstream=self._maybe(cause.upstream),
                )
            case Deleted():
                return _deleted(cause, working)
            case Unset():
                return cause

    def _updated(self, cause: Updated, column: str, eyes: RunEyes) -> Updated:
        step = eyes.step(cause.step.seq)
        calls = step.window_calls if isinstance(step, ChangingStep) else ()
        clear = {each.column: all(map(eyes.working.is_clear, (column, *each.read))) for each in calls}
        uses = {join.alias: join.dataset for join in step.lookups}
        joins = {id(each): _joined(each, eyes.dataset(uses[each.alias])) for each in cause.joins}
        inputs = list[Input]()
        for each in cause.inputs:
            told = each.explanation
            if isinstance(told, JoinedRow):
                columns = eyes.dataset(uses[told.alias])
                seen = self._input(each, (columns, each.name.removeprefix(f"{told.alias}.")))
                inputs.append(replace(seen, explanation=joins.get(id(told)) or _joined(told, columns)))
            elif each.name in clear:
                inputs.append(each if clear[each.name] else replace(each, value=NOT_SHOWN))
            else:
                inputs.append(self._input(each, (eyes.working, each.name)))
        return replace(
            cause,
            inputs=tuple(inputs),
            joins=tuple(joins[id(each)] for each in cause.joins),
            recomputed=_recomputed(cause.recomputed, column, eyes.working),
            windows=tuple(self._window(each, clear[each.call], eyes) for each in cause.windows),
        )

    def _window(self, told: WindowRows, is_clear: bool, eyes: RunEyes) -> WindowRows:
        """Other rows behind a value. Their order, and who brought in the most, would tell what a masked one hides."""
        working = eyes.working
        contributors = told.parents.contributors if is_clear else ()
        return replace(
            told,
            value=told.value if is_clear else NOT_SHOWN,
            group=working.state(told.group),
            parents=Parents(told.parents.count, tuple(self._contributor(each, None, eyes) for each in contributors)),
        )

    def _summarised(self, cause: Summarised, column: str, eyes: RunEyes) -> Summarised:
        working = eyes.working
        step = eyes.step(cause.step.seq)
        source = step.made_from if isinstance(step, CreatingStep) else None
        # Who brought in how much, and who the most, would tell the values behind a masked total.
        contributors = cause.parents.contributors if working.is_clear(column) else ()
        seen = tuple(self._contributor(each, source, eyes) for each in contributors)
        return replace(
            cause,
            group=working.state(cause.group),
            parents=Parents(cause.parents.count, seen),
            recomputed=_recomputed(cause.recomputed, column, working),
        )

    def _contributor(self, each: Contributor, source: DatasetUse | None, eyes: RunEyes) -> Contributor:
        columns = eyes.working if source is None else eyes.dataset(source)
        inputs = tuple(
            self._input(value, (columns, value.name) if source is None else _of_dataset(value, source, eyes))
            for value in each.inputs
        )
        return replace(each, label=columns.label(each.label) or each.row_id or "a row", inputs=inputs)

    def _input(self, each: Input, column: tuple[ColumnEyes, str]) -> Input:
        """A value that went in. A joined row beside it is left to the caller, who knows its dataset."""
        columns, name = column
        told = self.explanation(each.explanation) if isinstance(each.explanation, Explanation) else each.explanation
        return replace(
            each, value=columns.value(name, each.value), explanation=told, upstream=self._maybe(each.upstream)
        )


def _of_dataset(each: Input, use: DatasetUse, eyes: RunEyes) -> tuple[ColumnEyes, str]:
    return eyes.dataset(use), each.name.removeprefix(f"{use.table}.")


def _joined(told: JoinedRow, columns: ColumnEyes) -> JoinedRow:
    label = None if told.label is None else columns.label(told.label) or None
    return replace(told, row=None if told.row is None else columns.state(told.row), label=label)


def _recomputed(told: Recomputed, column: str, columns: ColumnEyes) -> Recomputed:
    """Whether a value is right may be seen by everyone; the values, and errors that quote them, may not."""
    if columns.is_clear(column):
        return told
    return replace(
        told,
        stored=columns.value(column, told.stored),
        recomputed=columns.value(column, told.recomputed),
        reason=told.reason if told.outcome == "not checked" else None,
    )


def _deleted(cause: Deleted, columns: ColumnEyes) -> Deleted:
    seen = tuple(_decision(each, columns) for each in cause.decisions)
    return replace(cause, decisions=seen, kept=None if cause.kept is None else _kept(cause.kept, columns))


def _kept(told: KeptRow, columns: ColumnEyes) -> KeptRow:
    """Which row stayed may be seen by everyone who sees that a row was deleted; what both were called may not."""
    is_clear = all(columns.is_clear(name) for name in told.values)
    return replace(
        told,
        label=columns.label(told.label),
        values=columns.state(told.values),
        own=columns.state(told.own),
        recomputed=told.recomputed if is_clear else replace(told.recomputed, reason=None),  # it may quote a value
    )


def _decision(each: Decision, columns: ColumnEyes) -> Decision:
    if all(columns.is_clear(name) for name in each.values):
        return each
    return replace(each, value=NOT_SHOWN, values=columns.state(each.values))


def _whereabouts(row: Whereabouts, columns: ColumnEyes) -> Whereabouts:
    return replace(row, label=columns.label(row.label), verdict=_verdict(row.verdict, columns))


def _verdict(verdict: Verdict, columns: ColumnEyes) -> Verdict:
    match verdict:
        case Deleted():
            return _deleted(verdict, columns)
        case LeftOut():
            return replace(verdict, decisions=tuple(_decision(each, columns) for each in verdict.decisions))
        case InOutput():
            return InOutput(columns.state(verdict.state), columns.state(verdict.not_written))
        case DeletedBefore() | MadeLater() | NotWritten():
            return verdict
