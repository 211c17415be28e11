"""Parameters of a plan, and the period of a run, as expressions see them."""

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.lang.functions.run_period import (
    PERIOD_COUNT,
    PERIOD_END,
    PERIOD_ID,
    PERIOD_LEVEL,
    PERIOD_LIST,
    PERIOD_START,
)
from clew.lang.literals import text_of_value
from clew.lang.typed import Constant, Value, value_from_text
from clew.lang.types import Type

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Period, PeriodTree

PREFIX = "param."


@dataclass(frozen=True, slots=True)
class PlannedParameter:
    """A parameter: its type, and its value as text; None where a run has to give it."""

    name: str
    type: Type
    value: str | None
    allowed: tuple[str, ...]

    @property
    def constant(self) -> Constant:
        """What stands for it in expressions."""
        value = None if self.value is None else value_from_text(self.value, self.type)
        return Constant(value, self.type, PREFIX + self.name)


@dataclass(frozen=True, slots=True)
class RunPeriod:
    """The period of a run, as expressions see it."""

    identifier: str
    level: str
    start: date
    end: date
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The periods of each level that it has, itself included."""

    @classmethod
    def of(cls, period: "Period", periods: "PeriodTree") -> "RunPeriod":
        """A period of calendars, with what they have below it."""
        parts: dict[str, list[str]] = {each.level: [] for each in periods.periods}
        for each in (period, *periods.descendants(period.identifier)):
            parts.setdefault(each.level, []).append(each.identifier)
        listed = {level: tuple(dict.fromkeys(identifiers)) for level, identifiers in parts.items()}
        return cls(period.identifier, period.level, period.start_date, period.end_date, listed)

    @property
    def facts(self) -> dict[str, Value]:
        """What the functions about the period of a run give."""
        return {
            f"{PERIOD_ID}()": self.identifier,
            f"{PERIOD_LEVEL}()": self.level,
            f"{PERIOD_START}()": self.start,
            f"{PERIOD_END}()": self.end,
            **{f"{PERIOD_COUNT}({text_of_value(level)})": len(each) for level, each in self.parts.items()},
            **{f"{PERIOD_LIST}({text_of_value(level)})": _listed(each) for level, each in self.parts.items()},
        }


def _listed(identifiers: tuple[str, ...]) -> str:
    return f",{','.join(identifiers)}," if identifiers else ","
