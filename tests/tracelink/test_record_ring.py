import threading
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.tracelink.ring import FULL, RecordRing
from tests.tiers import examples


def put(ring: RecordRing, record: bytes) -> bool:
    offset = ring.claim(len(record))
    if offset == FULL:
        return False
    ring.buffer[offset : offset + len(record)] = record
    ring.commit(len(record))
    return True


def take(ring: RecordRing, limit: int) -> tuple[bytes, int]:
    into = bytearray(4096)
    length, count = ring.take(into, limit)
    return bytes(into[:length]), count


@settings(max_examples=examples(300), deadline=None)
@given(
    capacity=st.sampled_from([64, 128, 256]),
    steps=st.lists(st.one_of(st.binary(min_size=1, max_size=24), st.integers(1, 60)), max_size=120),
)
def test_records_come_out_as_they_went_in_and_only_a_full_ring_refuses(capacity: int, steps: list[bytes | int]) -> None:
    ring = RecordRing(capacity)
    expected: deque[bytes] = deque()
    for step in steps:
        if isinstance(step, bytes):
            if put(ring, step):
                expected.append(step)
            else:
                assert sum(len(record) + 11 for record in expected) + 2 * (len(step) + 11) > capacity
        else:
            taken, count = take(ring, step)
            records = [expected.popleft() for _ in range(count)]
            assert taken == b"".join(records)
            assert len(taken) <= step or count == 1
            assert count or not expected
        assert ring.is_empty is not bool(expected)


def test_the_largest_record_fits_an_empty_ring_wherever_the_writer_is() -> None:
    for filled in range(0, 128, 8):
        ring = RecordRing(128)
        for _ in range(filled // 8):
            assert put(ring, b"abcd")
            take(ring, 100)
        assert put(ring, bytes(ring.largest_record))
        assert take(ring, 100) == (bytes(ring.largest_record), 1)


def test_what_is_claimed_and_not_committed_is_not_seen() -> None:
    ring = RecordRing(64)
    ring.claim(8)
    assert ring.is_empty
    assert put(ring, b"seen")
    assert take(ring, 100) == (b"seen", 1)


@pytest.mark.parametrize("capacity", [0, 4, 100, -64])
def test_a_capacity_that_is_no_power_of_two_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        RecordRing(capacity)


def test_a_writer_and_a_reader_at_once_lose_and_mix_nothing_that_was_accepted() -> None:
    ring = RecordRing(1024)
    accepted: list[bytes] = []
    received = bytearray()
    finished = threading.Event()

    def read() -> None:
        into = bytearray(4096)
        while True:
            last_round = finished.is_set()
            length, count = ring.take(into, 200)
            received.extend(into[:length])
            if last_round and not count:
                return

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(30_000):
        record = number.to_bytes(4, "little") * (1 + number % 9)
        if put(ring, record):
            accepted.append(record)
    finished.set()
    reader.join()
    assert bytes(received) == b"".join(accepted)
    assert len(accepted) > 20
