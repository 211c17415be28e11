"""Verifications on record: when a run was verified, by whom, and with which result."""

import logging
from datetime import datetime
from typing import TYPE_CHECKING

from clew.api.opened_environment import OpenedEnvironment
from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.events.ledger import EntryKind, LedgerEntry, LedgerNote

if TYPE_CHECKING:  # pages show records, and do not load what verifies
    from clew.api.verification import Verification

_log = logging.getLogger(__name__)
_OF_EVERYTHING = frozenset({"ledger", "checkpoints", "record of runs"})
"""Subjects of findings after which nothing can be said about single runs."""


@dataclass(frozen=True, slots=True)
class VerificationRecord:
    """A verification that was done."""

    at: datetime
    by: str
    is_intact: bool
    is_deep: bool
    findings: int
    """About the run, or about everything if all of it was verified."""
    of_everything: bool

    def to_json(self) -> dict[str, object]:
        """The form of `verification` in `clew show --json`."""
        return {
            "at": self.at.isoformat(),
            "by": self.by,
            "intact": self.is_intact,
            "deep": self.is_deep,
            "findings": self.findings,
            "of_everything": self.of_everything,
        }


def record_verification(at: OpenedEnvironment, subject_id: str, found: "Verification") -> None:
    """Add a verification to the ledger.

    Not if the ledger itself does not hold: an entry after the break would only blur what happened. Nor if the list of
    runs could not be read: runs that were not looked at would pass for verified.
    """
    if any(finding.subject in _OF_EVERYTHING for finding in found.findings):
        return
    failed = sorted({finding.subject.removeprefix("run ") for finding in found.findings})
    content = {
        "by": at.principal.name,
        "intact": found.is_intact,
        "deep": found.is_deep,
        "findings": len(found.findings),
        "about": failed[:100],
    }
    try:
        at.state.ledger_writer.note(LedgerNote(EntryKind.VERIFIED, subject_id, content))
    except ClewError as error:
        _log.warning("the verification was not recorded: %s", error)


def last_verification(at: OpenedEnvironment, run_id: str) -> VerificationRecord | None:
    """The last verification of a run, alone or with everything else in its environment."""
    own = at.state.ledger.last(EntryKind.VERIFIED, run_id)
    whole = at.state.ledger.last(EntryKind.VERIFIED, at.environment.name)
    created = at.state.ledger.last(EntryKind.RUN_CREATED, run_id)
    if whole is not None and (created is None or whole.seq < created.seq):
        whole = None
    if whole is not None and (own is None or own.seq < whole.seq):
        return _record(whole, run_id)
    return None if own is None else _record(own, None)


def _record(entry: LedgerEntry, run_id: str | None) -> VerificationRecord:
    """What an entry says, about one run where it is about all of them."""
    content = entry.content
    about = content["about"]
    is_intact = bool(content["intact"]) or (run_id is not None and isinstance(about, list) and run_id not in about)
    return VerificationRecord(
        at=entry.recorded_at,
        by=str(content["by"]),
        is_intact=is_intact,
        is_deep=bool(content["deep"]),
        findings=0 if is_intact else int(str(content["findings"])),
        of_everything=run_id is not None,
    )
