"""Outputs in object stores: a marker comes last, a retry adds nothing twice, and who was overtaken copies nothing.

The contract of storage roots holds for local disks and object stores alike, so that a local one stands for both here.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.diagnostics import UserError
from clew.engine.output.attempts import OutputAttempt
from clew.engine.output.places import StagedPiece
from clew.engine.output.stored_places import MARKER, StoredOutput
from clew.storage.local import LocalStorage
from clew.storage.root import StorageKey
from tests.engine.test_engine_outputs import output_step

RUN, OTHER = "0c1f2d3e-aaaa-4b52-9c1b-000000000001", "0c1f2d3e-bbbb-4b52-9c1b-000000000002"


class Watched(LocalStorage):
    """A store that remembers, after every copy and removal, which files there are under a marker."""

    seen: list[tuple[set[str], bool]]

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        super().copy(source, key)
        self._look()

    def remove(self, key: StorageKey) -> None:
        super().remove(key)
        self._look()

    def _look(self) -> None:
        lines = set(content(self.folder / "out"))
        SEEN.append((lines, (self.folder / "out" / MARKER).exists()))


SEEN: list[tuple[set[str], bool]] = []


def staged(
    folder: Path, content: str, key: str = "out", run_id: str = RUN, fence: int = 1, ended: Sequence[str] = ()
) -> tuple[StoredOutput, list[StagedPiece]]:
    attempt = OutputAttempt.of(run_id, 7, fence)
    place = StoredOutput(Watched(folder), key, key, attempt, lambda run: run not in ended)
    for number in range(2):
        with place.create_piece(f"part-{number:05}-x.csv") as file:
            file.write(f"{content}{number}\n".encode())
    return place, place.pieces()


def publish(output: tuple[StoredOutput, list[StagedPiece]], mode: str = "overwrite") -> None:
    place, pieces = output
    if place.is_one_file:
        place.publish_file(output_step("csv", mode), pieces, b"header\n")
    else:
        place.publish_folder(output_step("csv", mode), pieces)


def content(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("part-*") for line in file.read_text().splitlines())


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def test_under_a_marker_there_is_one_output_at_any_time(tmp_path: Path) -> None:
    publish(staged(tmp_path, "old"))
    SEEN.clear()
    publish(staged(tmp_path, "new", run_id=OTHER))
    assert content(tmp_path / "out") == ["new0", "new1"]
    assert {frozenset(lines) for lines, is_complete in SEEN if is_complete} <= {
        frozenset({"old0", "old1"}),
        frozenset({"new0", "new1"}),
    }
    assert any(not is_complete for _, is_complete in SEEN)
    told = json.loads((tmp_path / "out" / MARKER).read_text())
    assert (told["run"], told["step"]) == (OTHER, 7)
    assert sorted(told["files"]) == sorted(path.name for path in (tmp_path / "out").glob("part-*"))


def test_a_retry_adds_nothing_twice(tmp_path: Path) -> None:
    publish(staged(tmp_path, "others", run_id=OTHER), "append")
    publish(staged(tmp_path, "first"), "append")
    publish(staged(tmp_path, "again", fence=2), "append")
    assert content(tmp_path / "out") == ["again0", "again1", "others0", "others1"]


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_who_was_overtaken_copies_nothing(tmp_path: Path, mode: str) -> None:
    late = staged(tmp_path, "late")
    publish(staged(tmp_path, "new", fence=2), mode)
    with pytest.raises(UserError, match="cannot write out") as refused:
        publish(late, mode)
    assert refused.value.code == "OutputConflict"
    assert content(tmp_path / "out") == ["new0", "new1"]
    assert (tmp_path / "out" / MARKER).exists()


def test_who_belongs_to_a_run_that_is_over_copies_nothing(tmp_path: Path) -> None:
    late = staged(tmp_path, "late", run_id=OTHER)
    publish(staged(tmp_path, "new", ended=[OTHER]))
    with pytest.raises(UserError, match="cannot write out"):
        publish(late)
    assert content(tmp_path / "out") == ["new0", "new1"]


def test_one_file_is_replaced_as_a_whole_and_never_added_to(tmp_path: Path) -> None:
    publish(staged(tmp_path, "old", "list.csv"))
    late = staged(tmp_path, "late", "list.csv")
    publish(staged(tmp_path, "new", "list.csv", fence=2))
    with pytest.raises(UserError, match=r"cannot write list\.csv"):
        publish(late)
    assert (tmp_path / "list.csv").read_text() == "header\nnew0\nnew1\n"
    place, _ = staged(tmp_path, "more", "list.csv", fence=3)
    with pytest.raises(UserError, match="a stored file cannot be extended"):
        place.require_room(output_step("csv", "append"), can_be_extended=True)


def test_a_file_in_the_place_of_a_folder_is_reported_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    place, _ = staged(tmp_path, "new")
    with pytest.raises(UserError, match="it is a file, and the output is a folder"):
        place.require_room(output_step("csv"), can_be_extended=True)
