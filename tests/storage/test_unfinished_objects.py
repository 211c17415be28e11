"""Stores that show an object before it has its content: what a writer leaves that dies there is never taken for one."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from clew.definitions.storage_addresses import RemoteAddress
from clew.storage import object_store
from clew.storage.inventory import unfinished_plans
from clew.storage.layout import is_unfinished
from clew.storage.object_store import ObjectStorage
from clew.storage.web_hdfs import HdfsFiles


@pytest.fixture(params=["abfss", "hdfs"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """A storage root on a file system of this machine in the place of the store."""
    places = {
        "abfss": RemoteAddress("abfss", "box@acme.dfs.core.windows.net", "clew"),
        "hdfs": RemoteAddress("hdfs", "name-node:8020", f"{tmp_path}/box/clew".lstrip("/")),
    }
    for folder in ("plans", "removals.jsonl"):
        (tmp_path / "box" / "clew" / folder).mkdir(parents=True)
    files = {"abfss": SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "hdfs": LocalFileSystem()}
    monkeypatch.setattr(object_store, "file_system", lambda scheme, *_: files[scheme])
    return ObjectStorage(places[request.param])


def test_what_a_writer_leaves_that_dies_before_its_object_has_its_name_is_seen_as_unfinished(
    root: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.write_new("plans/one.json", b"one")
    root.add_line("removals.jsonl", "one")
    with monkeypatch.context() as dying:
        dying.setattr(ObjectStorage, "_moved", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        for write in (lambda: root.write_new("plans/two.json", b"two"), lambda: root.add_line("removals.jsonl", "two")):
            with pytest.raises(KeyboardInterrupt):
                write()
    assert not root.exists("plans/two.json")
    [left] = [file.key for file in root.files("plans") if file.key != "plans/one.json"]
    assert [thing.key for thing in unfinished_plans(root)] == [left]
    assert list(root.lines("removals.jsonl")) == ["one"]
    assert root.write_new("plans/two.json", b"two") is True
    assert root.read_bytes("plans/two.json") == b"two"


class Dying(HdfsFiles):
    """HDFS on a file system of this machine, whose client dies before it renames anything."""

    def __init__(self) -> None:
        pass

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        return Path(path).open(mode)

    def _call(self, *_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt


def test_a_copy_that_was_not_finished_on_hdfs_is_hidden_from_those_who_read_the_folder(tmp_path: Path) -> None:
    (tmp_path / "staged").write_bytes(b"half")
    (tmp_path / "out").mkdir()
    with pytest.raises(KeyboardInterrupt):
        Dying().copy(f"{tmp_path}/staged", f"{tmp_path}/out/part-00000.parquet")
    [left] = (tmp_path / "out").iterdir()
    assert left.name.startswith(".")
    assert is_unfinished(left.name)
