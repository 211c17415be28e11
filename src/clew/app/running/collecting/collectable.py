"""What can be let go: one thing, and the protocol of those who know about things that get old."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Removable:
    """A thing that nobody needs."""

    kind: str
    """run, dataset-version, leftover, or what a collectable calls its things."""
    name: str
    reason: str
    size: int
    """Bytes that its removal frees."""

    def to_json(self) -> dict[str, object]:
        """The form of `gc --json`."""
        return {"kind": self.kind, "name": self.name, "reason": self.reason, "bytes": self.size}


class Collectable(Protocol):
    """A kind of thing beside runs that gets old, such as captures. It says what may go, and takes it away."""

    @property
    def kind(self) -> str:
        """What its things are called; `run`, `dataset-version` and `leftover` are taken."""
        ...

    def expired(self, now: datetime, without_runs: Collection[str]) -> Sequence[Removable]:
        """What may go, once these runs are gone too."""
        ...

    def remove(self, thing: Removable) -> None:
        """Take one of them away. Doing it again changes nothing."""
        ...
