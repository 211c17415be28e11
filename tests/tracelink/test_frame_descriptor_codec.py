import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.tracelink import CodecError, FrameDescriptor, FrameView, read_frame, write_frame
from tests.tracelink.sbe_interpreter import SbeSchema

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    FrameDescriptor,
    stream_id=U32,
    epoch=U64,
    seq=U64,
    timestamp_ns=st.none() | st.integers(0, 2**64 - 2),
    meta_version=st.none() | st.integers(0, 2**32 - 2),
    trace_id=U64,
)
FRAME = FrameDescriptor(7, 2, 3, timestamp_ns=11, meta_version=12, trace_id=99)


def test_a_full_frame_is_these_48_bytes() -> None:
    frame = FrameDescriptor(
        stream_id=0x01020304, epoch=5, seq=6, timestamp_ns=0x1122334455667788, meta_version=9, trace_id=0xCAFE
    )
    assert frame.encode() == bytes.fromhex(
        "2800 0400 8403 0100"  # 40 bytes of block, template 4, schema 900, version 1
        "04030201"  # stream, lowest byte first
        "0500000000000000"  # epoch 5
        "0600000000000000"  # seq 6
        "8877665544332211"  # nanoseconds
        "09000000"  # meta version 9
        "feca000000000000"  # trace id
    )


def test_a_frame_with_nothing_optional_is_these_48_bytes() -> None:
    assert FrameDescriptor(7, 2, 3).encode() == bytes.fromhex(
        "2800040084030100"
        "07000000"
        "0200000000000000"
        "0300000000000000"
        "ffffffffffffffff"  # no timestamp
        "ffffffff"  # no meta version
        "0000000000000000"  # not traced
    )


@settings(deadline=None)
@given(FRAMES)
def test_the_bytes_are_those_of_the_published_schema(frame: FrameDescriptor) -> None:
    schema = SbeSchema("frame_descriptor.xml")
    assert (schema.attribute("id"), schema.attribute("version")) == (900, 1)
    assert frame.encode() == schema.encode(
        {
            "streamId": frame.stream_id,
            "epoch": frame.epoch,
            "seq": frame.seq,
            "timestampNs": frame.timestamp_ns,
            "metaVersion": frame.meta_version,
            "traceId": frame.trace_id or None,
        }
    )


@settings(deadline=None)
@given(FRAMES, st.binary(max_size=20), st.binary(max_size=20))
def test_what_was_written_is_read_again_wherever_it_lies(frame: FrameDescriptor, before: bytes, after: bytes) -> None:
    encoded = frame.encode()
    assert FrameDescriptor.decode(memoryview(encoded)) == frame
    buffer = before + encoded + after
    read = read_frame(buffer, len(before))
    assert FrameDescriptor(*read[:-1]) == frame
    assert read[-1] == len(before) + 48
    view = FrameView().wrap(memoryview(buffer), len(before))
    seen = (view.stream_id, view.epoch, view.seq, view.timestamp_ns, view.meta_version, view.trace_id)
    assert (*seen, view.end) == read


def test_a_frame_is_written_into_a_buffer_in_place() -> None:
    buffer = bytearray(60)
    assert write_frame(buffer, 5, 7, 2, 3, 11, 12, 99) == 48
    assert buffer == bytes(5) + FRAME.encode() + bytes(7)


def test_a_reader_that_knows_nothing_of_trace_ids_reads_all_else_and_finds_the_next_message() -> None:
    buffer = FRAME.encode() * 2
    offset, seen = 0, []
    while offset < len(buffer):
        (block_length,) = struct.unpack_from("<H", buffer, offset)
        seen.append(struct.unpack_from("<IQQQI", buffer, offset + 8))
        offset += 8 + block_length
    assert seen == [(7, 2, 3, 11, 12)] * 2


def test_a_writer_that_knows_nothing_of_trace_ids_is_read_as_not_traced() -> None:
    old = struct.pack("<HHHHIQQQI", 32, 4, 900, 0, 7, 2, 3, 11, 12)
    assert FrameDescriptor.decode(old) == FrameDescriptor(7, 2, 3, 11, 12, trace_id=0)
    assert read_frame(old + b"next")[-1] == 40


def test_a_newer_version_with_a_longer_block_is_read_by_skipping_what_is_unknown() -> None:
    newer = struct.pack("<HHHHIQQQIQ5s", 45, 4, 900, 7, 7, 2, 3, 11, 12, 99, b"extra")
    assert FrameDescriptor.decode(newer) == FRAME
    assert read_frame(newer + b"next")[-1] == len(newer)
    with pytest.raises(CodecError):
        FrameDescriptor.decode(newer[:-1])


@pytest.mark.parametrize("block_length", [0, 31, 33, 39])
def test_a_block_that_ends_inside_a_field_is_refused(block_length: int) -> None:
    broken = struct.pack("<H", block_length) + FRAME.encode()[2:]
    with pytest.raises(CodecError):
        FrameDescriptor.decode(broken)


@pytest.mark.parametrize("length", range(48))
def test_every_truncation_is_refused(length: int) -> None:
    with pytest.raises(CodecError):
        FrameDescriptor.decode(FRAME.encode()[:length])


def test_another_schema_or_template_is_refused() -> None:
    for header in ((40, 4, 904, 1), (40, 1, 900, 1), (40, 4, 901, 1)):
        with pytest.raises(CodecError, match="is not a FrameDescriptor"):
            FrameDescriptor.decode(struct.pack("<HHHH", *header) + bytes(40))


def test_offsets_outside_the_buffer_are_refused() -> None:
    for offset in (-1, -48, 1, 48, 49):
        with pytest.raises(CodecError):
            read_frame(FRAME.encode(), offset)


@pytest.mark.parametrize(
    "values",
    [
        {"stream_id": -1},
        {"stream_id": 2**32},
        {"epoch": 2**64},
        {"seq": -1},
        {"timestamp_ns": 2**64 - 1},
        {"timestamp_ns": 2**64},
        {"timestamp_ns": -1},
        {"meta_version": 2**32 - 1},
        {"meta_version": 2**32},
        {"trace_id": 2**64},
        {"trace_id": -1},
        {"trace_id": None},
        {"seq": 1.5},
    ],
)
def test_values_that_do_not_fit_their_fields_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(CodecError):
        FrameDescriptor(**({"stream_id": 1, "epoch": 1, "seq": 1} | values))
