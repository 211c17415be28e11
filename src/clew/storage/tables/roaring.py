"""Deletion vectors: sets of row positions as roaring bitmaps, in the form that Delta and Iceberg share.

A vector counts its 32-bit bitmaps and gives each its upper half. A bitmap has containers of 65,536 positions: sorted
numbers, bits, or runs, whichever is smallest.
"""

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence

_WITHOUT_RUNS = 12346
_WITH_RUNS = 12347
_FEWEST_WITH_OFFSETS = 4
_LARGEST_ARRAY = 4096
_BITS_BYTES = 8192


def positions_of(vector: bytes) -> list[int]:
    """The positions in a vector, ascending. ValueError where it is not one."""
    try:
        return list(_positions(vector))
    except (struct.error, IndexError) as error:
        raise ValueError(f"a deletion vector is cut short: {error}") from None


def _positions(vector: bytes) -> Iterator[int]:
    (count,) = struct.unpack_from("<q", vector)
    at = 8
    for _ in range(count):
        (high,) = struct.unpack_from("<I", vector, at)
        low, at = _bitmap(vector, at + 4)
        yield from ((high << 32) + each for each in low)


def _bitmap(data: bytes, at: int) -> tuple[list[int], int]:
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        runs = data[at : at + (size + 7) // 8]
        at += len(runs)
    elif cookie == _WITHOUT_RUNS:
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise ValueError(f"a deletion vector begins with {cookie}, which no roaring bitmap does")
    header = struct.unpack_from(f"<{size * 2}H", data, at)
    at += size * 4
    if not runs or size >= _FEWEST_WITH_OFFSETS:
        at += size * 4
    found = list[int]()
    values: Sequence[int]
    for number in range(size):
        key, cardinality = header[number * 2] << 16, header[number * 2 + 1] + 1
        if runs and runs[number // 8] >> number % 8 & 1:
            values, at = _runs(data, at)
        elif cardinality <= _LARGEST_ARRAY:
            values, at = _numbers(data, at, cardinality)
        else:
            values, at = _bits(data, at)
        found += [key + value for value in values]
    return found, at


def _numbers(data: bytes, at: int, count: int) -> "tuple[array[int], int]":
    values = array("H", data[at : at + count * 2])
    if len(values) != count:
        raise ValueError("a deletion vector is cut short")
    if sys.byteorder == "big":
        values.byteswap()
    return values, at + count * 2


def _runs(data: bytes, at: int) -> tuple[list[int], int]:
    (count,) = struct.unpack_from("<H", data, at)
    pairs, at = _numbers(data, at + 2, count * 2)
    found = list[int]()
    for number in range(count):
        start, length = pairs[number * 2], pairs[number * 2 + 1]
        found += range(start, start + length + 1)
    return found, at


def _bits(data: bytes, at: int) -> tuple[list[int], int]:
    bits = data[at : at + _BITS_BYTES]
    if len(bits) != _BITS_BYTES:
        raise ValueError("a deletion vector is cut short")
    found = [index * 8 + bit for index, byte in enumerate(bits) if byte for bit in range(8) if byte >> bit & 1]
    return found, at + _BITS_BYTES
