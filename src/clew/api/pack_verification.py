"""Verifies an evidence pack: as its own verifier does, and where the seal key is there, the seals of its events."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from clew.api.verification import Finding, Verification
from clew.deferred import dataclass
from clew.events.chain import SealKey, chain_hash
from clew.events.codec import decode
from clew.events.envelope import RawEvent
from clew.evidence import pack_verifier
from clew.evidence.archive import VERIFIER, verifier_source
from clew.evidence.signing import EvidenceKey

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class PackVerification(Verification):
    """What was checked in a pack, and what was found."""

    fingerprint: str = ""
    """Of the key that signed it."""
    is_own_key: bool | None = None
    """Whether it is the key of this environment; None where no environment is known."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew verify PACK --json`."""
        # `super()` does not work in a class with slots that dataclasses made anew.
        return {**Verification.to_json(self), "key": self.fingerprint, "is_own_key": self.is_own_key}


def is_pack(place: Path) -> bool:
    """Whether a name is that of a pack rather than of a run."""
    return place.is_file() or (place / pack_verifier.ENVELOPE).is_file()


def verify_pack(place: Path, *, key: str | None = None, seal: SealKey | None = None) -> PackVerification:
    """Check a pack. With a fingerprint, require that this key signed it; with the seal key, check seals of events."""
    started = time.perf_counter()
    report = pack_verifier.verify(place, key)
    findings = [Finding("pack", problem) for problem in report.findings]
    checked = dict(report.checked)
    own = None if seal is None else EvidenceKey.of(seal).fingerprint == report.fingerprint
    try:
        members = pack_verifier.read_folder(place) if place.is_dir() else pack_verifier.read_archive(place)
    except Exception:  # noqa: BLE001 - what cannot be read is a finding already
        members = {}
    if members.get(VERIFIER) != verifier_source():
        checked["verifiers of another version"] = 1
    if own and seal is not None and not findings:
        sealed, problems = _seals(members, seal)
        checked["seals"] = sealed
        findings += problems
    seconds = time.perf_counter() - started
    return PackVerification(checked, tuple(findings), seconds, fingerprint=report.fingerprint, is_own_key=own)


def _seals(members: Mapping[str, bytes], seal: SealKey) -> tuple[int, list[Finding]]:
    """How many events have the right seal, and those that do not."""
    right, problems = 0, list[Finding]()
    runs = json.loads(members["evidence.json"])["runs"]
    for run_id, run in runs.items():
        for line in members[run["events"]].decode().splitlines():
            data = json.loads(line)
            if data.pop("withheld", False) or data["run_seq"] <= run["unsealed"]:
                continue
            try:
                event = decode(RawEvent, data)
                is_right = chain_hash(event, event.previous_hash or "", seal) == event.hash
            except _UNREADABLE:
                is_right = False
            right += is_right
            if not is_right:
                problems.append(Finding(f"run {run_id}", f"event {data['run_seq']}: its seal is wrong"))
    return right, problems
