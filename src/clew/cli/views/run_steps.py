"""The steps of a run in lines: what each did, in numbers, as its event tells it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.cli.views.page import plain
from clew.plan import Plan
from clew.runs.artifacts import ArtifactRef

LOAD = "load"
_WIDEST_NAME = 34
_COUNTED = {
    "update": ("rows_updated", "changed"),
    "delete": ("rows_deleted", "deleted"),
    "aggregate": ("rows_created", "created"),
    "append": ("rows_created", "created"),
    "output": ("rows_written", "rows"),
    LOAD: ("loaded", "rows"),
}


@dataclass(frozen=True, slots=True)
class StepLines:
    """Lines of the steps of one plan, in columns of one width."""

    plan: Plan
    sources: str = ""
    """Where the input was read from, once it is known."""

    def line(self, step_id: str, told: str) -> str:
        """A step with what is to be told about it."""
        return f"   {self.label(step_id):<6}  {self.name(step_id):<{self._width}}  {told}".rstrip()

    def done(self, step_id: str, counts: Mapping[str, int], artifacts: Sequence[ArtifactRef]) -> str:
        """A step that has committed."""
        return self.line(step_id, outcome(self.type(step_id), counts, artifacts, self.sources))

    def label(self, step_id: str) -> str:
        """What stands for the step: its seq."""
        return step_id

    def name(self, step_id: str) -> str:
        """The name that the user gave the step."""
        found = self.plan.input.name if step_id == LOAD else self._names.get(step_id, "")
        text = plain(found).plain
        return text if len(text) <= _WIDEST_NAME else text[: _WIDEST_NAME - 1] + "…"

    def type(self, step_id: str) -> str:
        """The kind of the step."""
        return LOAD if step_id == LOAD else next(s.type for s in self.plan.steps if str(s.seq) == step_id)

    @property
    def _names(self) -> dict[str, str]:
        return {str(step.seq): step.name for step in self.plan.steps}

    @property
    def _width(self) -> int:
        return max(len(self.name(step_id)) for step_id in (LOAD, *self._names))


def outcome(type_: str, counts: Mapping[str, int], artifacts: Sequence[ArtifactRef], sources: str = "") -> str:
    """What a step did: a number right-aligned, what it counts, and where the rows came from or went."""
    key, noun = _COUNTED[type_]
    told = f"{counts.get(key, 0):>9,} {noun}"
    where = sources if type_ == LOAD else destination(artifacts)
    if not where:
        return told
    return f"{told}  {plain(where).plain}" if type_ == LOAD else f"{told} -> {plain(where).plain}"


def destination(artifacts: Sequence[ArtifactRef]) -> str:
    """Where the rows of an output went: the dataset where they became one, else the path or the table."""
    dataset = next((ref.uri.removeprefix("dataset:") for ref in artifacts if ref.kind == "dataset-version"), None)
    if dataset is not None:
        name, _, version = dataset.rpartition("@")
        return f"dataset {name} v{version}"
    place = next((ref.uri for ref in artifacts if ref.kind == "output"), "")
    kind, _, where = place.partition(":")
    return f"table {where}" if kind == "table" else where
