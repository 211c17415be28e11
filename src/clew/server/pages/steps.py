"""The steps at which rows can be looked at, for sliders."""

from dataclasses import dataclass

from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class Stop:
    """A step on a slider; 0 is loading."""

    seq: int
    label: str
    name: str
    did: str
    """What kind of operation it is."""


@dataclass(frozen=True, slots=True)
class Stepper:
    """All steps and the one that is looked at."""

    stops: tuple[Stop, ...]
    at: int

    @property
    def index(self) -> int:
        """The place of the present step among all."""
        return next((index for index, stop in enumerate(self.stops) if stop.seq == self.at), 0)

    @property
    def present(self) -> Stop:
        """The step that is looked at."""
        return self.stops[self.index]


def stepper(trace: RunTrace, at: int) -> Stepper:
    """A slider over the steps of a run."""
    loaded = Stop(0, "load", f"Load {trace.plan.input.name}", "load")
    return Stepper((loaded, *(Stop(step.seq, str(step.seq), step.name, step.type) for step in trace.run.reached)), at)
