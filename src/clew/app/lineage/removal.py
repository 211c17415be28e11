"""What programs have sent about their traces, once it is older than anybody asks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from clew.app.running.collecting.collectable import Removable
from clew.tracelink.pruning import Age, Kept, TracePruner


@dataclass(frozen=True, slots=True)
class OldLineage:
    """Frames, links and windows in the state store from before a moment, whichever environment has collected them."""

    pruner: TracePruner
    before: datetime
    kind: str = "lineage"

    def expired(self, now: datetime, without_runs: Collection[str] = ()) -> Sequence[Removable]:
        """What may go: a line for each kind of record. It frees room in the database, not on the disk."""
        del now, without_runs
        counts = {kept: self.pruner.count(kept, Age.before(self.before)) for kept in Kept}
        return [
            Removable(self.kind, kept.value, f"{count:,} from before {self.before:%Y-%m-%d %H:%M} UTC", 0)
            for kept, count in counts.items()
            if count
        ]

    def remove(self, thing: Removable) -> None:
        """Take all of a kind away."""
        self.pruner.prune(Kept(thing.name), Age.before(self.before))
