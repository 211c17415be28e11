"""A ring of records in one preallocated buffer, between one thread that writes and one that reads.

Neither side takes a lock. Each position is written by one side only, and a record becomes visible by one assignment,
after its bytes are in place. Positions count bytes since the start and never wrap; where a record would be cut by the
end of the buffer, the rest is filled and the record starts at the front.

    record    u32 length, payload, fill to 8 bytes
"""

import struct
from typing import Final

_LENGTH: Final = struct.Struct("<I")
_LENGTH_SIZE = 4
_ALIGNMENT = 8
_FILL = 0xFFFF_FFFF
FULL = -1
"""What `claim` returns when there is no room."""


class RecordRing:
    """Bytes in, bytes out, in order. `claim` and `commit` are the writer's, `take` is the reader's."""

    def __init__(self, capacity: int) -> None:
        if capacity < _ALIGNMENT or capacity & (capacity - 1):
            raise ValueError(f"the capacity of a ring is a power of two, not {capacity}")
        self.buffer = bytearray(capacity)
        self._capacity = capacity
        self._mask = capacity - 1
        self._written = 0
        self._claimed = 0
        self._taken = 0

    @property
    def is_empty(self) -> bool:
        """Whether everything written has been taken."""
        return self._written == self._taken

    @property
    def largest_record(self) -> int:
        """The most bytes that a record can have and still fit wherever the writer is, once the ring is empty."""
        return self._capacity // 2 - _ALIGNMENT

    def claim(self, length: int) -> int:
        """Where to write a record of this length, or FULL. Nothing is visible to the reader before `commit`."""
        needed = (length + _LENGTH_SIZE + _ALIGNMENT - 1) & -_ALIGNMENT
        position = self._written
        free = self._capacity - position + self._taken
        index = position & self._mask
        to_end = self._capacity - index
        if needed > to_end:
            if needed + to_end > free:
                return FULL
            _LENGTH.pack_into(self.buffer, index, _FILL)
            position += to_end
            index = 0
        elif needed > free:
            return FULL
        self._claimed = position
        return index + _LENGTH_SIZE

    def commit(self, length: int) -> None:
        """Make the record at the place that was claimed last visible."""
        position = self._claimed
        _LENGTH.pack_into(self.buffer, position & self._mask, length)
        self._written = position + ((length + _LENGTH_SIZE + _ALIGNMENT - 1) & -_ALIGNMENT)

    def take(self, into: bytearray | memoryview, limit: int) -> tuple[int, int]:
        """Move records into a buffer, one after the other, while they fit the limit; at least one if there is one.

        Returns the bytes and the number of records.
        """
        position, end = self._taken, self._written
        used = count = 0
        while position != end:
            index = position & self._mask
            (length,) = _LENGTH.unpack_from(self.buffer, index)
            if length == _FILL:
                position += self._capacity - index
                continue
            if count and used + length > limit:
                break
            start = index + _LENGTH_SIZE
            into[used : used + length] = self.buffer[start : start + length]
            used += length
            count += 1
            position += (length + _LENGTH_SIZE + _ALIGNMENT - 1) & -_ALIGNMENT
        self._taken = position
        return used, count
