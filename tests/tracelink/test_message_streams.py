import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.tracelink import CodecError, FrameDescriptor, SkipCounts, TraceLinkSet, read_batch, read_stream
from tests.tiers import examples

FRAME = FrameDescriptor(1, 2, 3, trace_id=50)
LINKS = TraceLinkSet(1, 2, 3, 50, [10, 11])
FOREIGN = struct.pack("<HHHHQ", 8, 1, 55, 1, 0)
MESSAGES = st.lists(
    st.one_of(
        st.builds(FrameDescriptor, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
        st.builds(
            TraceLinkSet,
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(1, 9),
            st.lists(st.integers(1, 9), min_size=1, unique=True),
        ),
    ),
    max_size=8,
)


def read(buffer: bytes | bytearray | memoryview) -> tuple[list[FrameDescriptor | TraceLinkSet], SkipCounts]:
    skips = SkipCounts()
    return list(read_stream(buffer, skips)), skips


def encoded(*messages: FrameDescriptor | TraceLinkSet) -> bytes:
    return b"".join(message.encode() for message in messages)


@settings(deadline=None)
@given(MESSAGES)
def test_messages_one_after_the_other_are_read_in_order(messages: list[FrameDescriptor | TraceLinkSet]) -> None:
    assert read(encoded(*messages)) == (messages, SkipCounts())
    assert read(memoryview(encoded(*messages))) == (messages, SkipCounts())


def test_a_batch_is_read_into_two_lists_of_plain_values() -> None:
    frames: list[tuple[object, ...]] = []
    link_sets: list[tuple[object, ...]] = []
    skips = SkipCounts()
    read_batch(encoded(FRAME, LINKS, FRAME), frames, link_sets, skips)  # type: ignore[arg-type]
    assert frames == [(1, 2, 3, None, None, 50, 48), (1, 2, 3, None, None, 50, 48 + 56 + 48)]
    assert link_sets == [(1, 2, 3, 50, (10, 11), 48 + 56)]
    assert skips.total == 0


def test_an_unknown_schema_ends_the_datagram_and_is_counted() -> None:
    buffer = encoded(FRAME, LINKS) + FOREIGN + encoded(FRAME)
    assert read(buffer) == ([FRAME, LINKS], SkipCounts(unknown_schemas=1, skipped_bytes=16 + 48))


def test_an_unknown_template_of_a_known_schema_ends_the_datagram_and_is_counted() -> None:
    for schema, template in ((900, 1), (904, 4), (900, 5)):
        unknown = struct.pack("<HHHH", 0, template, schema, 1)
        assert read(encoded(FRAME) + unknown) == ([FRAME], SkipCounts(unknown_templates=1, skipped_bytes=8))


def test_a_message_with_forbidden_content_is_skipped_alone() -> None:
    for parents in (b"", bytes(8), struct.pack("<QQ", 5, 5)):
        forbidden = struct.pack("<HHHHIQQQHH", 28, 1, 904, 1, 1, 2, 3, 50, 8, len(parents) // 8) + parents
        expected = SkipCounts(malformed=1, skipped_bytes=len(forbidden))
        assert read(encoded(FRAME) + forbidden + encoded(LINKS)) == ([FRAME, LINKS], expected)


def test_a_newer_version_with_a_longer_block_does_not_hide_what_follows() -> None:
    newer = struct.pack("<HHHHIQQQIQ4s", 44, 4, 900, 2, 1, 2, 3, 2**64 - 1, 2**32 - 1, 50, b"more")
    assert read(newer + encoded(LINKS)) == ([FRAME, LINKS], SkipCounts())


def test_a_message_that_breaks_off_ends_the_datagram_and_is_counted() -> None:
    for length in range(8, 48):
        assert read(encoded(LINKS) + FRAME.encode()[:length]) == (
            [LINKS],
            SkipCounts(malformed=1, skipped_bytes=length),
        )


def test_a_rest_too_short_for_a_header_is_counted() -> None:
    assert read(encoded(FRAME) + b"abc") == ([FRAME], SkipCounts(malformed=1, skipped_bytes=3))


def test_an_empty_datagram_holds_nothing_and_skips_nothing() -> None:
    assert read(b"") == ([], SkipCounts())


def test_counts_go_on_over_datagrams() -> None:
    skips = SkipCounts()
    for _ in range(3):
        list(read_stream(FOREIGN, skips))
    assert (skips.unknown_schemas, skips.total, skips.skipped_bytes) == (3, 3, 48)


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_skipped_and_never_more_than_an_error_of_the_codec(noise: bytes) -> None:
    messages, skips = read(noise)
    assert sum(len(m.encode()) for m in messages) + skips.skipped_bytes <= len(noise)
    for codec in (FrameDescriptor, TraceLinkSet):
        decode_or_refuse(codec, noise)


@settings(max_examples=examples(500), deadline=None)
@given(MESSAGES, st.data())
def test_mutated_messages_are_read_or_skipped_without_reading_past_the_end(
    messages: list[FrameDescriptor | TraceLinkSet], data: st.DataObject
) -> None:
    buffer = bytearray(encoded(LINKS, FRAME, *messages))
    for _ in range(data.draw(st.integers(1, 6))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(buffer)))
    beyond = b"\xee" * 64
    guarded = memoryview(bytes(buffer[:length]) + beyond)[:length]
    assert read(guarded) == read(bytes(buffer[:length]))
    for codec in (FrameDescriptor, TraceLinkSet):
        assert decode_or_refuse(codec, guarded) == decode_or_refuse(codec, bytes(guarded))


def decode_or_refuse(
    codec: type[FrameDescriptor | TraceLinkSet], buffer: bytes | memoryview
) -> FrameDescriptor | TraceLinkSet | None:
    try:
        return codec.decode(buffer)
    except CodecError:
        return None
