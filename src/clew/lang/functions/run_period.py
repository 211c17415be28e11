"""What expressions can ask about the period of their run. The values are put in place when a run is requested."""

from clew.deferred import dataclass
from clew.lang.functions.declaration import Example, Family, NullRule, Parameter
from clew.lang.types import DATE, INTEGER, STRING, Type

PERIOD_ID, PERIOD_LEVEL, PERIOD_START, PERIOD_END = "PERIOD_ID", "PERIOD_LEVEL", "PERIOD_START", "PERIOD_END"
PERIOD_COUNT, PERIOD_LIST = "PERIOD_COUNT", "PERIOD_LIST"
HOLIDAYS = "HOLIDAYS"


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


_LEVEL = (Parameter("level", "a literal string: a level of the calendar"),)

_ALL = (
    PeriodFunction(PERIOD_START, "The first day of the period that the run is for.", DATE),
    PeriodFunction(PERIOD_END, "The last day of the period that the run is for.", DATE),
    PeriodFunction(PERIOD_ID, "The identifier of the period that the run is for, such as 2026-01.", STRING),
    PeriodFunction(PERIOD_LEVEL, "The calendar level of the period that the run is for, such as month.", STRING),
    PeriodFunction(
        PERIOD_COUNT,
        "How many periods of a level the period of the run has, itself included; NULL if no calendar has the level.",
        INTEGER,
        parameters=_LEVEL,
    ),
    PeriodFunction(
        PERIOD_LIST,
        "The identifiers of these periods, with a comma before and after each; NULL if no calendar has the level.",
        STRING,
        parameters=_LEVEL,
    ),
    PeriodFunction(
        HOLIDAYS,
        "The holidays of a calendar, each as an argument of WORKDAY: it stands nowhere else. They are those that the "
        "calendar had when the project was compiled.",
        DATE,
        parameters=(Parameter("calendar", "a literal string: the id of a calendar"),),
    ),
)

PERIOD_FUNCTIONS = {function.name: function for function in _ALL}


def is_period_call(name: str) -> bool:
    """Whether a constant that remembers this name is a fact about the period of a run."""
    return name.partition("(")[0] in PERIOD_FUNCTIONS
