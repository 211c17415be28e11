"""Outputs in object stores: a marker comes last, a retry adds nothing twice, and who was overtaken copies nothing.

The contract of storage roots holds for local disks and object stores alike, so that a local one stands for both here.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

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

    @contextmanager
    def create(self, key: StorageKey) -> Iterator[BinaryIO]:
        """As in a store: all of it is sent at the end, and makes the folder that it lies in."""
        content = BytesIO()
        yield content
        _meanwhile("create", key)
        with super().create(key) as file:
            file.write(content.getvalue())

    def copy(self, source: StorageKey, key: StorageKey) -> None:
        _meanwhile("copy", key)
        super().copy(source, key)
        self._look()

    def remove(self, key: StorageKey) -> None:
        _meanwhile("remove", key)
        super().remove(key)
        self._look()

    def _look(self) -> None:
        lines = set(content(self.folder / "out"))
        SEEN.append((lines, (self.folder / "out" / MARKER).exists()))


SEEN: list[tuple[set[str], bool]] = []
FROZEN: dict[tuple[str, str], Callable[[], None]] = {}
"""What another worker does while one stands still before an operation with a file of this name."""


def _meanwhile(operation: str, key: StorageKey) -> None:
    name = key.rpartition("/")[2]
    kinds = {"part-": "part", "_FILES": "list"}
    FROZEN.pop((operation, next((kinds[start] for start in kinds if name.startswith(start)), name)), lambda: None)()


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
    FROZEN.clear()


def complete() -> set[frozenset[str]]:
    """What readers have found under a marker."""
    return {frozenset(lines) for lines, is_complete in SEEN if is_complete}


def test_under_a_marker_there_is_one_output_at_any_time(tmp_path: Path) -> None:
    publish(staged(tmp_path, "old"))
    SEEN.clear()
    publish(staged(tmp_path, "new", run_id=OTHER))
    assert content(tmp_path / "out") == ["new0", "new1"]
    assert complete() <= {frozenset({"old0", "old1"}), frozenset({"new0", "new1"})}
    assert any(not is_complete for _, is_complete in SEEN)
    told = json.loads((tmp_path / "out" / MARKER).read_text())
    assert (told["run"], told["step"]) == (OTHER, 7)
    assert sorted(told["files"]) == sorted(path.name for path in (tmp_path / "out").glob("part-*"))


def test_a_retry_adds_nothing_twice(tmp_path: Path) -> None:
    publish(staged(tmp_path, "others", run_id=OTHER), "append")
    publish(staged(tmp_path, "first"), "append")
    publish(staged(tmp_path, "again", fence=2), "append")
    assert content(tmp_path / "out") == ["again0", "again1", "others0", "others1"]


def test_a_retry_adds_nothing_twice_where_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose commit failed tries again under the same token."""
    publish(staged(tmp_path, "first"), "append")
    before = time.time_ns() - 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: before)
    publish(staged(tmp_path, "again"), "append")
    assert content(tmp_path / "out") == ["again0", "again1"]


BEFORE = [("create", MARKER), ("remove", MARKER), ("copy", "part"), ("copy", MARKER)]


