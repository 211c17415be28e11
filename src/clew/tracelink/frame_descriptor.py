"""FrameDescriptor on the wire: a row as a stage published it.

    header            40, 4, 900, 1      u16 x 4     blockLength, templateId, schemaId, version
    stream id                            u32
    epoch, seq                           u64 x 2
    timestamp in ns                      u64         2^64 - 1 if there is none
    meta version                         u32         2^32 - 1 if there is none
    trace id                             u64         0 if the frame is not traced

The trace id came last: a reader that does not know it skips it, and from a writer that does not know it comes a block
of 32 bytes, which is read as not traced. `schemas/frame_descriptor.xml` is the same as an SBE schema.
"""

import struct
from typing import Final, Self

from clew.deferred import dataclass
from clew.tracelink.ids import UNTRACED
from clew.tracelink.sbe import HEADER, NOT_A_NUMBER_FOR_THE_FIELD, Buffer, CodecError, block_length_of

FRAME_SCHEMA_ID = 900
FRAME_TEMPLATE_ID = 4
FRAME_VERSION = 1
FRAME_LENGTH = 48

_NO_TIMESTAMP = 2**64 - 1
_NO_META_VERSION = 2**32 - 1
FrameFields = tuple[int, int, int, int | None, int | None, int, int]
"""Stream id, epoch, seq, timestamp, meta version, trace id, and the offset at which the next message starts."""

_MESSAGE: Final = struct.Struct("<QIQQQIQ")
_pack_message: Final = _MESSAGE.pack_into
_unpack_message: Final = _MESSAGE.unpack_from
_BLOCK_LENGTH = 40
_HEADER_WORD = _BLOCK_LENGTH | FRAME_TEMPLATE_ID << 16 | FRAME_SCHEMA_ID << 32 | FRAME_VERSION << 48
"""The four numbers of the header as the one that they form in memory: written and compared at once."""
_BEFORE_TRACE: Final = struct.Struct("<IQQQI")
_BLOCK_LENGTH_BEFORE_TRACE = 32


def write_frame(
    buffer: bytearray | memoryview,
    offset: int,
    stream_id: int,
    epoch: int,
    seq: int,
    timestamp_ns: int | None,
    meta_version: int | None,
    trace_id: int,
) -> int:
    """Write a message into a buffer and return its length. For the hot path: nothing but the message is made."""
    if timestamp_ns == _NO_TIMESTAMP or meta_version == _NO_META_VERSION:
        raise CodecError("the largest number of a field stands for none in a FrameDescriptor")
    try:
        _pack_message(
            buffer,
            offset,
            _HEADER_WORD,
            stream_id,
            epoch,
            seq,
            _NO_TIMESTAMP if timestamp_ns is None else timestamp_ns,
            _NO_META_VERSION if meta_version is None else meta_version,
            trace_id,
        )
    except NOT_A_NUMBER_FOR_THE_FIELD as problem:
        raise CodecError(f"this cannot be written as a FrameDescriptor: {problem}") from problem
    return FRAME_LENGTH


def read_frame(buffer: Buffer, offset: int = 0) -> FrameFields:
    """Read and check one whole message."""
    if offset >= 0:
        try:
            header, stream_id, epoch, seq, timestamp_ns, meta_version, trace_id = _unpack_message(buffer, offset)
        except struct.error:
            return _read_any_version(buffer, offset)
        if header == _HEADER_WORD:
            return (
                stream_id,
                epoch,
                seq,
                None if timestamp_ns == _NO_TIMESTAMP else timestamp_ns,
                None if meta_version == _NO_META_VERSION else meta_version,
                trace_id,
                offset + FRAME_LENGTH,
            )
    return _read_any_version(buffer, offset)


def _read_any_version(buffer: Buffer, offset: int) -> FrameFields:
    view = FrameView().wrap(buffer, offset)
    stream_id, epoch, seq, timestamp_ns, meta_version = view.block()
    return stream_id, epoch, seq, timestamp_ns, meta_version, view.trace_id, view.end


