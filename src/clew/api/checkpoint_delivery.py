"""Sends checkpoints to event buses until each bus has confirmed each of them, in order.

The outbox of events is in the state store, and checkpoints witness against that store: what waits must not be there. So
the file of checkpoints is itself the queue, and a small file beside it says for each bus how far it has got.
"""

import fcntl
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.bus.buses import announcing_buses
from clew.bus.event_bus import Announcing, checkpoint_document
from clew.diagnostics import ClewError
from clew.runs.environment import RunEnvironment

_log = logging.getLogger(__name__)
_RETRY_S = 30.0


def expect(environment: RunEnvironment, path: Path) -> None:
    """Note for buses that are new where they begin: with what is written from now on."""
    written = path.stat().st_size if path.exists() else 0
    for name, _ in announcing_buses(environment, environment.secrets()):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError), _opened(_place_file(path, name), os.O_CREAT | os.O_EXCL | os.O_RDWR) as place:
            _Place(place).move(written)


def send_waiting(environment: RunEnvironment, path: Path) -> bool:
    """Send what buses have not confirmed yet. Returns whether nothing is left; a bus that fails is told in the log."""
    has_sent_all = True
    for name, opened in announcing_buses(environment, environment.secrets()):
        try:
            has_sent_all &= _send(environment, path, name, opened())
        except (ClewError, OSError) as error:
            _log.warning("checkpoints of the ledger wait for the bus %s: %s", name, error)
            has_sent_all = False
    return has_sent_all


def keep_sending(environment: RunEnvironment, path: Path, stop: threading.Event) -> None:
    """Send what waits every now and then, until `stop` is set."""
    while not stop.wait(_RETRY_S):
        if path.exists():
            send_waiting(environment, path)


def _send(environment: RunEnvironment, path: Path, name: str, bus: Announcing) -> bool:
    """Send to one bus, unless another process does so at this moment."""
    with _opened(_place_file(path, name), os.O_CREAT | os.O_RDWR) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        place = _Place(descriptor)
        for line, end in _lines_after(path, place.offset):
            document = _document(environment, line)
            if document is not None:
                bus.announce(document)
            place.move(end)
    return True


def _document(environment: RunEnvironment, line: bytes) -> bytes | None:
    """What buses get of a line; None if it is not a checkpoint, which `clew verify` reports."""
    try:
        checkpoint = json.loads(line)
        occasion = checkpoint.get("occasion") or environment.name
        return checkpoint_document(environment.scope, str(checkpoint["at"]), occasion, checkpoint)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _place_file(path: Path, bus: str) -> Path:
    return path.with_name(f"{path.stem}.{bus}.sent")


class _Place:
    """How far a bus has got in the file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        text = os.pread(descriptor, 40, 0).decode(errors="replace").strip()
        self.offset = int(text) if text.isdecimal() else 0

    def move(self, offset: int) -> None:
        """The bus has confirmed everything before the offset."""
        os.pwrite(self._descriptor, f"{offset:<39}\n".encode(), 0)
        os.fsync(self._descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lines_after(path: Path, offset: int) -> Iterator[tuple[bytes, int]]:
    """The lines that a bus has not got, each with where it ends.

    Where the file has become shorter it is another file, and all of it is new.
    """
    content = path.read_bytes()
    begin = offset if offset <= len(content) else 0
    for line in content[begin:].splitlines(keepends=True):
        begin += len(line)
        if line.endswith(b"\n"):
            yield line, begin
