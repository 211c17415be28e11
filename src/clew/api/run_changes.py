"""Questions about two runs, within what the principal may see of both."""

from collections.abc import Sequence

from clew.api.opened_environment import OpenedEnvironment
from clew.change.attribution import AttributionQuestion, AttributionSide, attribute
from clew.change.bridge import ChangeBridge
from clew.change.comparing import CompareQuestion, CompareSide, compare_runs
from clew.change.comparison import RunComparison
from clew.change.suppositions import recorded_supposition, suppositions_of
from clew.change.what_if import WhatIf, what_if
from clew.privacy.eyes import RunEyes


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
    where = "" if question.where is None else f" where {sides[0].eyes.working.recorded(question.where)}"
    return found, f"why {question.column} changed{where}"


def supposed(
    at: OpenedEnvironment,
    run: str,
    question: CompareQuestion,
    *,
    sets: Sequence[str],
    drops: Sequence[str],
    expressions: Sequence[str],
) -> tuple[WhatIf, str]:
    """What would differ from a run, and the question in words, for the record."""
    at.policy.require_rows()
    trace = at.trace(run)
    eyes = RunEyes.of(at.policy, trace.plan)
    suppositions = suppositions_of(trace.plan, eyes, sets=sets, drops=drops, expressions=expressions)
    told = "; ".join(recorded_supposition(trace.plan, eyes, text) for text in suppositions.texts)
    return what_if(trace, eyes.working, suppositions, question), f"what if: {told}"


def _side(at: OpenedEnvironment, run: str) -> CompareSide:
    trace = at.trace(run)
    return CompareSide(trace, RunEyes.of(at.policy, trace.plan).working)
