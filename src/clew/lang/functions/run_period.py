"""What expressions can ask about the period of their run. The values are put in place when a run is requested."""

from clew.deferred import dataclass
from clew.lang.functions.declaration import Example, Family, NullRule, Parameter
from clew.lang.types import DATE, STRING, Type

PERIOD_ID, PERIOD_LEVEL, PERIOD_START, PERIOD_END = "PERIOD_ID", "PERIOD_LEVEL", "PERIOD_START", "PERIOD_END"


@dataclass(frozen=True, slots=True)
class PeriodFunction:
    """A fact about the period of a run."""

    name: str
    sentence: str
    type: Type
    family: Family = Family.DATE
    parameters: tuple[Parameter, ...] = ()
    nulls: NullRule = NullRule.HANDLES
    examples: tuple[Example, ...] = ()

    @property
    def returns(self) -> str:
        """The type of the result, in words."""
        return str(self.type)


_ALL = (
    PeriodFunction(PERIOD_START, "The first day of the period that the run is for.", DATE),
    PeriodFunction(PERIOD_END, "The last day of the period that the run is for.", DATE),
    PeriodFunction(PERIOD_ID, "The identifier of the period that the run is for, such as 2026-01.", STRING),
    PeriodFunction(PERIOD_LEVEL, "The calendar level of the period that the run is for, such as month.", STRING),
)

PERIOD_FUNCTIONS = {function.name: function for function in _ALL}
