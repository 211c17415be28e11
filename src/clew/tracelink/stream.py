"""Datagrams: messages one after the other, and how messages that are not ours are skipped.

A datagram is a concatenation of plain SBE messages with nothing between them. So any producer that sends one encoded
message is correct, and coalescing is appending. SBE does not state the length of a whole message, which decides how
unknown messages are skipped:

- One of our messages ends where its headers say, whatever its version.
- One of our messages that breaks a rule (a parent of 0, say) is skipped alone, since its end is still known.
- A message of another schema, or another template of our schemas, has an end that only its own schema knows. It and the
  rest of the datagram are skipped. Senders that mix schemas put foreign messages into separate datagrams.
- Bytes that are not a message, and truncated messages, also end the datagram.

None of this is an error to the reader: it is counted.
"""

from collections.abc import Iterator
from typing import Final

from clew.deferred import dataclass
from clew.tracelink.frame_descriptor import (
    FRAME_SCHEMA_ID,
    FRAME_TEMPLATE_ID,
    FrameDescriptor,
    FrameFields,
    read_frame,
)
from clew.tracelink.link_set import (
    LINK_SET_SCHEMA_ID,
    LINK_SET_TEMPLATE_ID,
    LinkSetFields,
    LinkSetView,
    TraceLinkSet,
    read_link_set,
)
from clew.tracelink.sbe import HEADER, Buffer, CodecError

_FRAME_FIELDS: Final = 7
"""A frame is read as this many values, a link set as one less."""


@dataclass(slots=True)
class SkipCounts:
    """What a reader skipped, counted over any number of datagrams."""

    unknown_schemas: int = 0
    """Datagrams skipped from a message of another schema on."""
    unknown_templates: int = 0
    """Datagrams skipped from an unknown template of our schemas on."""
    malformed: int = 0
    """Our messages that break a rule or are truncated, and ends of datagrams too short for a header."""
    skipped_bytes: int = 0
    """The bytes of all of these."""

    @property
    def total(self) -> int:
        """How many times something was skipped."""
        return self.unknown_schemas + self.unknown_templates + self.malformed


def read_stream(buffer: Buffer, skips: SkipCounts | None = None) -> Iterator[FrameDescriptor | TraceLinkSet]:
    """The messages of a datagram, in order. What cannot be read is skipped and counted in `skips`."""
    for fields in _read_fields(buffer, skips if skips is not None else SkipCounts()):
        if len(fields) == _FRAME_FIELDS:
            yield FrameDescriptor.from_fields(fields)
        else:
            yield TraceLinkSet.from_fields(fields)


def read_batch(buffer: Buffer, frames: list[FrameFields], link_sets: list[LinkSetFields], skips: SkipCounts) -> None:
    """Append the messages of a datagram to two lists as plain tuples. For the hot path: no message objects are made."""
    for fields in _read_fields(buffer, skips):
        if len(fields) == _FRAME_FIELDS:
            frames.append(fields)
        else:
            link_sets.append(fields)


def _read_fields(buffer: Buffer, skips: SkipCounts) -> Iterator[FrameFields | LinkSetFields]:
    offset, size = 0, len(buffer)
    while size - offset >= HEADER.size:
        start = offset
        _, template, schema, _ = HEADER.unpack_from(buffer, offset)
        try:
            if schema == FRAME_SCHEMA_ID and template == FRAME_TEMPLATE_ID:
                frame = read_frame(buffer, offset)
                offset = frame[-1]
                yield frame
            elif schema == LINK_SET_SCHEMA_ID and template == LINK_SET_TEMPLATE_ID:
                links = read_link_set(buffer, offset)
                offset = links[-1]
                yield links
            elif schema in {FRAME_SCHEMA_ID, LINK_SET_SCHEMA_ID}:
                skips.unknown_templates += 1
                break
            else:
                skips.unknown_schemas += 1
                break
        except CodecError:
            skips.malformed += 1
            offset = _end_of_malformed(buffer, offset, schema)
            skips.skipped_bytes += offset - start
    else:
        if offset < size:
            skips.malformed += 1
    skips.skipped_bytes += size - offset


def _end_of_malformed(buffer: Buffer, offset: int, schema: int) -> int:
    """Where a message with forbidden content ends, or the end of the buffer if its headers are wrong too."""
    if schema == LINK_SET_SCHEMA_ID:
        try:
            return LinkSetView().wrap(buffer, offset).end
        except CodecError:
            pass
    return len(buffer)
