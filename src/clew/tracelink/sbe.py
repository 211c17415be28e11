"""What all messages share, as defined by Simple Binary Encoding, little endian.

A message is a header, a block of fixed fields and, for some, a repeating group with a small header. Headers state the
length of the blocks that follow, and a newer version only appends fields to a block. So a reader takes the fields it
knows from the front and skips to the end that the header states.
"""

import struct
from typing import Final

from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import INVALID_TRACE_MESSAGE

Buffer = bytes | bytearray | memoryview
"""What messages are read from. A memoryview is one of bytes."""

HEADER: Final = struct.Struct("<HHHH")
"""blockLength, templateId, schemaId, version."""
GROUP: Final = struct.Struct("<HH")
"""blockLength, numInGroup."""

NOT_A_NUMBER_FOR_THE_FIELD = (struct.error, TypeError, OverflowError)
"""What packing raises for a value that its field cannot hold."""


class CodecError(UserError):
    """Bytes that are not a message, or values that cannot be one. The only error that codecs raise."""

    def __init__(self, problem: str) -> None:
        super().__init__(INVALID_TRACE_MESSAGE.anywhere(problem=problem))


def breaks_off(message: str, needed: int, available: int) -> CodecError:
    """The error for a buffer that ends inside a message."""
    return CodecError(f"the {message} breaks off: it needs {needed} bytes and the buffer has {max(available, 0)}")


def block_length_of(buffer: Buffer, offset: int, *, message: str, schema_id: int, template_id: int) -> int:
    """Check the header at an offset and return the length of the block after it, which lies within the buffer."""
    available = len(buffer) - offset
    if offset < 0 or available < HEADER.size:
        raise breaks_off(message, HEADER.size, available if offset >= 0 else 0)
    block_length, template, schema, _version = HEADER.unpack_from(buffer, offset)
    if schema != schema_id or template != template_id:
        raise CodecError(
            f"schema {schema}, template {template} is not a {message}, which has schema {schema_id}, "
            f"template {template_id}"
        )
    if available < HEADER.size + block_length:
        raise breaks_off(message, HEADER.size + block_length, available)
    return int(block_length)
