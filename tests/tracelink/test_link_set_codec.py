import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.tracelink import CodecError, LinkSetView, TraceLinkSet, read_link_set, write_link_set
from tests.tracelink.sbe_interpreter import SbeSchema

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
TRACE = st.integers(1, 2**64 - 1)
LINK_SETS = st.builds(
    TraceLinkSet,
    stream_id=U32,
    epoch=U64,
    seq=U64,
    trace_id=TRACE,
    parents=st.lists(TRACE, min_size=1, max_size=40, unique=True),
)


def packed(
    *,
    block_length: int = 28,
    template: int = 1,
    schema: int = 904,
    version: int = 1,
    trace_id: int = 99,
    block_tail: bytes = b"",
    stride: int = 8,
    parents: tuple[int, ...] = (5, 6),
    parent_tail: bytes = b"",
    count: int | None = None,
) -> bytes:
    header = struct.pack("<HHHH", block_length, template, schema, version)
    block = struct.pack("<IQQQ", 7, 2, 3, trace_id) + block_tail
    group = struct.pack("<HH", stride, len(parents) if count is None else count)
    return header + block + group + b"".join(struct.pack("<Q", parent) + parent_tail for parent in parents)


def test_two_parents_are_these_56_bytes() -> None:
    message = TraceLinkSet(stream_id=7, epoch=2, seq=3, trace_id=0x0102030405060708, parents=(0xA1, 0xB2))
    assert message.encode() == bytes.fromhex(
        "1c00 0100 8803 0100"  # 28 bytes of block, template 1, schema 904, version 1
        "07000000"  # stream 7
        "0200000000000000"  # epoch 2
        "0300000000000000"  # seq 3
        "0807060504030201"  # trace id, lowest byte first
        "0800 0200"  # 8 bytes a parent, 2 parents
        "a100000000000000"
        "b200000000000000"
    )


def test_one_parent_with_every_field_at_its_largest_is_these_48_bytes() -> None:
    message = TraceLinkSet(2**32 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1, [2**64 - 1])
    assert message.encode() == bytes.fromhex("1c00010088030100" + "ff" * 28 + "08000100" + "ff" * 8)


@settings(deadline=None)
@given(LINK_SETS)
def test_the_bytes_are_those_of_the_published_schema(message: TraceLinkSet) -> None:
    schema = SbeSchema("trace_link_set.xml")
    assert (schema.attribute("id"), schema.attribute("version")) == (904, 1)
    assert message.encode() == schema.encode(
        {
            "streamId": message.stream_id,
            "epoch": message.epoch,
            "seq": message.seq,
            "traceId": message.trace_id,
            "parents": [{"traceId": parent} for parent in message.parents],
        }
    )


@settings(deadline=None)
@given(LINK_SETS, st.binary(max_size=20), st.binary(max_size=20))
def test_what_was_written_is_read_again_wherever_it_lies(message: TraceLinkSet, before: bytes, after: bytes) -> None:
    encoded = message.encode()
    assert TraceLinkSet.decode(encoded) == message
    assert TraceLinkSet.decode(memoryview(encoded)) == message
    assert TraceLinkSet.decode(bytearray(encoded + after)) == message
    buffer = before + encoded + after
    *fields, end = read_link_set(buffer, len(before))
    assert fields == [message.stream_id, message.epoch, message.seq, message.trace_id, message.parents]
    assert end == len(before) + len(encoded)
    view = LinkSetView().wrap(buffer, len(before))
    assert (view.stream_id, view.epoch, view.seq, view.trace_id) == tuple(fields[:4])
    assert (view.parents(), view.parent_count, view.end) == (message.parents, len(message.parents), end)


def test_a_message_is_written_into_a_buffer_in_place() -> None:
    buffer = bytearray(100)
    length = write_link_set(buffer, 10, 7, 2, 3, 99, (5, 6))
    assert length == 56
    assert buffer == bytes(10) + packed() + bytes(34)


def test_the_order_of_parents_is_kept() -> None:
    parents = (9, 3, 7, 1)
    assert TraceLinkSet.decode(TraceLinkSet(1, 1, 1, 1, parents).encode()).parents == parents


def test_the_most_parents_that_a_group_can_count_are_written_and_read() -> None:
    message = TraceLinkSet(1, 1, 1, 1, range(1, 65_536))
    assert TraceLinkSet.decode(message.encode()) == message
    with pytest.raises(CodecError, match="at most 65535 parents, not 65536"):
        TraceLinkSet(1, 1, 1, 1, range(1, 65_537))


