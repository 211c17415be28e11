"""Lines are added whole or not at all, however full the disk is."""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.storage.local import LocalStorage
from clew.storage.removals import RUN, Journal, Removable, RemovalRecord
from clew.storage.whole_lines import append_line

WRITE = os.write


def nearly_full(_descriptor: int, data: bytes) -> int:
    """A disk that has room for half of it: the system says how much it has taken, and no more."""
    return WRITE(_descriptor, data[: len(data) // 2])


def full(_descriptor: int, _data: bytes) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("disk", [nearly_full, full])
def test_a_line_that_does_not_fit_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: Callable[[int, bytes], int]
) -> None:
    path = tmp_path / "folder" / "log"
    append_line(path, b"one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", disk)
        with pytest.raises(OSError, match=r"room|space") as caught:
            append_line(path, b"two, which is longer")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"one\n"
    append_line(path, b"three")
    assert path.read_bytes() == b"one\nthree\n"


def test_a_line_does_not_join_half_a_line_of_a_machine_that_died(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'one\n{"half": ')
    append_line(path, b"two")
    assert path.read_bytes() == b'one\n{"half": \ntwo\n'


def test_a_record_of_a_removal_is_kept_though_the_one_before_it_did_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(LocalStorage(tmp_path))

    def record(name: str) -> RemovalRecord:
        return RemovalRecord(datetime(2026, 1, 1, tzinfo=UTC), "ada", "dev", Removable(RUN, name, "old", 1))

    journal.add(record("first"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        with pytest.raises(OSError, match="no room for the whole line"):
            journal.add(record("second"))
    journal.add(record("third"))
    assert [each.thing.name for each in journal.records("dev")] == ["third", "first"]
    assert journal.removed_runs() == {"first", "third"}
