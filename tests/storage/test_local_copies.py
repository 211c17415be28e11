"""Copies on this machine of what was read from a store: bounded, private, never damaged, shared by processes."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clew.diagnostics import UserError
from clew.storage.local_copies import LocalCopies, local_copies

MB = 1 << 20


@pytest.fixture
def copies(tmp_path: Path) -> LocalCopies:
    return LocalCopies(tmp_path / "copies", 16 * MB)


def files(copies: LocalCopies) -> list[Path]:
    return [path for path in copies.folder.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_copy_is_read_as_it_was_kept(copies: LocalCopies) -> None:
    assert copies.get("file a") is None
    copies.put("file a", b"one")
    copies.put("file empty", b"")
    assert (copies.get("file a"), copies.get("file empty"), copies.get("file b")) == (b"one", b"", None)


def test_what_was_read_once_is_not_read_again(copies: LocalCopies) -> None:
    asked = list[str]()

    def read() -> bytes:
        asked.append("x")
        return b"content"

    assert [copies.through("plan a", read) for _ in range(3)] == [b"content"] * 3
    assert len(asked) == 1


def test_copies_are_for_their_owner_alone(copies: LocalCopies) -> None:
    copies.put("file a", b"one")
    for path in [copies.folder, *copies.folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_folder_that_is_open_to_others_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    LocalCopies(folder, 16 * MB).put("file a", b"one")
    assert list(folder.iterdir()) == []


def test_a_link_is_not_taken_for_the_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    LocalCopies(tmp_path / "link", 16 * MB).put("file a", b"one")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_cannot_be_made_costs_nothing_but_the_copies(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    copies = LocalCopies(tmp_path / "file" / "copies", 16 * MB)
    assert copies.through("file a", lambda: b"one") == b"one"


def test_damage_is_noticed_and_removed(copies: LocalCopies) -> None:
    for damage in (lambda data: data[:-1], lambda data: data[:-1] + b"X", lambda _: b""):
        copies.put("file a", b"content")
        [path] = files(copies)
        path.write_bytes(damage(path.read_bytes()))
        assert copies.get("file a") is None
        assert files(copies) == []


def test_copies_never_take_more_room_than_they_may_and_the_oldest_go_first(copies: LocalCopies) -> None:
    for number in range(400):
        copies.put(f"file {number}", bytes([number % 256]) * 100_000)
        copies.get("file 0")  # in use all the time
        assert sum(path.stat().st_size for path in files(copies)) <= copies.limit
    assert copies.get("file 0") == bytes(100_000)
    assert copies.get("file 399") == bytes([399 % 256]) * 100_000
    assert copies.get("file 1") is None


def test_what_is_larger_than_its_place_is_not_kept(copies: LocalCopies) -> None:
    copies.put("file a", bytes(2 * MB))
    assert files(copies) == []


def test_what_was_not_used_for_a_week_goes(copies: LocalCopies) -> None:
    copies.put("file a", b"old")
    [old] = files(copies)
    os.utime(old, (1, 1))
    for number in range(64):  # some of them go to the same place
        copies.put(f"file {number}", b"new")
    assert not old.exists()


def test_what_a_process_left_that_did_not_finish_goes(copies: LocalCopies) -> None:
    copies.put("file a", b"one")
    [path] = files(copies)
    left = path.with_name(f".{path.name}x")
    left.write_bytes(b"half")
    path.unlink()
    for number in range(64):
        copies.put(f"file {number}", b"new")
    assert not left.exists()


WRITER = """
import sys
from pathlib import Path
from clew.storage.local_copies import LocalCopies
copies = LocalCopies(Path(sys.argv[1]), 16 << 20)
for number in range(300):
    name = f"file {number % 100}"
    content = bytes([number % 100]) * 60_000
    found = copies.get(name)
    assert found is None or found == content
    copies.put(name, content)
"""


def test_processes_share_copies_without_harm(copies: LocalCopies) -> None:
    with ThreadPoolExecutor(4) as threads:
        command = [sys.executable, "-c", WRITER, str(copies.folder)]
        done = list(threads.map(lambda _: subprocess.run(command, capture_output=True, check=False), range(4)))
    assert [each.returncode for each in done] == [0] * 4, [each.stderr.decode()[-500:] for each in done]
    assert 0 < sum(path.stat().st_size for path in files(copies)) <= copies.limit
    for number in range(100):
        assert copies.get(f"file {number}") in {None, bytes([number]) * 60_000}


def test_variables_choose_place_and_size(tmp_path: Path) -> None:
    assert local_copies({"CLEW_CACHE_MB": "0", "HOME": str(tmp_path)}) is None
    assert local_copies({}) is None
    assert local_copies({"HOME": "/home/ada"}) == LocalCopies(Path("/home/ada/.cache/clew/copies"), 256 * MB)
    assert local_copies({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == LocalCopies(Path("/c/clew/copies"), 256 * MB)
    chosen = {"HOME": "/h", "CLEW_CACHE_DIR": str(tmp_path), "CLEW_CACHE_MB": "8"}
    assert local_copies(chosen) == LocalCopies(tmp_path, 8 * MB)


@pytest.mark.parametrize("size", ["many", "-1", "1.5", "99999999", "٣"])
def test_a_size_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(UserError, match="CLEW_CACHE_MB") as refused:
        local_copies({"CLEW_CACHE_MB": size})
    assert refused.value.code == "InvalidValue"
