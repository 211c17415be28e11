"""Datagrams whose sender holds the key of the collector: an envelope in front of the messages.

The envelope looks like a message of a schema of its own, so that readers that do not know it skip the datagram:

    offset  bytes  little endian
    0       8      header: blockLength 40, templateId 1, schemaId 905, version 1 (four u16)
    8       8      sentNs u64: when it was sent, in nanoseconds since 1970
    16      32     mac: HMAC-SHA256 with the shared key, over bytes 0 to 15 and everything from byte 48 on
    48             FrameDescriptor and TraceLinkSet messages, one after the other

A datagram is accepted for five minutes. Within that time a copy of it adds nothing, since records are kept once.
"""

import hmac
import struct
from enum import Enum
from typing import Final

ENVELOPE_SCHEMA_ID: Final = 905
ENVELOPE_TEMPLATE_ID: Final = 1
_VERSION: Final = 1
_MAC_BYTES: Final = 32
_FRONT: Final = struct.Struct("<HHHHQ")
ENVELOPE_LENGTH: Final = _FRONT.size + _MAC_BYTES
_BLOCK_LENGTH: Final = ENVELOPE_LENGTH - 8
_VALID_NS: Final = 300_000_000_000


class Seal(Enum):
    """What a collector knows about the sender of a datagram."""

    VALID = "valid"
    """The sender holds the key."""
    NONE = "none"
    """The datagram has no envelope, or the collector has no key to check it with."""
    FORGED = "forged"
    """The envelope was made with another key, or too long ago, or the datagram was changed."""


def write_envelope(buffer: bytearray, length: int, key: bytes, sent_ns: int) -> None:
    """Write the envelope in front of the messages that end at `length`; they start at `ENVELOPE_LENGTH`."""
    _FRONT.pack_into(buffer, 0, _BLOCK_LENGTH, ENVELOPE_TEMPLATE_ID, ENVELOPE_SCHEMA_ID, _VERSION, sent_ns)
    view = memoryview(buffer)
    buffer[_FRONT.size : ENVELOPE_LENGTH] = _mac(key, view[: _FRONT.size], view[ENVELOPE_LENGTH:length])


def read_envelope(datagram: bytes, key: bytes | None, now_ns: int) -> tuple[bytes, Seal]:
    """The messages of a datagram, and what is known about its sender."""
    if len(datagram) < ENVELOPE_LENGTH:
        return datagram, Seal.NONE
    _, template, schema, _, sent_ns = _FRONT.unpack_from(datagram)
    if (schema, template) != (ENVELOPE_SCHEMA_ID, ENVELOPE_TEMPLATE_ID):
        return datagram, Seal.NONE
    messages = datagram[ENVELOPE_LENGTH:]
    if key is None:
        return messages, Seal.NONE
    expected = _mac(key, datagram[: _FRONT.size], messages)
    is_genuine = hmac.compare_digest(expected, datagram[_FRONT.size : ENVELOPE_LENGTH])
    return messages, Seal.VALID if is_genuine and abs(now_ns - sent_ns) <= _VALID_NS else Seal.FORGED


def _mac(key: bytes, front: bytes | memoryview, messages: bytes | memoryview) -> bytes:
    made = hmac.new(key, front, "sha256")
    made.update(messages)
    return made.digest()
