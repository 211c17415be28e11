"""Scenarios cut out of runs, within what the principal may see."""

from clew.api.opened_environment import OpenedEnvironment
from clew.api.questions import one_row
from clew.privacy.eyes import RunEyes
from clew.scenarios.cutting import CutQuestion, ScenarioCut, cut_scenario


def scenario_cut_of(
    at: OpenedEnvironment, run: str, where: str, *, step: int | None, group: bool, mask: bool
) -> tuple[ScenarioCut, str]:
    """The scenario of the one row that matches a condition, and the question in words, for the record."""
    at.policy.require_rows()
    files = at.files
    row = one_row(at, run, where, step)
    trace = at.trace(run)
    told = f"the row where {at.seen(at.runs.find(run)).recorded(where)}"
    question = CutQuestion(row, told, with_group=group, masks_all=mask)
    return cut_scenario(trace, RunEyes.of(at.policy, trace.plan), files.loaded, question), f"scenario of {told}"
