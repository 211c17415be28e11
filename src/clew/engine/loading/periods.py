"""Which rows count for a run: those of its period and of all below it, or those that hold as of its first day."""

from collections.abc import Iterable
from datetime import date

from clew.definitions import Period, PeriodTree
from clew.definitions.dataset import PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN
from clew.engine.loading.conversions import day_of_text
from clew.engine.sql import quoted
from clew.engine.sql.literals import text_literal
from clew.lang.types import STRING
from clew.plan.datasets import DatasetUse


def periods_read(period: Period, periods: PeriodTree) -> tuple[str, ...]:
    """The identifiers that rows of a run's period may have."""
    return tuple(
        dict.fromkeys((period.identifier, *(each.identifier for each in periods.descendants(period.identifier))))
    )


def period_condition(use: DatasetUse, period: Period, periods: PeriodTree) -> str | None:
    """SQL over the columns of a dataset that is TRUE for the rows that count and FALSE for others; None: all count."""
    if use.all_days:
        return None
    match use.temporal_mode:
        case "period":
            identifiers = _text_list(periods_read(period, periods))
            return f"coalesce({quoted(PERIOD_COLUMN)} IN ({identifiers}), FALSE)"
        case "bitemporal":
            begun = _compares(use, PERIOD_FROM_COLUMN, "<=", period.start_date, periods)
            not_ended = _compares(use, PERIOD_TO_COLUMN, ">", period.start_date, periods)
            return f"coalesce({begun} AND ({quoted(PERIOD_TO_COLUMN)} IS NULL OR {not_ended}), FALSE)"
        case "none":
            return None


def _compares(use: DatasetUse, column: str, operator: str, day: date, periods: PeriodTree) -> str:
    """SQL that compares a column of days, or of identifiers that stand for their first day, with a day."""
    value = quoted(column)
    literal = f"DATE'{day.isoformat()}'"
    if not _is_text(use, column):
        return f"{value} {operator} {literal}"
    fits = [
        each.identifier
        for each in periods.periods
        if (each.start_date <= day if operator == "<=" else each.start_date > day)
    ]
    return f"({value} IN ({_text_list(fits)}) OR coalesce({day_of_text(value)} {operator} {literal}, FALSE))"


def is_no_time(use: DatasetUse, column: str, periods: PeriodTree) -> str | None:
    """SQL that is TRUE where a text is neither a day nor a period; None for columns that cannot hold such a text."""
    if column not in {PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN} or not _is_text(use, column):
        return None
    value = quoted(column)
    known = _text_list(each.identifier for each in periods.periods)
    return f"NOT coalesce({value} IN ({known}) OR {day_of_text(value)} IS NOT NULL, {value} IS NULL)"


def first_day_of_text(text: str, periods: Iterable[Period]) -> str:
    """SQL for the day that a text means as a day or as the identifier of a period; NULL where it is neither."""
    pairs = ", ".join(f"{text_literal(each.identifier)}, DATE'{each.start_date.isoformat()}'" for each in periods)
    day = day_of_text(text)
    return f"coalesce({day}, try_element_at(map({pairs}), {text}))" if pairs else day


def _is_text(use: DatasetUse, column: str) -> bool:
    return any(each.name == column and each.type == STRING for each in use.columns)


def _text_list(texts: Iterable[str]) -> str:
    """Texts for the right side of IN; one that nothing equals where there are none."""
    return ", ".join(map(text_literal, texts)) or "NULL"
