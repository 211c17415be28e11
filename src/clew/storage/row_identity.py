"""Which row is which: ordinals inside, row ids outside.

A row is in a Parquet file that is never rewritten, at a position that never changes. The ordinal of the file and the
position make a 64-bit ordinal; ordinal and run make a UUID, and the UUID gives the ordinal back. So no row id is ever
stored, and the same row has the same id however often it is computed.
"""

import hashlib
import uuid

from clew.deferred import dataclass

ROW_INDEX_BITS = 40
MAX_FILE_ORDINAL = 2 ** (62 - ROW_INDEX_BITS) - 1
_VERSION_8 = 0x8
_VARIANT = 0b10
_ORDINAL_MASK = (1 << 62) - 1


def ordinal_of(file_ordinal: int, row_index: int) -> int:
    """The ordinal of the row at a position of a file."""
    if not 0 <= file_ordinal <= MAX_FILE_ORDINAL:
        raise ValueError(f"file ordinal {file_ordinal} is out of range")
    if not 0 <= row_index < 1 << ROW_INDEX_BITS:
        raise ValueError(f"row index {row_index} is out of range")
    return (file_ordinal << ROW_INDEX_BITS) + row_index


def place_of(ordinal: int) -> tuple[int, int]:
    """The file ordinal and the row index of a row."""
    return ordinal >> ROW_INDEX_BITS, ordinal & ((1 << ROW_INDEX_BITS) - 1)


@dataclass(frozen=True, slots=True)
class RowIds:
    """The row ids of one run: UUIDs of version 8 with 60 bits from the run and 62 bits of ordinal."""

    run_id: str

    @property
    def _run_bits(self) -> int:
        return int.from_bytes(hashlib.sha256(self.run_id.encode()).digest()[:8]) >> 4

    @property
    def epoch(self) -> int:
        """The run as a number, the same that its row ids begin with: the epoch of its frames."""
        return self._run_bits

    @property
    def prefix(self) -> str:
        """The first 18 characters that all row ids of the run share, dash at the end not included."""
        return str(self._uuid(0))[:18]

    def row_id(self, ordinal: int) -> str:
        """The id of the row with this ordinal."""
        return str(self._uuid(ordinal))

    def ordinal(self, row_id: str) -> int | None:
        """The ordinal of a row id, None where it is not a row id, or one of another run."""
        try:
            value = uuid.UUID(row_id).int
        except ValueError:
            return None
        ordinal = value & _ORDINAL_MASK
        return ordinal if self._uuid(ordinal).int == value else None

    @staticmethod
    def is_row_id(text: str) -> bool:
        """Whether a text is a row id of some run."""
        try:
            value = uuid.UUID(text)
        except ValueError:
            return False
        return value.version == _VERSION_8 and value.variant == uuid.RFC_4122

    def _uuid(self, ordinal: int) -> uuid.UUID:
        run = self._run_bits
        high = ((run >> 12) << 16) | (_VERSION_8 << 12) | (run & 0xFFF)
        low = (_VARIANT << 62) | ordinal
        return uuid.UUID(int=(high << 64) | low)