def test_one_view_serves_for_one_message_after_the_other() -> None:
    first, second = TraceLinkSet(1, 1, 1, 11, [5]), TraceLinkSet(1, 1, 2, 12, [6, 7])
    buffer = first.encode() + second.encode()
    view = LinkSetView()
    seen = []
    offset = 0
    while offset < len(buffer):
        offset = view.wrap(buffer, offset).end
        seen.append((view.trace_id, view.parents()))
    assert seen == [(11, (5,)), (12, (6, 7))]


@pytest.mark.parametrize(
    ("trace_id", "parents"),
    [(99, ()), (99, (0,)), (99, (5, 0, 6)), (99, (5, 6, 5)), (0, (5, 6))],
    ids=["no parents", "a parent of 0", "a parent of 0 among others", "a parent twice", "a trace id of 0"],
)
def test_what_the_specification_forbids_is_neither_written_nor_read(trace_id: int, parents: tuple[int, ...]) -> None:
    forbidden = packed(trace_id=trace_id, parents=parents)
    attempts: list[Callable[[], object]] = [
        lambda: TraceLinkSet(7, 2, 3, trace_id, parents),
        lambda: write_link_set(bytearray(100), 0, 7, 2, 3, trace_id, parents),
        lambda: TraceLinkSet.decode(forbidden),
        lambda: read_link_set(forbidden),
        lambda: LinkSetView().wrap(forbidden).parents(),
    ]
    for attempt in attempts:
        with pytest.raises(CodecError):
            attempt()


@pytest.mark.parametrize(
    "values",
    [
        (-1, 2, 3, 99, (5,)),
        (2**32, 2, 3, 99, (5,)),
        (7, -1, 3, 99, (5,)),
        (7, 2**64, 3, 99, (5,)),
        (7, 2, 2**64, 99, (5,)),
        (7, 2, 3, 2**64, (5,)),
        (7, 2, 3, -99, (5,)),
        (7, 2, 3, 99, (2**64,)),
        (7, 2, 3, 99, (-5,)),
        (7, 2, 3, 99, (5.5,)),
        (7, 2, 3, 99, ("5",)),
        (7, 2, 3, 99, ([5],)),
        ("7", 2, 3, 99, (5,)),
    ],
)
def test_values_that_do_not_fit_their_fields_are_refused(values: tuple[int, int, int, int, tuple[int, ...]]) -> None:
    with pytest.raises(CodecError):
        TraceLinkSet(*values)


def test_a_buffer_that_is_too_small_to_write_into_is_refused() -> None:
    with pytest.raises(CodecError):
        write_link_set(bytearray(55), 0, 7, 2, 3, 99, (5, 6))


@pytest.mark.parametrize("other", [{"schema": 900}, {"schema": 905}, {"template": 2}, {"schema": 0}])
def test_another_schema_or_template_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(CodecError, match="is not a TraceLinkSet"):
        TraceLinkSet.decode(packed(**other))


@pytest.mark.parametrize("length", range(56))
def test_every_truncation_is_refused(length: int) -> None:
    with pytest.raises(CodecError):
        TraceLinkSet.decode(packed()[:length])


def test_offsets_outside_the_buffer_are_refused() -> None:
    for offset in (-1, -56, 1, 56, 57, 1000):
        with pytest.raises(CodecError):
            read_link_set(packed(), offset)
        with pytest.raises(CodecError):
            LinkSetView().wrap(packed(), offset)


def test_a_newer_version_with_longer_blocks_is_read_by_skipping_what_is_unknown() -> None:
    newer = packed(version=9, block_length=33, block_tail=b"extra", stride=11, parent_tail=b"new")
    assert TraceLinkSet.decode(newer + b"next") == TraceLinkSet(7, 2, 3, 99, (5, 6))
    assert read_link_set(newer + b"next")[-1] == len(newer)
    assert TraceLinkSet.decode(packed(version=2)) == TraceLinkSet(7, 2, 3, 99, (5, 6))
    with pytest.raises(CodecError):
        TraceLinkSet.decode(newer[:-1])


@pytest.mark.parametrize("broken", [{"block_length": 27}, {"block_length": 0}, {"stride": 7}, {"stride": 0}])
def test_blocks_shorter_than_their_fields_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(CodecError):
        TraceLinkSet.decode(packed(**broken))


def test_a_message_cannot_be_changed_once_made() -> None:
    message = TraceLinkSet(7, 2, 3, 99, [5, 6])
    with pytest.raises(AttributeError):
        message.trace_id = 1  # type: ignore[misc]
    assert message == TraceLinkSet(7, 2, 3, 99, (5, 6))
    assert hash(message) == hash(TraceLinkSet(7, 2, 3, 99, (5, 6)))
