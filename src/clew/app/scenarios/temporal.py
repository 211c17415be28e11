"""Which rows of a dataset a run for a period sees, decided in Python: the small data of scenarios."""

from collections.abc import Mapping
from datetime import date

from clew.lang.typed import Value
from clew.model import Period, PeriodTree
from clew.plan.datasets import DatasetUse


def is_seen(row: Mapping[str, Value], use: DatasetUse, period: Period, periods: PeriodTree) -> bool:
    """Whether a row belongs to the run's period by the temporal mode of its dataset."""
    match use.temporal_mode:
        case "none":
            return True
        case "period":
            below = {each.identifier for each in periods.descendants(period.identifier)}
            return row.get("_period") in {period.identifier, *below}
        case "bitemporal":
            first = _day(row.get("_period_from"), periods)
            last = _day(row.get("_period_to"), periods)
            return first is not None and first <= period.start_date and (last is None or period.start_date < last)


def _day(value: Value, periods: PeriodTree) -> date | None:
    """A date, or the first day of the period that an identifier stands for."""
    if isinstance(value, str):
        found = periods.period(value)
        return found.start_date if found else date.fromisoformat(value)
    return value if isinstance(value, date) else None
