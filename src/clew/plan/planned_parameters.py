"""Parameters of a plan, and the period of a run, as expressions see them."""

from datetime import date

from clew.deferred import dataclass
from clew.lang.functions.run_period import PERIOD_END, PERIOD_ID, PERIOD_LEVEL, PERIOD_START
from clew.lang.typed import Constant, Value, value_from_text
from clew.lang.types import Type

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

    @property
    def facts(self) -> dict[str, Value]:
        """What the functions about the period of a run give."""
        return {
            f"{PERIOD_ID}()": self.identifier,
            f"{PERIOD_LEVEL}()": self.level,
            f"{PERIOD_START}()": self.start,
            f"{PERIOD_END}()": self.end,
        }
