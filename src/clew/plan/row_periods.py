"""Which rows of a dataset a run for a period sees, decided in Python: the small data of scenarios."""

import re
from collections.abc import Mapping
from datetime import date, datetime

from clew.definitions import Period, PeriodTree
from clew.lang.typed import Value
from clew.plan.datasets import DatasetUse

_USUAL_IDENTIFIER = re.compile(r"(\d{4})(?:-(?:Q([1-4])|(0[1-9]|1[0-2])))?", re.ASCII)
"""How years, quarters and months are called, in calendars that are generated."""


def is_seen(row: Mapping[str, Value], use: DatasetUse, period: Period, periods: PeriodTree) -> bool:
    """Whether a row belongs to the run's period by the temporal mode of its dataset."""
    if use.all_days:
        return True
    match use.temporal_mode:
        case "none":
            return True
        case "period":
            below = {each.identifier for each in periods.descendants(period.identifier)}
            return row.get("_period") in {period.identifier, *below}
        case "bitemporal":
            first = first_day(row.get("_period_from"), periods)
            last = first_day(row.get("_period_to"), periods)
            return first is not None and first <= period.start_date and (last is None or period.start_date < last)


def first_day(value: object, periods: PeriodTree) -> date | None:
    """The day that a value means: itself, or the first one of the period that it names; None if it means none.

    A scenario lists the periods it is about; its rows may start or end in others, so default names are known too.
    """
    if isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    text = str(value)
    found = periods.period(text)
    if found is not None:
        return found.start_date
    usual = _USUAL_IDENTIFIER.fullmatch(text)
    try:
        if usual is None:
            return date.fromisoformat(text)
        year, quarter, month = usual.groups()
        return date(int(year), int(month) if month else 3 * int(quarter or 1) - 2, 1)
    except ValueError:
        return None