@pytest.mark.parametrize("frozen", BEFORE, ids=" ".join)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("later", [False, True], ids=["", "a later run"])
def test_who_is_overtaken_in_the_middle_of_publishing_leaves_the_other_output_and_its_marker(
    tmp_path: Path, mode: str, frozen: tuple[str, str], *, later: bool
) -> None:
    def overtaken() -> None:
        publish(staged(tmp_path, "new", fence=2), mode)
        if later:
            publish(staged(tmp_path, "later", run_id=OTHER, ended=[RUN]), mode)
        SEEN.clear()

    publish(staged(tmp_path, "old", run_id=f"{OTHER}0"), mode)
    FROZEN[frozen] = overtaken
    with pytest.raises(UserError, match="cannot write out"):
        publish(staged(tmp_path, "late"), mode)
    added = [f"{name}{number}" for name in ("later", "new", "old") for number in (0, 1) if later or name != "later"]
    assert content(tmp_path / "out") == (added if mode == "append" else added[:2])
    assert complete() <= {frozenset(content(tmp_path / "out"))}
    told = json.loads((tmp_path / "out" / MARKER).read_text())
    assert told["run"] == (OTHER if later else RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "no folder is left of the late attempt"
    for name in told["files"]:
        assert (tmp_path / "out" / name).read_text().startswith("later" if later else "new")


def by_value(output: tuple[StoredOutput, list[StagedPiece]], *names: str) -> tuple[StoredOutput, list[StagedPiece]]:
    """The files of an output, called as they are when there is one for each value of an expression."""
    place, pieces = output
    return place, [replace(piece, published=f"{name}.csv") for piece, name in zip(pieces, names, strict=True)]


def named(folder: Path) -> dict[str, str]:
    """What the files say that are named after values."""
    return {file.stem: file.read_text().strip() for file in folder.glob("*.csv")}


def test_files_named_after_values_are_replaced_by_the_next_output_and_no_others(tmp_path: Path) -> None:
    publish(by_value(staged(tmp_path, "old"), "north", "south"))
    again = by_value(staged(tmp_path, "new", run_id=OTHER), "south", "west")
    again[0].require_room(output_step("csv"), can_be_extended=True)
    publish(again)
    assert named(tmp_path / "out") == {"south": "new0", "west": "new1"}
    assert json.loads((tmp_path / "out" / MARKER).read_text())["run"] == OTHER
    (tmp_path / "out" / "north.csv").write_text("somebody else's")
    with pytest.raises(UserError, match=r"would delete out/north\.csv, which no output wrote"):
        staged(tmp_path, "more")[0].require_room(output_step("csv"), can_be_extended=True)


@pytest.mark.parametrize("frozen", [("create", "list"), *BEFORE[1:2], ("copy", "south.csv"), BEFORE[3]], ids=" ".join)
@pytest.mark.parametrize("later", [False, True], ids=["", "a later run"])
def test_who_is_overtaken_leaves_the_files_named_after_values_and_their_marker(
    tmp_path: Path, frozen: tuple[str, str], *, later: bool
) -> None:
    def overtaken() -> None:
        publish(by_value(staged(tmp_path, "new", fence=2), "north", "south"))
        if later:
            publish(by_value(staged(tmp_path, "later", run_id=OTHER, ended=[RUN]), "south", "west"))

    publish(by_value(staged(tmp_path, "old", run_id=f"{OTHER}0"), "east", "north"))
    FROZEN[frozen] = overtaken
    with pytest.raises(UserError, match="cannot write out"):
        publish(by_value(staged(tmp_path, "late"), "north", "south"))
    expected = {"south": "later0", "west": "later1"} if later else {"north": "new0", "south": "new1"}
    assert named(tmp_path / "out") == expected
    told = json.loads((tmp_path / "out" / MARKER).read_text())
    assert (told["run"], sorted(told["files"])) == (OTHER if later else RUN, [f"{name}.csv" for name in expected])
    assert len(list((tmp_path / "out").glob("_FILES*"))) == 1


@pytest.mark.parametrize("frozen", [("create", "complete.csv"), ("copy", "list.csv")], ids=" ".join)
def test_who_is_overtaken_while_one_file_is_sent_does_not_put_it_over_the_other(
    tmp_path: Path, frozen: tuple[str, str]
) -> None:
    def overtaken() -> None:
        publish(staged(tmp_path, "new", "list.csv", fence=2))
        publish(staged(tmp_path, "later", "list.csv", run_id=OTHER, ended=[RUN]))

    publish(staged(tmp_path, "old", "list.csv", run_id=f"{OTHER}0"))
    FROZEN[frozen] = overtaken
    with pytest.raises(UserError, match=r"cannot write list\.csv"):
        publish(staged(tmp_path, "late", "list.csv"))
    assert (tmp_path / "list.csv").read_text() == "header\nlater0\nlater1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["list.csv"], "no folder is left of the late attempt"


@pytest.mark.parametrize("frozen", BEFORE[1:], ids=" ".join)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_who_wakes_up_while_another_publishes_puts_no_marker_over_half_an_output(
    tmp_path: Path, mode: str, frozen: tuple[str, str]
) -> None:
    late = staged(tmp_path, "late")

    def wakes_up() -> None:
        with pytest.raises(UserError, match="cannot write out"):
            publish(late, mode)

    publish(staged(tmp_path, "old", run_id=OTHER), mode)
    SEEN.clear()
    FROZEN[frozen] = wakes_up
    publish(staged(tmp_path, "new", fence=2), mode)
    after = content(tmp_path / "out")
    assert after == (["new0", "new1"] if mode == "overwrite" else ["new0", "new1", "old0", "old1"])
    assert complete() <= {frozenset({"old0", "old1"}), frozenset(after)}
    assert (tmp_path / "out" / MARKER).exists()


def test_what_an_overtaken_attempt_had_on_its_way_is_not_left_in_the_output(tmp_path: Path) -> None:
    """A copy that the store was asked for may arrive when the folder that it came from is gone."""
    place = tmp_path / "out" / OutputAttempt.of(RUN, 7, 1).piece(0, ".csv")

    def arrives() -> None:
        place.parent.mkdir(exist_ok=True)
        place.write_text("late\n")

    for mode in ("overwrite", "append"):
        FROZEN["copy", "part"] = arrives
        publish(staged(tmp_path, "new", fence=2), mode)
        assert content(tmp_path / "out") == ["new0", "new1"]


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


def test_a_folder_with_files_that_no_output_wrote_is_not_replaced(tmp_path: Path) -> None:
    """Everything below the destination goes, so nothing else may be there."""
    publish(staged(tmp_path, "old"))
    place, _ = staged(tmp_path, "new", fence=2)
    place.require_room(output_step("csv"), can_be_extended=True)
    (tmp_path / "out" / "notes").mkdir()
    (tmp_path / "out" / "notes" / "signed.pdf").write_text("precious")
    with pytest.raises(UserError, match=r"would delete out/notes/signed\.pdf, which no output wrote"):
        place.require_room(output_step("csv"), can_be_extended=True)
    place.require_room(output_step("csv", "append"), can_be_extended=True)
