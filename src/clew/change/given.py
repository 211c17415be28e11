"""What two runs were given beside data and operations: values of parameters, and what functions say about the period.

They stand in the expressions of a run as constants that remember their names, so that each can be exchanged by itself.
"""

from collections.abc import Collection, Mapping, Sequence

from clew.change.points import AnyStep
from clew.deferred import dataclass
from clew.lang.functions.run_period import PERIOD_ID, is_period_call
from clew.lang.typed import Value
from clew.plan.binding import given_values, said, said_value, with_values
from clew.plan.operations import Step
from clew.plan.plan import Plan
from clew.plan.planned_parameters import PREFIX
from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class GivenEdit:
    """Something that expressions of both runs are given, with another value in the second."""

    name: str
    """As constants remember it: `param.threshold`, or `PERIOD_END()`."""
    old: Value
    new: Value

    def told(self) -> str:
        """What changed, in words."""
        return f"{said(self.name)} {said_value(self.old)} -> {said_value(self.new)}"


@dataclass(frozen=True, slots=True)
class GivenValues:
    """What two runs were given."""

    first: Mapping[str, Value]
    """What the first was given, as far as the second was given it too."""
    parameters: tuple[GivenEdit, ...]
    period: tuple[GivenEdit, ...]
    """What functions say about the period. They change together with it."""
    inseparable: tuple[str, ...]
    """Functions about the period that only one of the runs calls: what they say counts as part of its operations."""

    @classmethod
    def of(cls, traces: tuple[RunTrace, RunTrace], steps: tuple[Sequence[Step], Sequence[Step]]) -> "GivenValues":
        """What differs in what the steps of two runs were given."""
        used = given_values(tuple(steps[0])).keys() | given_values(tuple(steps[1])).keys()
        known = tuple(_known(trace) for trace in traces)
        shared = [name for name in sorted(known[0].keys() & known[1].keys()) if _is_alike(name, traces)]
        edits = [
            GivenEdit(name, known[0][name], known[1][name])
            for name in shared
            if name in used and known[0][name] != known[1][name]
        ]
        return cls(
            first={name: known[0][name] for name in shared},
            parameters=tuple(each for each in edits if each.name.startswith(PREFIX)),
            period=tuple(each for each in edits if is_period_call(each.name)),
            inseparable=tuple(sorted(set(filter(is_period_call, used)) - set(shared))),
        )

    def placed(self, steps: Sequence[AnyStep], made: Collection[GivenEdit]) -> tuple[AnyStep, ...]:
        """Steps with the values of the first run, but for those edits that are made."""
        if not self.parameters and not self.period:
            return tuple(steps)
        values = {**self.first, **{each.name: each.new for each in made}}
        return tuple(with_values(step, values) for step in steps)


def _known(trace: RunTrace) -> dict[str, Value]:
    declared = {PREFIX + each.name: each.constant.value for each in trace.plan.extensions.parameters}
    asked = {name: value for name, value in given_values(trace.plan.steps).items() if is_period_call(name)}
    return {**declared, f"{PERIOD_ID}()": trace.period, **asked}


def _is_alike(name: str, traces: tuple[RunTrace, RunTrace]) -> bool:
    """Whether a parameter has the same type in both runs; with another type, it is another operation."""
    types = [_types(trace.plan).get(name) for trace in traces]
    return types[0] == types[1]


def _types(plan: Plan) -> dict[str, object]:
    return {PREFIX + each.name: each.type for each in plan.extensions.parameters}
