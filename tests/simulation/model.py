"""The model of a run, `tools/model/run.tla`, as far as a log shows it: each move of a simulated run must be one of its.

TLC shows that the model keeps its promises, whatever happens within small bounds. This shows that the code moves as the
model does. What a worker does between two commits is in storage and in its memory; of that, the log shows what was
published, and under which token it was written.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

ACTIONS = ("Claim", "Release", "Commit", "Deliver", "DeliverLate", "Confirm", "Refuse")
"""Actions of the model that are seen. `Store`, by which an event enters the log and the outbox, is part of a commit."""


class NotInTheModel(Exception):
    """Something happened that the model does not know."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A step in the log."""

    seq: int
    token: int
    is_skipped: bool = False


@dataclass(slots=True)
class RunModel:
    """The state of one run. Names are those of the variables in run.tla."""

    token: int = 0
    work: dict[str, int] = field(default_factory=dict)
    """By worker, the token that it believes to hold the run with."""
    log: list[Committed] = field(default_factory=list)
    events: int = 0
    """How many events there are: each has a place in the outbox, not only commits of steps."""
    entries: set[int] = field(default_factory=set)
    received: Counter[int] = field(default_factory=Counter)
    dead: set[int] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    """How often each action happened."""

    def _require(self, action: str, condition: bool, why: str) -> None:
        if not condition:
            raise NotInTheModel(f"{action}: {why}")

    def _done(self, action: str) -> None:
        self.seen[action] += 1
        for invariant, holds in INVARIANTS.items():
            self._require(action, holds(self), f"{invariant} does not hold any more")

    # Leases

    def claim(self, who: str, token: int) -> None:
        """A worker or a signal takes the run."""
        self._require("Claim", token == self.token + 1, f"token {token} follows {self.token}")
        self.token = self.work[who] = token
        self._done("Claim")

    def release(self, who: str, token: int) -> None:
        """Whoever has the run returns it."""
        self._require("Release", self.work.get(who) == self.token, f"{who} does not have the run")
        self._require("Release", token == self.token + 1, f"token {token} follows {self.token}")
        self.token = token
        del self.work[who]
        self._done("Release")

    # Events

    def store(self, number: int) -> None:
        """An event is stored, and its entry in the outbox with it."""
        self._require("Commit", number == self.events + 1, f"event {number} follows {self.events}")
        self.events = number
        self.entries.add(number)

    def commit(self, who: str, seq: int, written_under: int | None) -> None:
        """A step is done: the event of it was stored, and what it has written is there."""
        self._require("Commit", self.work.get(who) == self.token, f"{who} does not have the run")
        why = f"its output was written under token {written_under}, not {self.token}"
        self._require("Commit", written_under == self.token, why)
        self.log.append(Committed(seq, self.token))
        self._done("Commit")

    def skip(self, who: str, seq: int) -> None:
        """A step is left out, as a person wants it. That is not in run.tla; it may happen before its turn."""
        self._require("Commit", self.work.get(who) == self.token, f"{who} does not have the run")
        self.log.append(Committed(seq, self.token, is_skipped=True))
        self._done("Commit")

    # The outbox

    def deliver(self, number: int) -> None:
        """The bus gets an event; once it was confirmed, only again from one that has held it for too long."""
        is_late = number not in self.entries
        action = "DeliverLate" if is_late else "Deliver"
        self._require(action, 1 <= number <= self.events, f"there is no event {number}")
        self._require(action, not is_late or self.received[number] > 0 or number in self.dead, "nobody has held it")
        self.received[number] += 1
        self._done(action)

    def confirm(self, number: int) -> None:
        """An entry leaves the outbox."""
        self._require("Confirm", number in self.entries, f"event {number} does not wait")
        self._require("Confirm", self.received[number] > 0, f"the bus does not have event {number}")
        self.entries.discard(number)
        self._done("Confirm")

    def bury(self, number: int) -> None:
        """An entry becomes a dead letter, refused for the last time."""
        self._require("Refuse", number in self.entries, f"event {number} does not wait")
        self.entries.discard(number)
        self.dead.add(number)
        self._done("Refuse")


def _each_step_once(run: RunModel) -> bool:
    seqs = [committed.seq for committed in run.log]
    return len(seqs) == len(set(seqs))


def _in_order(run: RunModel) -> bool:
    seqs = [committed.seq for committed in run.log if not committed.is_skipped]
    return seqs == sorted(seqs)


def _one_holder(run: RunModel) -> bool:
    return sum(token == run.token for token in run.work.values()) <= 1


def _lost(run: RunModel) -> Iterator[int]:
    for number in range(1, run.events + 1):
        if number not in run.entries and number not in run.dead and not run.received[number]:
            yield number


INVARIANTS: dict[str, Callable[[RunModel], bool]] = {
    "EachStepOnce": _each_step_once,
    "InOrder": _in_order,
    "OneHolder": _one_holder,
    "NothingIsLost": lambda run: not any(True for _ in _lost(run)),
}
"""By their names in run.tla. `CommitsHoldTheToken` and `ReadersSeeWhatWasCommitted` are conditions of `commit`."""
