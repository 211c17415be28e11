"""What any storage root does: one suite, run against each kind of place that there is."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.diagnostics import UserError
from clew.events.artifacts import key_of_part
from clew.events.snapshot import RunSnapshot
from clew.storage.committed import committed_part, committed_parts, describe_once, publish_part
from clew.storage.drafts import Draft, draft
from clew.storage.layout import part_folder
from clew.storage.local import LocalStorage
from clew.storage.parts import Part, PartFile
from clew.storage.root import StorageRoot
from tests.simulation.memory_storage import MemoryFiles, MemoryStorage
from tests.storage.azure_server import AZURITE, AzureServer, azure_server
from tests.storage.gcs_server import GcsServer, gcs_server
from tests.storage.hdfs_server import MINICLUSTER, HdfsServer, hdfs_server
from tests.storage.s3_server import S3Server


def _local(request: pytest.FixtureRequest) -> StorageRoot:
    folder: Path = request.getfixturevalue("tmp_path")
    return LocalStorage(folder / "storage")


def _s3(request: pytest.FixtureRequest) -> StorageRoot:
    server: S3Server = request.getfixturevalue("s3")
    return server.storage()


def _gcs(request: pytest.FixtureRequest) -> StorageRoot:
    server: GcsServer = request.getfixturevalue("gcs")
    return server.storage()


def _azure(request: pytest.FixtureRequest) -> StorageRoot:
    server: AzureServer = request.getfixturevalue("azure")
    return server.storage()


def _hdfs(request: pytest.FixtureRequest) -> StorageRoot:
    server: HdfsServer = request.getfixturevalue("hdfs")
    return server.storage()


PLACES: dict[str, Callable[[pytest.FixtureRequest], StorageRoot]] = {
    "local": _local,
    "memory": lambda _request: MemoryStorage(MemoryFiles()),
    "s3": _s3,
    **({"abfss": _azure, "gs": _gcs} if AZURITE else {}),
    **({"hdfs": _hdfs} if MINICLUSTER else {}),
}
"""Every implementation, by name. A new one is added here, and passes. `make stores` has the servers for the others."""


@pytest.fixture(scope="module")
def gcs() -> Iterator[GcsServer]:
    with gcs_server() as server:
        yield server


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    with azure_server() as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.spark] if name == "hdfs" else []) for name in sorted(PLACES)]
)
def root(request: pytest.FixtureRequest) -> StorageRoot:
    return PLACES[request.param](request)


def keys(root: StorageRoot, folder: str = "") -> list[str]:
    return [file.key for file in root.files(folder)]


def drafted(root: StorageRoot, folder: str, *names: str) -> Draft:
    started = draft(root, folder)
    for name in names:
        with started.create(name) as file:
            pq.write_table(pa.table({"n": [1, 2]}), file)
    return started


# One file


def test_a_file_is_read_as_it_was_written(root: StorageRoot) -> None:
    root.write_new("a/b.json", b"one")
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


def test_a_secret_is_written_once_whoever_comes_first(root: StorageRoot) -> None:
    assert root.write_secret("salt", b"one") is True
    assert root.write_secret("salt", b"one") is False
    with pytest.raises(FileExistsError):
        root.write_secret("salt", b"two")
    assert root.read_bytes("salt") == b"one"


def test_writers_of_the_same_content_do_not_disturb_each_other(root: StorageRoot) -> None:
    with ThreadPoolExecutor(8) as threads:
        first = list(threads.map(lambda _: root.write_new("plans/x", b"plan"), range(16)))
    assert True in first
    assert root.read_bytes("plans/x") == b"plan"
    assert keys(root) == ["plans/x"]


def test_lines_of_many_writers_are_all_kept(root: StorageRoot) -> None:
    lines = [f"line {number}" for number in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda line: root.add_line("log", line), lines))
    assert sorted(root.lines("log")) == sorted(lines)


@pytest.mark.parametrize("name", ["a b", "ü+ä", "100%", "x=1&y", "[1]", "quo'te", "hash#", "q?", "tab\t"])
def test_names_are_taken_as_they_are(root: StorageRoot, name: str) -> None:
    root.write_new(f"f {name}/{name}.json", b"x")
    assert root.read_bytes(f"f {name}/{name}.json") == b"x"
    assert keys(root) == [f"f {name}/{name}.json"]
    assert list(root.folders("")) == [f"f {name}"]
    root.remove(f"f {name}")
    assert keys(root) == []


# Many files


def test_files_and_folders_are_listed_in_order(root: StorageRoot) -> None:
    for key in ("b/2", "b/1", "a/deep/er", "c"):
        root.write_new(key, b"xy")
    assert keys(root) == ["a/deep/er", "b/1", "b/2", "c"]
    assert keys(root, "b") == ["b/1", "b/2"]
    assert list(root.folders("")) == ["a", "b"]
    assert list(root.folders("a")) == ["deep"]
    assert root.size("b") == 4
    assert [file.key for file in root.below("a").files("")] == ["deep/er"]


def test_removing_takes_a_file_or_all_below_a_folder_and_nothing_beside(root: StorageRoot) -> None:
    for key in ("a/1", "a/2", "ab/1"):
        root.write_new(key, b"x")
    root.remove("a/1")
    assert keys(root) == ["a/2", "ab/1"]
    root.remove("a")
    root.remove("a")
    assert keys(root) == ["ab/1"]
    assert list(root.folders("")) == ["ab"]


def test_a_folder_goes_with_the_last_thing_in_it_and_not_before(root: StorageRoot) -> None:
    for key in ("cap/1/rows", "cap/2/rows"):
        root.write_new(key, b"x")
    root.remove("cap/1")
    assert list(root.folders("cap")) == ["2"]
    root.remove("cap/2")
    assert list(root.folders("")) == []


# Drafts


def test_a_draft_lies_where_it_will_stay(root: StorageRoot) -> None:
    started = drafted(root, "runs/r/changes/1-2", "part-0.parquet")
    [file] = started.files(".parquet")
    assert file.key.startswith("runs/r/changes/1-2/")
    digest = root.sha256(file.key)
    key = started.publish("part.json", b"{}")
    assert (root.sha256(file.key), root.stat(file.key).size) == (digest, file.size)
    assert root.read_bytes(key) == b"{}"
    with root.open_parquet(file.key) as opened:
        assert opened.metadata.num_rows == 2


def test_a_draft_that_is_abandoned_leaves_nothing(root: StorageRoot) -> None:
    drafted(root, "runs/r/input/x", "part-0.parquet").abandon()
    assert keys(root) == []


def test_two_drafts_of_one_folder_never_meet(root: StorageRoot) -> None:
    one, other = drafted(root, "f", "a.parquet"), drafted(root, "f", "a.parquet")
    assert one.spark_uri != other.spark_uri
    first, second = one.publish("part.json", b"1"), other.publish("part.json", b"2")
    assert (root.read_bytes(first), root.read_bytes(second)) == (b"1", b"2")
    one.abandon()
    assert [len(each.files(".parquet")) for each in (one, other)] == [0, 1]


def test_a_file_that_fails_on_the_way_does_not_appear(root: StorageRoot) -> None:
    def fails() -> None:
        with root.create("f/a") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert keys(root) == []


def test_a_file_of_any_size_is_written_and_read(root: StorageRoot) -> None:
    with root.create("f/a") as file:
        for _ in range(3):
            file.write(b"x" * 1_000_000)
    with root.open("f/a") as opened:
        opened.seek(2_999_999)
        assert opened.read() == b"x"


def test_a_file_is_written_as_its_bytes_come(root: StorageRoot) -> None:
    root.upload("f/a", (bytes([number]) * 3_000_000 for number in range(15)))
    assert root.stat("f/a").size == 45_000_000
    with root.open("f/a") as opened:
        opened.seek(44_999_999)
        assert opened.read() == bytes([14])
    root.upload("f/empty", ())
    assert root.read_bytes("f/empty") == b""


def test_a_file_that_was_written_again_has_another_version(root: StorageRoot) -> None:
    root.write_new("f/a", b"one")
    before = root.stat("f/a")
    root.write_new("f/b", b"two")
    root.copy("f/b", "f/a")  # of the same size, and maybe within the same second
    assert root.stat("f/a").version != before.version
    assert root.etag("f/a") in {None, root.stat("f/a").version}


def test_a_root_that_lists_once_shows_what_was_there_at_that_moment(root: StorageRoot) -> None:
    for key in ("a/deep/1", "a/deep/22", "a/b", "ab/1", "c"):
        root.write_new(key, b"xy")
    listed = root.listing_once()
    assert keys(listed, "a") == ["a/b", "a/deep/1", "a/deep/22"]
    assert keys(listed, "a/deep") == ["a/deep/1", "a/deep/22"]
    assert (list(listed.folders("a")), list(listed.folders("a/b")), list(listed.folders("none"))) == (["deep"], [], [])
    assert [listed.size(key) for key in ("a", "a/deep", "a/deep/1", "ab", "none")] == [6, 4, 2, 2, 0]
    assert listed.read_bytes("a/b") == b"xy"


def test_a_copy_takes_the_place_of_what_is_there_or_fails_without_a_trace(root: StorageRoot) -> None:
    root.write_new("f/a", b"one")
    root.copy("f/a", "g/b")
    root.write_new("f/c", b"three")
    root.copy("f/c", "g/b")
    assert root.read_bytes("g/b") == b"three"
    with pytest.raises(FileNotFoundError):
        root.copy("f/gone", "g/b")
    assert root.read_bytes("g/b") == b"three"
    assert keys(root, "g") == ["g/b"]


def test_an_empty_file_is_a_file(root: StorageRoot) -> None:
    with root.create("f/empty"):
        pass
    root.write_new("f/nothing", b"")
    assert [(file.key, file.size) for file in root.files("f")] == [("f/empty", 0), ("f/nothing", 0)]
    assert (root.read_bytes("f/empty"), root.exists("f/nothing")) == (b"", True)
    with root.open("f/empty") as opened:
        assert opened.read() == b""


def test_a_file_is_read_as_text_by_lines(root: StorageRoot) -> None:
    root.write_new("f/a.csv", "id,name\n1,Zoë\n".encode())
    with root.open("f/a.csv") as opened, TextIOWrapper(opened, encoding="utf-8") as text:
        assert list(text) == ["id,name\n", "1,Zoë\n"]


def test_many_files_are_listed_over_several_answers_of_a_store(root: StorageRoot) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: root.write_new(f"many/{number:04}", b"x"), range(1100)))
    assert keys(root, "many") == [f"many/{number:04}" for number in range(1100)]
    root.remove("many")
    assert keys(root) == []


def test_a_damaged_page_of_a_parquet_file_is_not_read(root: StorageRoot) -> None:
    content = BytesIO()
    pq.write_table(
        pa.table({"n": list(range(1000))}), content, compression="none", use_dictionary=False, write_page_checksum=True
    )
    data = bytearray(content.getvalue())
    data[len(data) // 3] ^= 1
    root.write_new("f/a.parquet", bytes(data))
    with root.open_parquet("f/a.parquet") as opened, pytest.raises(OSError, match=r"CRC|checksum"):
        opened.read()


# Parts


def test_a_part_is_described_behind_its_files(root: StorageRoot) -> None:
    part = Part("changes", "1-2", (), (("n", "integer"),), seq=2)
    described = publish_part(drafted(root, part_folder("r", part.kind, part.name), "a.parquet"), part)
    assert committed_part(root, described.artifact) == part


def test_the_artifact_of_a_part_has_the_digest_and_size_of_its_description(root: StorageRoot) -> None:
    for part in (Part("changes", "1-2", (), (), seq=2), Part("input", "orders", (), ())):
        artifact = publish_part(draft(root, part_folder("r", part.kind, part.name)), part).artifact
        content = root.read_bytes(key_of_part(artifact))
        assert key_of_part(artifact).startswith(f"runs/r/{part.kind}/{part.name}/")
        assert (artifact.sha256, artifact.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))


def test_a_description_that_is_not_the_one_the_event_names_is_refused(root: StorageRoot) -> None:
    part = Part("changes", "1-2", (), (), seq=2)
    artifact = publish_part(draft(root, part_folder("r", part.kind, part.name)), part).artifact
    content = root.read_bytes(key_of_part(artifact))
    root.remove(key_of_part(artifact))
    root.write_new(key_of_part(artifact), content.replace(b'"seq": 2', b'"seq": 3'))
    with pytest.raises(UserError, match="its digest differs") as refused:
        committed_part(root, artifact)
    assert refused.value.code == "DamagedTrace"


def test_what_was_written_last_counts_where_two_attempts_are_named(root: StorageRoot) -> None:
    folder = part_folder("r", "input", "orders")
    first, second = (publish_part(draft(root, folder), Part("input", "orders", (), (), seq)) for seq in (0, 1))
    other = publish_part(draft(root, part_folder("r", "input", "rates")), Part("input", "rates", (), ()))
    snapshot = RunSnapshot("r", artifacts=(first.artifact, other.artifact, second.artifact))
    assert [(part.name, part.seq) for part in committed_parts(root, snapshot)] == [("orders", 1), ("rates", 0)]


def test_links_are_described_once_by_whoever_comes_first(root: StorageRoot) -> None:
    one, other = (Part("links", "5", (PartFile(f"f/{name}", 1, 1, "d"),), (), 5) for name in "ab")
    for name in "ab":
        with root.create(f"f/{name}") as file:
            file.write(b"x")
    assert describe_once(root, "runs/r/links/5", one) == one
    assert describe_once(root, "runs/r/links/5", other) == one
