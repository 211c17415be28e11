"""Checkpoints: where the ledger of an environment stood when a run ended, and at intervals while a worker runs.

They are kept in a file outside the state store, from which they are sent to event buses.

A ledger that was shortened, or replaced by an older copy, holds in itself. It does not hold against its checkpoints.
"""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from clew.api.checkpoint_delivery import expect, send_waiting
from clew.api.kept_checkpoints import Checkpoint, checkpoint_file
from clew.diagnostics import ClewError
from clew.events.chain import SealKey
from clew.events.codec import canonical_json, iso
from clew.events.envelope import StoredEvent
from clew.events.ledger import LedgerEntry
from clew.events.meanings import meaning_of
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.seal_keys import seal_key
from clew.storage.whole_lines import append_line
from clew.store.ledger import SqlLedgerReader

_log = logging.getLogger(__name__)


def keep_checkpoint(environment: RunEnvironment, ledger: SqlLedgerReader, event: StoredEvent) -> None:
    """After an event with which a run ends, write down the last entry of the ledger. A run never fails by this."""
    status = meaning_of(event).status
    if status is not None and status.is_terminal:
        _keep(environment, ledger, event.emitted_at, event.run_id)


def keep_checkpoints(environment: RunEnvironment, ledger: SqlLedgerReader, stop: threading.Event) -> None:
    """Write down the last entry of the ledger at intervals, if there are new ones, until `stop` is set."""
    known = 0
    while not stop.wait(environment.settings.evidence.checkpoint_minutes * 60):
        known = _keep(environment, ledger, utc_now(), environment.name, after=known) or known


def _keep(
    environment: RunEnvironment, ledger: SqlLedgerReader, at: datetime, occasion: str, after: int = 0
) -> int | None:
    """Keep a checkpoint of the last entry, if it comes after one that is known, and send it to the event buses.

    The occasion is the run that ended, or the environment.
    """
    try:
        last = ledger.last()
        if last is None or last.seq <= after:
            return None
        checkpoint = _checkpoint(last, seal_key(environment), at, occasion)
        expect(environment, checkpoint_file(environment))
        _write(checkpoint_file(environment), checkpoint)
    except (OSError, ClewError) as error:
        _log.warning("no checkpoint of the ledger was kept: %s", error)
        return None
    if environment.settings.bus:
        # Not a daemon: a process that ends waits until the receivers have it, or have not answered in time.
        sending = (environment, checkpoint_file(environment))
        threading.Thread(target=send_waiting, args=sending, name="checkpoint").start()
    return last.seq


def _document(checkpoint: Checkpoint) -> dict[str, object]:
    return {name: getattr(checkpoint, name) for name in Checkpoint.__slots__}


def _checkpoint(entry: LedgerEntry, key: SealKey, at: datetime, occasion: str) -> Checkpoint:
    plain = Checkpoint(entry.tenant_id, entry.environment_id, entry.seq, entry.hash, iso(at), occasion=occasion)
    return replace(plain, seal=plain.sealed(key))


def _write(path: Path, checkpoint: Checkpoint) -> None:
    """One line, which only the owner may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    append_line(path, canonical_json(_document(checkpoint)).encode(), mode=0o600)


def checkpoint_problems(found: list[Checkpoint | str], entries: dict[int, LedgerEntry], key: SealKey) -> Iterator[str]:
    """Where the ledger is not what it was."""
    for each in found:
        if isinstance(each, str):
            yield each
        elif each.seal != each.sealed(key):
            yield f"the checkpoint of {each.at} was changed"
        elif each.seq not in entries:
            yield f"entry {each.seq}, of {each.at} or before, is missing: the ledger was shortened"
        elif entries[each.seq].hash != each.hash:
            yield f"entry {each.seq} is not the one that was there at {each.at}"
