"""Tamper evidence: each event carries the hash of the one before it, sealed with a key.

A chain shows that events were changed, removed or inserted after they were stored. Without the key nobody can write
another chain that holds. The ledger of the environment knows where chains end.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import field, fields
from functools import cached_property

from clew.deferred import dataclass
from clew.events.codec import canonical_json, encode
from clew.events.envelope import RawEvent

LEAST_BYTES = 16
"""A shorter key could be guessed."""


@dataclass(frozen=True)
class SealKey:
    """A secret key. It is never stored in the database."""

    secret: bytes = field(repr=False)

    @cached_property
    def id(self) -> str:
        """Tells keys apart without telling what they are."""
        return hashlib.sha256(b"clew seal key\0" + self.secret).hexdigest()[:16]

    def seal(self, text: str) -> str:
        """What only a holder of the key can compute for a text."""
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


KeySource = Callable[[], SealKey]
"""Gives the key when something is sealed for the first time: those who only read need none."""


GENESIS = "0" * 64
"""Stands for the hash before the first event of a run."""

_HASHED = tuple(f.name for f in fields(RawEvent) if f.name not in {"previous_hash", "hash"})


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """A place where the history is not what was stored."""

    run_seq: int
    problem: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The outcome of a verification."""

    verified: int
    """Events whose hash is right."""
    unchained: int
    """Events without a seal: from before histories were sealed."""
    breaks: tuple[ChainBreak, ...]

    def to_json(self) -> dict[str, object]:
        """The form of `clew events --verify --json`."""
        return {
            "intact": self.is_intact,
            "verified": self.verified,
            "unchained": self.unchained,
            "breaks": [{"run_seq": each.run_seq, "problem": each.problem} for each in self.breaks],
        }

    @property
    def is_intact(self) -> bool:
        """Whether nothing contradicts the history."""
        return not self.breaks


def event_content(event: RawEvent) -> list[object]:
    """Everything that an event says, without its place in the chain."""
    return [encode(getattr(event, name)) for name in _HASHED]


def chain_hash(event: RawEvent, previous_hash: str, key: SealKey) -> str:
    """The hash of an event as a link after the previous one."""
    return key.seal(canonical_json([previous_hash, *event_content(event)]))


def verify_chain(
    events: Iterable[RawEvent], *, key: SealKey, last_seq: int, last_hash: str | None, adopted: int = 0
) -> ChainReport:
    """Check a whole history against its hashes, and its end against the run's record.

    The first `adopted` events are from before histories were sealed; a missing hash in the others is a break.
    """
    previous = GENESIS
    expected_seq, verified, unchained = 1, 0, 0
    breaks: list[ChainBreak] = []
    for event in events:
        if event.run_seq != expected_seq:
            breaks.append(ChainBreak(expected_seq, f"events {expected_seq} to {event.run_seq - 1} are missing"))
        expected_seq = event.run_seq + 1
        if event.run_seq <= adopted:
            unchained += 1
            previous = event.hash or GENESIS
            continue
        if event.hash is None:
            breaks.append(ChainBreak(event.run_seq, "the event has no hash"))
            unchained += 1
            continue
        if event.previous_hash != previous:
            breaks.append(ChainBreak(event.run_seq, "the event before it is not the one that was there"))
        if chain_hash(event, event.previous_hash or "", key) != event.hash:
            breaks.append(ChainBreak(event.run_seq, "the event was changed"))
        else:
            verified += 1
        previous = event.hash
    if expected_seq - 1 < last_seq:
        breaks.append(ChainBreak(expected_seq, f"events {expected_seq} to {last_seq} are missing"))
    elif last_hash is not None and last_hash != previous:
        breaks.append(ChainBreak(last_seq, "the last event is not the one that was stored last"))
    return ChainReport(verified, unchained, tuple(breaks))