class FrameView:
    """A message in place: `wrap` reads only the header, and a field is read when it is asked for.

    One view serves for any number of messages, one after the other.
    """

    __slots__ = ("_block_at", "_buffer", "_has_trace", "end")

    _buffer: Buffer
    _block_at: int
    _has_trace: bool
    end: int
    """Where the next message starts."""

    def wrap(self, buffer: Buffer, offset: int = 0) -> Self:
        """Point the view at the message at an offset. All of it must be within the buffer."""
        block_length = block_length_of(
            buffer, offset, message="FrameDescriptor", schema_id=FRAME_SCHEMA_ID, template_id=FRAME_TEMPLATE_ID
        )
        if block_length != _BLOCK_LENGTH_BEFORE_TRACE and block_length < _BLOCK_LENGTH:
            raise CodecError(f"a FrameDescriptor has a block of {_BLOCK_LENGTH} bytes or more, not {block_length}")
        self._buffer = buffer
        self._block_at = offset + HEADER.size
        self._has_trace = block_length >= _BLOCK_LENGTH
        self.end = self._block_at + block_length
        return self

    @property
    def stream_id(self) -> int:
        """The stream that the frame is of."""
        return self.block()[0]

    @property
    def epoch(self) -> int:
        """The epoch within the stream."""
        return self.block()[1]

    @property
    def seq(self) -> int:
        """The place within stream and epoch."""
        return self.block()[2]

    @property
    def timestamp_ns(self) -> int | None:
        """When the frame was published."""
        return self.block()[3]

    @property
    def meta_version(self) -> int | None:
        """The version of the stream's metadata."""
        return self.block()[4]

    @property
    def trace_id(self) -> int:
        """The trace of the frame, 0 if it is not traced or its writer does not know traces."""
        if not self._has_trace:
            return UNTRACED
        return int.from_bytes(self._buffer[self._block_at + 32 : self._block_at + 40], "little")

    def block(self) -> tuple[int, int, int, int | None, int | None]:
        """Stream id, epoch, seq, timestamp and meta version at once."""
        stream_id, epoch, seq, timestamp_ns, meta_version = _BEFORE_TRACE.unpack_from(self._buffer, self._block_at)
        return (
            stream_id,
            epoch,
            seq,
            None if timestamp_ns == _NO_TIMESTAMP else timestamp_ns,
            None if meta_version == _NO_META_VERSION else meta_version,
        )


@dataclass(frozen=True, slots=True)
class FrameDescriptor:
    """Frame `seq` of a stream in an epoch. A `trace_id` of 0 says that it is not traced."""

    stream_id: int
    epoch: int
    seq: int
    timestamp_ns: int | None = None
    meta_version: int | None = None
    trace_id: int = UNTRACED

    def __post_init__(self) -> None:
        self.encode()

    def encode(self) -> bytes:
        """The bytes of the message, header included."""
        buffer = bytearray(FRAME_LENGTH)
        write_frame(
            buffer, 0, self.stream_id, self.epoch, self.seq, self.timestamp_ns, self.meta_version, self.trace_id
        )
        return bytes(buffer)

    @classmethod
    def decode(cls, buffer: Buffer) -> Self:
        """Read the message at the start of a buffer; what follows it is left alone."""
        return cls.from_fields(read_frame(buffer))

    @classmethod
    def from_fields(cls, fields: FrameFields) -> Self:
        """The message of values that were read and checked before."""
        frame = object.__new__(cls)
        stream_id, epoch, seq, timestamp_ns, meta_version, trace_id, _ = fields
        object.__setattr__(frame, "stream_id", stream_id)
        object.__setattr__(frame, "epoch", epoch)
        object.__setattr__(frame, "seq", seq)
        object.__setattr__(frame, "timestamp_ns", timestamp_ns)
        object.__setattr__(frame, "meta_version", meta_version)
        object.__setattr__(frame, "trace_id", trace_id)
        return frame
