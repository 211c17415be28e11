"""Where captures and emissions lie."""

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from clew.captures.manifests import Places
from clew.captures.policy import Limits
from clew.captures.queue import CaptureRecord
from clew.captures.removal import clear_attempts
from clew.captures.requests import CaptureRequest
from clew.captures.salt import salt_of
from clew.definitions import CaptureMode
from clew.runs.environment import RunEnvironment
from clew.storage.drafts import Draft
from clew.storage.local import LocalStorage
from tests.captures.capture_plans import environment_of

SINKS = {"shelf": {"type": "capture_store", "path": "out/shelf"}}


def places(root: Path) -> Places:
    return Places(RunEnvironment("dev", environment_of(sinks=SINKS), root))


def test_captures_lie_in_the_storage_or_in_a_store_of_the_environment(tmp_path: Path) -> None:
    here = places(tmp_path)
    assert here.captures(None).address == str(tmp_path / ".clew" / "storage" / "captures")
    assert here.captures("shelf", project_version="3").address == str(tmp_path / "out" / "shelf")


def test_what_a_draft_sends_stays_in_the_sandbox(tmp_path: Path) -> None:
    here = places(tmp_path)
    assert here.sink("shelf", "draft").address == str(tmp_path / ".clew" / "sandbox" / "sinks" / "shelf")
    sandbox = tmp_path / ".clew" / "sandbox"
    assert Path(here.captures("shelf", project_version="draft").address).is_relative_to(sandbox)


def test_a_path_is_told_from_the_workspace_on_and_found_again(tmp_path: Path) -> None:
    here = places(tmp_path)
    folder = here.captures(None).below("cap_1/1")
    assert here.shown(folder) == ".clew/storage/captures/cap_1/1"
    assert here.at(here.shown(folder)) == folder
    root, key = here.within(here.shown(folder))
    assert (root.below(key), key) == (folder, "1")


def test_attempts_of_one_capture_take_nothing_from_each_other(tmp_path: Path) -> None:
    here = places(tmp_path)
    request = CaptureRequest(
        breakpoint="p.b",
        seq=1,
        mode=CaptureMode.STATS,
        limits=Limits(1, 1, 1),
        sample_rows=1,
        columns=(),
        ttl_days=1,
    )
    record = CaptureRecord(
        kind="capture", slot="0", tenant_id="t", run_id="r", request_id="q", breakpoint="p.b", seq=1, request=request
    )
    store = here.captures(None)
    overtaken, owner = (Draft(store, f"{record.capture_id}/{attempt}") for attempt in (1, 2))
    for draft in (overtaken, owner):
        with draft.create("rows") as file:
            file.write(b"rows")
    overtaken.publish("manifest.json", b"{}")
    assert len(owner.files("rows")) == 1

    clear_attempts(here, replace(record, attempts=1), lambda name: name == "1")
    assert len(owner.files("rows")) == 1
    owner.publish("manifest.json", b"{}")
    clear_attempts(here, replace(record, attempts=1), lambda name: name == "1")
    assert list(store.folders(record.capture_id)) == ["2"]

    store.write_new(f"{record.capture_id}/3/rows", b"rows")
    clear_attempts(here, replace(record, attempts=2), lambda name: name != "2")
    assert list(store.folders(record.capture_id)) == ["2"]
    clear_attempts(here, replace(record, attempts=2), lambda _name: True)
    assert list(store.folders("")) == []


def test_the_salt_of_masks_is_made_once_and_for_nobody_else_to_read(tmp_path: Path) -> None:
    salt = places(tmp_path).salt()
    assert places(tmp_path).salt() == salt
    assert len(salt) == 32
    path = tmp_path / ".clew" / "storage" / "captures" / "salt"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


class Store(LocalStorage):
    """A folder in the place of a store that cannot refuse the second of two writers."""

    meanwhile: ClassVar[list[Callable[[], object]]] = []

    @property
    def address(self) -> str:
        return "s3://ledger/clew"

    def below(self, folder: str) -> "Store":
        return Store(self.folder / folder)

    def write_secret(self, key: str, data: bytes) -> bool:
        if self.meanwhile:
            self.meanwhile.pop()()
        (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / key).write_bytes(data)
        return True


def test_who_slept_before_it_wrote_a_salt_does_not_replace_the_one_that_is_in_use(tmp_path: Path) -> None:
    environment: Any = SimpleNamespace(storage_root=Store(tmp_path))
    in_use = list[str]()
    Store.meanwhile[:] = [lambda: in_use.append(salt_of(environment))]
    assert [salt_of(environment), salt_of(environment)] == in_use * 2
    older = tmp_path / "older" / "captures" / "salt"
    older.parent.mkdir(parents=True)
    older.write_bytes(b"5a17")
    environment.storage_root = Store(tmp_path / "older")
    assert salt_of(environment) == "5a17"
