"""Questions about two runs, or about a run and what would change it, within what the principal may see of both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from clew.api.opened_environment import OpenedEnvironment
from clew.api.run_parameters import plan_for_run
from clew.change.attribution import AttributionQuestion, AttributionSide, attribute
from clew.change.bridge import ChangeBridge
from clew.change.comparing import CompareQuestion, CompareSide, compare_runs
from clew.change.comparison import RunComparison
from clew.change.impact import PlanImpact, failing, impact_of
from clew.change.restating import (
    Restatements,
    RowAsked,
    StatedValue,
    key_asked,
    restatements,
    value_asked,
    value_in,
)
from clew.change.sensitivity import Sensitivity, sensitivity
from clew.change.suppositions import recorded_supposition, suppositions_of
from clew.change.what_if import WhatIf, what_if
from clew.diagnostics import UserError
from clew.diagnostics.codes.changes import DIFFERENT_PROJECTS
from clew.events.snapshot import RunStatus
from clew.privacy.eyes import RunEyes
from clew.runs.request import RunFilter, RunRecord


def compared(at: OpenedEnvironment, run: str, other: str, question: CompareQuestion) -> tuple[RunComparison, str]:
    """In what a run differs from another, and the question in words, for the record."""
    at.policy.require_rows()
    sides = [_side(at, each) for each in (run, other)]
    found = compare_runs(sides[0], sides[1], question)
    where = None if question.where is None else sides[0].eyes.recorded(question.where)
    asked = {"output": question.output, "at": question.at, "where": where, "sort": question.sort}
    return found, ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None) or "last output"


def attributed(at: OpenedEnvironment, run: str, other: str, question: AttributionQuestion) -> tuple[ChangeBridge, str]:
    """Why a value of the other run is not that of a run, and the question in words, for the record."""
    at.policy.require_rows()
    sides = [AttributionSide(trace, RunEyes.of(at.policy, trace.plan)) for trace in (at.trace(run), at.trace(other))]
    found = attribute(sides[0], sides[1], question)
    return found, f"why {question.column} changed{_asked_where(sides[0].eyes, question.where)}"


def _asked_where(eyes: RunEyes, where: str | None) -> str:
    return "" if where is None else f" where {eyes.working.recorded(where)}"


def supposed(
    at: OpenedEnvironment,
    run: str,
    question: CompareQuestion,
    *,
    sets: Sequence[str],
    drops: Sequence[str],
    expressions: Sequence[str],
    parameters: Mapping[str, object],
) -> tuple[WhatIf, str]:
    """What would differ from a run, and the question in words, for the record."""
    at.policy.require_rows()
    trace = at.trace(run)
    eyes = RunEyes.of(at.policy, trace.plan)
    suppositions = suppositions_of(
        trace.plan, eyes, sets=sets, drops=drops, expressions=expressions, parameters=parameters
    )
    told = "; ".join(recorded_supposition(trace.plan, eyes, text) for text in suppositions.texts)
    seen = (eyes.working, RunEyes.of(at.policy, suppositions.plan).working)
    return what_if(trace, seen, suppositions, question), f"what if: {told}{_asked_where(eyes, question.where)}"


def sensed(
    at: OpenedEnvironment, run: str, column: str, *, output: int | None, after: int | None, where: str | None
) -> tuple[Sensitivity, str]:
    """Which reference data the sum of a column hangs on, and the question in words, for the record."""
    at.policy.require_rows()
    trace = at.trace(run)
    eyes = RunEyes.of(at.policy, trace.plan)
    found = sensitivity(trace, eyes, column, output, after, where)
    return found, f"what the total of {column} hangs on{_asked_where(eyes, where)}"


def impacted(
    at: OpenedEnvironment,
    run: str,
    project: str | None,
    *,
    parameters: Mapping[str, object],
    fail_if: str | None,
    limit: int,
) -> tuple[PlanImpact, str]:
    """What a project, as its file has it now, would have made of a run, and the question in words, for the record.

    Parameters have the values that they had in the run, unless others are given.
    """
    at.policy.require_rows()
    trace = at.trace(run)
    view = at.runs.view(run)
    record = view.record
    files = at.files
    wanted = files.plan(project or record.request.project_id)
    if wanted.name != trace.plan.name:
        problem = f"the run {run} is one of {trace.plan.name}, not of {wanted.name}"
        raise UserError(DIFFERENT_PROJECTS.anywhere(problem=problem))
    declared = {each.name for each in wanted.extensions.parameters}
    given = {name: value for name, value in record.request.values.items() if name in declared}
    settings = at.environment.settings
    plan = plan_for_run(wanted, files, trace.period, settings.parameters, {**given, **parameters})
    eyes = [RunEyes.of(at.policy, each).working for each in (trace.plan, plan)]
    found = impact_of(trace, plan, eyes, checked=view.snapshot.checks, limit=limit)
    failed = () if fail_if is None else failing(found, fail_if)
    return replace(found, failed=failed), f"what {plan.name} as edited would change"


_DRAFT = "draft"
_MOST_EARLIER = 20
"""So many runs before a run are asked."""


def restated(at: OpenedEnvironment, record: RunRecord, row: str, column: str, step: int | None) -> Restatements:
    """What earlier runs for the same period had in the place of a value.

    Asks the runs that have completed before this one; drafts only if it is a draft itself, and none as of a time.
    """
    at.policy.require_rows()
    asked = RowAsked(at.trace(record.run_id), row, column, step)
    RunEyes.of(at.policy, asked.trace.plan).working.require(column, "ask about")
    now, cells = value_asked(asked)
    own = StatedValue(record.run_id, record.completed_at or record.created_at, now)
    earlier = list(islice(_before(at, record), _MOST_EARLIER + 1))
    states, notes, key = [own], list[str](), tuple[str, ...]()
    for each in earlier[:_MOST_EARLIER]:
        try:
            other = at.trace(each.run_id)
            RunEyes.of(at.policy, other.plan).working.require(column, "ask about")
            found = key_asked(asked, other)
            if found is None:
                notes.append("rows without a key cannot be found in other runs")
                break
            key = found
            states.append(
                StatedValue(each.run_id, each.completed_at or each.created_at, value_in(asked, cells, key, other))
            )
        except UserError as error:
            notes.append(f"run {each.run_id[:8]} could not be asked: {error.diagnostic.message}")
    if len(earlier) > _MOST_EARLIER:
        notes.append(f"only the last {_MOST_EARLIER} runs before this one were asked")
    eyes = RunEyes.of(at.policy, asked.trace.plan).working
    return restatements(column, eyes.state({name: cells[name] for name in key}), states, notes)


def _before(at: OpenedEnvironment, record: RunRecord) -> Iterator[RunRecord]:
    """The runs for the same period whose results came before, newest first."""
    request = record.request
    which = RunFilter(
        environment_id=at.environment.name,
        project_id=request.project_id,
        period=request.period,
        status=RunStatus.COMPLETED,
    )
    behind: RunRecord | None = record
    while found := at.runs.runs(which, _MOST_EARLIER, behind):
        for each in found:
            is_draft = each.request.project_version == _DRAFT
            if each.request.as_of is None and (not is_draft or request.project_version == _DRAFT):
                yield each
        behind = found[-1]


def _side(at: OpenedEnvironment, run: str) -> CompareSide:
    trace = at.trace(run)
    return CompareSide(trace, RunEyes.of(at.policy, trace.plan).working)
