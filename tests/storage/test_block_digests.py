"""Blocks of files: what is read has the digest that it was written with, and no more than that is read."""

import hashlib
import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.diagnostics import UserError
from clew.storage.block_digests import BLOCK, CheckedBlocks, NotAsWritten, digests_of, digests_of_file
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import Part, PartFile, part_from_json, part_to_json
from clew.storage.roots import storage_at

ROWS, GROUP = 400_000, 40_000


def test_digests_are_those_of_the_content_and_of_its_blocks() -> None:
    content = bytes(range(256)) * 10_000
    stream = io.BytesIO(content)
    found = digests_of(iter(lambda: stream.read(BLOCK), b""))
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    starts = range(0, len(content), BLOCK)
    assert list(found.blocks) == [hashlib.sha256(content[start : start + BLOCK]).hexdigest() for start in starts]
    assert digests_of([b"short"]).blocks == ()


CONTENT = b"".join(number.to_bytes(4, "big") for number in range(3 * BLOCK // 4 + 1000))


@given(st.lists(st.tuples(st.integers(0, len(CONTENT)), st.integers(-1, 2 * BLOCK)), max_size=6))
def test_reading_gives_the_bytes_of_the_file_and_checks_only_their_blocks(reads: list[tuple[int, int]]) -> None:
    read, checked = list[tuple[int, int]](), set[int]()

    def read_at(position: int, count: int) -> bytes:
        read.append((position, count))
        return CONTENT[position : position + count]

    blocks = digests_of(CONTENT[start : start + BLOCK] for start in range(0, len(CONTENT), BLOCK)).blocks
    file, expected = CheckedBlocks(read_at, len(CONTENT), blocks, checked), io.BytesIO(CONTENT)
    touched = set[int]()
    for position, count in reads:
        assert file.seek(position) == expected.seek(position)
        found = expected.read(count)
        assert file.read(count) == found
        touched |= set(range(position // BLOCK, -(-(position + len(found)) // BLOCK))) if found else set()
    assert checked == touched
    assert all(count <= 4 * BLOCK for _, count in read)


def test_a_changed_byte_is_noticed_wherever_it_is_read_and_nowhere_else() -> None:
    blocks = digests_of(CONTENT[start : start + BLOCK] for start in range(0, len(CONTENT), BLOCK)).blocks
    changed = bytearray(CONTENT)
    changed[BLOCK + 7] ^= 1
    file = CheckedBlocks(lambda at, count: bytes(changed[at : at + count]), len(changed), blocks, set())
    assert file.read(BLOCK) == CONTENT[:BLOCK]
    with pytest.raises(NotAsWritten, match="from byte 1,048,576 on"):
        file.read(1)
    file.seek(2 * BLOCK)
    assert file.read(10) == CONTENT[2 * BLOCK :][:10]


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, PartFile]:
    """A file of several blocks, with ten row groups."""
    path = tmp_path / "large.parquet"
    values = [number * 7919 % 1_000_003 for number in range(ROWS)]
    table = pa.table({"__ordinal": pa.array(range(ROWS), pa.int64()), "x": pa.array(values, pa.int64())})
    pq.write_table(table, path, row_group_size=GROUP, compression="none", use_dictionary=False)
    digests = digests_of_file(storage_at(tmp_path), path.name)
    assert len(digests.blocks) > 4
    return path, PartFile(path.name, ROWS, path.stat().st_size, digests.sha256, 0, blocks=digests.blocks)


def value(files: TraceFiles, file: PartFile, position: int) -> int:
    found: int = files.row(file, position, ["x"])["x"][0].as_py()
    return found


def forged(path: Path, group: int, number: int = 42) -> None:
    """Another value in a row group, in its first place; the page is right in itself, and so is the footer."""
    start = pq.read_metadata(path).row_group(group).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    old = (group * GROUP * 7919 % 1_000_003).to_bytes(8, "little")
    at = content.index(old, start)
    content[at : at + 8] = number.to_bytes(8, "little")
    path.write_bytes(content)


def test_a_value_that_was_forged_in_a_large_file_is_refused_and_rows_elsewhere_are_not(
    large: tuple[Path, PartFile],
) -> None:
    path, file = large
    forged(path, 5)
    files = TraceFiles(storage_at(path.parent))
    assert value(files, file, 0) == 0
    with pytest.raises(UserError) as refused:
        value(files, file, 5 * GROUP)
    assert refused.value.code == "DamagedTrace"
    assert "large.parquet is damaged: its content from byte" in str(refused.value)
    with pytest.raises(UserError):
        files.require_whole(file)


def test_a_file_that_changes_after_it_was_read_is_checked_again(large: tuple[Path, PartFile]) -> None:
    path, file = large
    files = TraceFiles(storage_at(path.parent))
    before = path.stat()
    assert value(files, file, 5 * GROUP) == 5 * GROUP * 7919 % 1_000_003
    forged(path, 5)

    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the time of change is set back
    with pytest.raises(UserError):
        value(files, file, 5 * GROUP)


def test_files_without_digests_of_blocks_are_compared_as_a_whole(large: tuple[Path, PartFile]) -> None:
    """Those of registered datasets, and of an older Clew."""
    path, file = large
    old = PartFile(file.path, file.rows, file.size, file.sha256, 0)
    assert value(TraceFiles(storage_at(path.parent)), old, 3) == 3 * 7919
    forged(path, 5)
    with pytest.raises(UserError):
        value(TraceFiles(storage_at(path.parent)), old, 3)


def test_damage_is_told_before_the_question_is_refused(large: tuple[Path, PartFile]) -> None:
    path, file = large
    forged(path, 2)
    told = list[UserError]()
    files = TraceFiles(storage_at(path.parent), on_damage=told.append)
    with pytest.raises(UserError) as refused:
        value(files, file, 2 * GROUP)
    assert [str(each) for each in told] == [str(refused.value)]


def test_descriptions_keep_the_digests_of_blocks(large: tuple[Path, PartFile]) -> None:
    part = Part("input", "x", (large[1],), ())
    assert part_from_json(part_to_json(part), "part.json") == part
    data = part_to_json(part)
    files = data["files"]
    assert isinstance(files, tuple)
    del files[0]["blocks"]
    assert part_from_json(data, "part.json").files[0].blocks == ()
