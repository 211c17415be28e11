"""Tamper evidence: each event carries the hash of the one before it.

A chain shows that events were changed, removed or inserted after they were stored. It does not stop anyone from
rewriting the whole chain; to detect that, keep its last hash elsewhere.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields

from clew.events.codec import canonical_json, encode
from clew.events.envelope import RawEvent

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
    """Events from before the chain was switched on, about which nothing can be said."""
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


def chain_hash(event: RawEvent, previous_hash: str) -> str:
    """The hash of an event as a link after the previous one."""
    content = [encode(getattr(event, name)) for name in _HASHED]
    return hashlib.sha256(canonical_json([previous_hash, *content]).encode()).hexdigest()


def verify_chain(events: Iterable[RawEvent], *, last_seq: int, last_hash: str | None) -> ChainReport:
    """Check a whole history against its hashes, and its end against the run's record."""
    previous = GENESIS
    expected_seq, verified, unchained = 1, 0, 0
    breaks: list[ChainBreak] = []
    for event in events:
        if event.run_seq != expected_seq:
            breaks.append(ChainBreak(expected_seq, f"events {expected_seq} to {event.run_seq - 1} are missing"))
        expected_seq = event.run_seq + 1
        if event.hash is None:
            if verified:
                breaks.append(ChainBreak(event.run_seq, "the event has no hash, though the ones before it have"))
            unchained += 1
            continue
        if event.previous_hash != previous:
            breaks.append(ChainBreak(event.run_seq, "the event before it is not the one that was there"))
        if chain_hash(event, event.previous_hash or "") != event.hash:
            breaks.append(ChainBreak(event.run_seq, "the event was changed"))
        else:
            verified += 1
        previous = event.hash
    if expected_seq - 1 < last_seq:
        breaks.append(ChainBreak(expected_seq, f"events {expected_seq} to {last_seq} are missing"))
    elif last_hash is not None and last_hash != previous:
        breaks.append(ChainBreak(last_seq, "the last event is not the one that was stored last"))
    return ChainReport(verified, unchained, tuple(breaks))
