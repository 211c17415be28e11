"""Destinations of outputs in folders: what a worker that was overtaken can still do, and what it cannot."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.diagnostics import UserError
from clew.engine.output import places
from clew.engine.output.attempts import OutputAttempt, attempt_of_folder, attempt_of_piece
from clew.engine.output.places import LocalOutput, exchange
from clew.plan.operations import OutputStep
from tests.engine.test_engine_outputs import output_step

RUN, OTHER = "0c1f2d3e-aaaa-4b52-9c1b-000000000001", "0c1f2d3e-bbbb-4b52-9c1b-000000000002"


def staged(
    path: Path, content: str, run_id: str = RUN, fence: int = 1, ended: Sequence[str] = (), pieces: int = 1
) -> LocalOutput:
    """An output whose files are written and not yet published."""
    place = LocalOutput(path, path.name, OutputAttempt.of(run_id, 7, fence), lambda run: run not in ended)
    Path(place.staging_uri).mkdir(parents=True)
    for number in range(pieces):
        with place.create_piece(f"part-{number:05}-x.csv") as file:
            file.write(f"{content}{number}\n".encode())
    return place


def publish(place: LocalOutput, mode: str = "overwrite") -> None:
    step: OutputStep = output_step("csv", mode)
    if place.is_one_file:
        place.publish_file(step, place.pieces(), b"")
    else:
        place.publish_folder(step, place.pieces())


def content(path: Path) -> list[str]:
    files = [path] if path.is_file() else sorted(path.glob("part-*"))
    return sorted(line for file in files for line in file.read_text().splitlines())


def beside(path: Path) -> list[str]:
    return sorted(
        each.name for each in path.parent.iterdir() if each.name.endswith((".staging", ".superseded", ".old"))
    )


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("name", ["o", "o.csv"])
def test_a_worker_that_was_overtaken_publishes_nothing(tmp_path: Path, name: str, mode: str) -> None:
    late = staged(tmp_path / name, "late", fence=1, pieces=2)
    publish(staged(tmp_path / name, "new", fence=2), mode)
    with pytest.raises(UserError, match="cannot write") as refused:
        publish(late, mode)
    assert refused.value.code == "OutputConflict"
    assert content(tmp_path / name) == ["new0"]
    assert beside(tmp_path / name) == []


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("name", ["o", "o.csv"])
def test_a_worker_whose_run_is_over_does_not_touch_what_a_later_run_has_published(
    tmp_path: Path, name: str, mode: str
) -> None:
    publish(staged(tmp_path / name, "old", OTHER + "0"), mode)
    late = staged(tmp_path / name, "late", OTHER)
    publish(staged(tmp_path / name, "new", RUN, ended=[OTHER]), mode)
    with pytest.raises(UserError, match="cannot write"):
        publish(late, mode)
    assert content(tmp_path / name) == (["new0"] if mode == "overwrite" else ["new0", "old0"])


def test_a_run_that_is_under_way_keeps_what_it_has_written(tmp_path: Path) -> None:
    other = staged(tmp_path / "o", "other", OTHER)
    publish(staged(tmp_path / "o", "new"), "append")
    publish(other, "append")
    assert content(tmp_path / "o") == ["new0", "other0"]


def test_a_worker_that_was_overtaken_takes_nothing_from_the_one_that_did(tmp_path: Path) -> None:
    """It wakes up while the other is still writing, publishes, and is replaced."""
    late, owner = staged(tmp_path / "o", "late", fence=1), staged(tmp_path / "o", "new", fence=2)
    publish(late, "append")
    publish(owner, "append")
    assert content(tmp_path / "o") == ["new0"]


def test_what_a_worker_has_half_added_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = staged(tmp_path / "o", "late", fence=1, pieces=3)
    renamed = 0
    rename = Path.rename

    def stopping(self: Path, target: Path) -> Path:
        nonlocal renamed
        renamed += 1
        if renamed == 2:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stopping)
        with pytest.raises(KeyboardInterrupt):
            publish(late, "append")
    assert content(tmp_path / "o") == ["late0"]
    publish(staged(tmp_path / "o", "new", fence=2, pieces=3), "append")
    assert content(tmp_path / "o") == ["new0", "new1", "new2"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_in_one_operation_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(places, "exchange", places._moved_aside)
    new, there = tmp_path / "new", tmp_path / "there"
    there.mkdir()
    (there / "old").touch()
    with pytest.raises(FileNotFoundError):
        places.exchange(new, there)
    assert os.listdir(there) == ["old"]  # noqa: PTH208
    new.mkdir()
    (new / "fresh").touch()
    places.exchange(new, there)
    assert [os.listdir(path) for path in (there, new)] == [["fresh"], ["old"]]  # noqa: PTH208
    assert places.exchange is exchange or not can_exchange


def test_files_that_were_added_later_come_last_by_name(tmp_path: Path) -> None:
    place = staged(tmp_path / "o", "first", pieces=2)
    first = place.pieces()
    with place.create_piece("part-00000-later.csv") as file:
        file.write(b"later\n")
    [later] = [piece for piece in place.pieces() if piece.name not in {each.name for each in first}]
    place.publish_folder(output_step("csv"), [*first, later])
    lines = [path.read_text().strip() for path in sorted((tmp_path / "o").glob("part-*"))]
    assert lines == ["first0", "first1", "later"]


@pytest.mark.parametrize("target", ["o", "o.csv", "a.b-7.1.c"])
def test_names_tell_the_attempt_that_they_belong_to(target: str) -> None:
    attempt = OutputAttempt.of(RUN, 60, 12)
    assert attempt_of_folder(attempt.folder_for(target), target) == attempt
    assert attempt_of_folder(attempt.folder_for(target), "another") is None
    assert attempt_of_piece(attempt.piece(3, ".snappy.parquet")) == attempt
    assert attempt_of_piece(f"part-{RUN}-60-00003.csv") == OutputAttempt(RUN, 60, 0, "")
    for foreign in ("part-00000-0c1f2d3e-aaaa-4b52-9c1b-000000000001-c000.csv", "notes.txt", "_SUCCESS"):
        assert attempt_of_piece(foreign) in {None, OutputAttempt("00000-0c1f2d3e-aaaa-4b52-9c1b", 1, 0, "")}
