"""Periods by the names that people give them when they ask for a run."""

from collections.abc import Sequence

from clew.definitions import Period, WorkspaceDefinitions
from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import UNKNOWN_PERIOD


def period_of(workspace: WorkspaceDefinitions, identifier: str) -> Period:
    """A period of the workspace's calendars. UserError with near names where there is none."""
    period = workspace.periods.period(identifier)
    if period is None:
        raise UserError(UNKNOWN_PERIOD.anywhere(name=identifier, hint=_periods_there_are(workspace.periods.periods)))
    return period


def _periods_there_are(periods: Sequence[Period]) -> str | None:
    """The first and last period of each level: a near name would often be of another year."""
    levels = dict[str, list[str]]()
    for each in sorted(periods, key=lambda period: period.start_date):
        levels.setdefault(each.level, []).append(each.identifier)
    spans = [f"{level}s {names[0]} to {names[-1]}" if len(names) > 1 else names[0] for level, names in levels.items()]
    return f"the calendars have {', '.join(spans)}" if spans else None
