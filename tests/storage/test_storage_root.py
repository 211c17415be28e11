"""What any storage root does: one suite, run against each kind of place that there is."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.events.artifacts import key_of_part
from clew.storage.committed import artifact_of_part, describe_part, described_part, publish_part
from clew.storage.layout import part_folder
from clew.storage.local import LocalStorage
from clew.storage.parts import Part
from clew.storage.root import Draft, StorageRoot

PLACES: dict[str, Callable[[Path], StorageRoot]] = {"local": LocalStorage}
"""Every implementation, by name. A new one is added here, and passes."""


@pytest.fixture(params=sorted(PLACES))
def root(request: pytest.FixtureRequest, tmp_path: Path) -> StorageRoot:
    return PLACES[request.param](tmp_path / "storage")


def keys(root: StorageRoot, folder: str = "") -> list[str]:
    return [file.key for file in root.files(folder)]


def drafted(root: StorageRoot, folder: str, *names: str) -> Draft:
    draft = root.draft(folder)
    for name in names:
        pq.write_table(pa.table({"n": [1, 2]}), draft.new_file(name))
    return draft


# One file


def test_a_file_is_read_as_it_was_written(root: StorageRoot) -> None:
    root.write("a/b.json", b"one")
    assert root.read_bytes("a/b.json") == b"one"
    assert (root.stat("a/b.json").size, root.size("a/b.json"), root.exists("a/b.json")) == (3, 3, True)
    assert root.sha256("a/b.json") == hashlib.sha256(b"one").hexdigest()


def test_what_is_not_there_is_missed(root: StorageRoot) -> None:
    for asked in (root.read_bytes, root.stat, root.sha256):
        with pytest.raises(FileNotFoundError):
            asked("a/b.json")
    assert (root.exists("a/b.json"), root.size("a"), list(root.files("a")), list(root.folders("a"))) == (
        False,
        0,
        [],
        [],
    )
    root.remove("a/b.json")


@pytest.mark.parametrize("key", ["../outside", "/etc/passwd", "a/../../outside"])
def test_no_key_leads_out_of_the_root(root: StorageRoot, key: str) -> None:
    for asked in (root.read_bytes, root.stat, root.exists, root.remove, root.spark_uri):
        with pytest.raises(FileNotFoundError):
            asked(key)


def test_writing_again_replaces_the_file_and_changes_its_version(root: StorageRoot) -> None:
    root.write("a", b"one")
    before = root.stat("a").version
    root.write("a", b"three")
    assert root.read_bytes("a") == b"three"
    assert root.stat("a").version != before
    assert keys(root) == ["a"]


def test_a_new_file_is_written_once(root: StorageRoot) -> None:
    assert root.write_new("plans/x", b"plan") is True
    assert root.write_new("plans/x", b"plan") is False
    with pytest.raises(FileExistsError):
        root.write_new("plans/x", b"pl")
    assert root.read_bytes("plans/x") == b"plan"
    assert keys(root) == ["plans/x"]


def test_a_log_grows_by_lines(root: StorageRoot) -> None:
    assert list(root.lines("log")) == []
    root.add_line("log", "one")
    root.add_line("log", "zwei: ü")
    assert list(root.lines("log")) == ["one", "zwei: ü"]


# Many files


def test_files_and_folders_are_listed_in_order(root: StorageRoot) -> None:
    for key in ("b/2", "b/1", "a/deep/er", "c"):
        root.write(key, b"xy")
    assert keys(root) == ["a/deep/er", "b/1", "b/2", "c"]
    assert keys(root, "b") == ["b/1", "b/2"]
    assert list(root.folders("")) == ["a", "b"]
    assert list(root.folders("a")) == ["deep"]
    assert root.size("b") == 4
    assert [file.key for file in root.below("a").files("")] == ["deep/er"]


def test_removing_takes_a_file_or_all_below_a_folder_and_nothing_beside(root: StorageRoot) -> None:
    for key in ("a/1", "a/2", "ab/1"):
        root.write(key, b"")
    root.remove("a/1")
    assert keys(root) == ["a/2", "ab/1"]
    root.remove("a")
    root.remove("a")
    assert keys(root) == ["ab/1"]
    assert list(root.folders("")) == ["ab"]


def test_a_folder_goes_with_the_last_thing_in_it_and_not_before(root: StorageRoot) -> None:
    for key in ("cap/1/rows", "cap/2/rows"):
        root.write(key, b"")
    root.remove("cap/1")
    assert list(root.folders("cap")) == ["2"]
    root.remove("cap/2")
    assert list(root.folders("")) == []


# Drafts


def test_a_draft_is_seen_when_it_is_published(root: StorageRoot) -> None:
    draft = drafted(root, "runs/r/changes/1-2", "part-0.parquet")
    [file] = draft.files(".parquet")
    assert not root.exists(file.key)
    assert pq.read_table(file.source).num_rows == 2
    digest = draft.sha256(file)
    draft.publish("part.json", b"{}")
    assert (root.sha256(file.key), root.stat(file.key).size) == (digest, file.size)
    assert root.read_bytes("runs/r/changes/1-2/part.json") == b"{}"
    with root.open_parquet(file.key) as opened:
        assert opened.metadata.num_rows == 2


def test_a_draft_that_is_discarded_leaves_nothing(root: StorageRoot) -> None:
    drafted(root, "runs/r/input/x", "part-0.parquet").discard()
    assert keys(root) == []


def test_a_file_that_is_dropped_is_not_published(root: StorageRoot) -> None:
    draft = drafted(root, "f", "a.parquet", "b.parquet")
    draft.drop(draft.files(".parquet")[0])
    draft.publish("part.json", b"{}")
    assert [key.rpartition("/")[2] for key in keys(root, "f")] == ["b.parquet", "part.json"]


def test_a_later_draft_takes_the_place_of_an_earlier_one_and_leaves_its_files_to_readers(root: StorageRoot) -> None:
    first = drafted(root, "f", "a.parquet")
    [file] = first.files(".parquet")
    first.publish("part.json", b"1")
    drafted(root, "f", "b.parquet").publish("part.json", b"2")
    assert root.read_bytes("f/part.json") == b"2"
    assert root.exists(file.key)


def test_who_publishes_removes_what_earlier_attempts_have_left_and_spares_later_ones(root: StorageRoot) -> None:
    earlier, other = drafted(root, "f", "a.parquet"), drafted(root, "g", "a.parquet")
    winner = drafted(root, "f", "b.parquet")
    later = drafted(root, "f", "c.parquet")
    winner.publish("part.json", b"2")
    assert [len(draft.files(".parquet")) for draft in (earlier, other, later)] == [0, 1, 1]
    later.publish("part.json", b"3")
    assert root.read_bytes("f/part.json") == b"3"


def test_two_drafts_of_one_folder_never_meet(root: StorageRoot) -> None:
    one, other = drafted(root, "f", "a.parquet"), drafted(root, "f", "a.parquet")
    assert one.spark_uri != other.spark_uri
    one.discard()
    assert len(other.files(".parquet")) == 1


# Parts


def test_a_part_is_described_behind_its_files(root: StorageRoot) -> None:
    part = Part("changes", "1-2", (), (("n", "integer"),), seq=2)
    folder = part_folder("r", part.kind, part.name)
    assert described_part(root, folder) is None
    publish_part(drafted(root, folder, "a.parquet"), part)
    assert described_part(root, folder) == part


def test_the_artifact_of_a_part_has_the_digest_and_size_of_its_description(root: StorageRoot) -> None:
    part = Part("changes", "1-2", (), (), seq=2)
    describe_part(root, part_folder("r", part.kind, part.name), part)
    artifact = artifact_of_part(root, "r", part)
    content = root.read_bytes(key_of_part(artifact))
    assert (artifact.uri, artifact.kind) == ("storage:runs/r/changes/1-2/part.json", "trace-part")
    assert (artifact.sha256, artifact.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))


def test_the_artifact_of_an_input_has_no_digest_because_a_retry_may_read_it_anew(root: StorageRoot) -> None:
    part = Part("input", "orders", (), ())
    describe_part(root, part_folder("r", part.kind, part.name), part)
    assert artifact_of_part(root, "r", part).sha256 is None
