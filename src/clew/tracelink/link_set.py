"""TraceLinkSet on the wire: which traces an output trace came from.

    header            28, 1, 904, 1      u16 x 4     blockLength, templateId, schemaId, version
    stream id                            u32
    epoch, seq, trace id                 u64 x 3
    group header      8, n               u16 x 2     blockLength, numInGroup
    parents                              u64 x n

A set has 1 to 65535 parents, none of them 0 and no two the same, and a trace id that is not 0. What breaks this is
neither written nor read. The order of the parents is kept. `schemas/trace_link_set.xml` is the same as an SBE schema.
"""

import struct
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Final, Self

from clew.deferred import dataclass
from clew.tracelink.ids import UNTRACED
from clew.tracelink.sbe import (
    GROUP,
    HEADER,
    NOT_A_NUMBER_FOR_THE_FIELD,
    Buffer,
    CodecError,
    block_length_of,
    breaks_off,
)

LINK_SET_SCHEMA_ID = 904
LINK_SET_TEMPLATE_ID = 1
LINK_SET_VERSION = 1
MAX_PARENTS = 0xFFFF

LinkSetFields = tuple[int, int, int, int, tuple[int, ...], int]
"""Stream id, epoch, seq, trace id, parents, and the offset at which the next message starts."""

_BLOCK: Final = struct.Struct("<IQQQ")
_BLOCK_LENGTH = 28
_PARENT_LENGTH = 8
_HEADER_WORD = _BLOCK_LENGTH | LINK_SET_TEMPLATE_ID << 16 | LINK_SET_SCHEMA_ID << 32 | LINK_SET_VERSION << 48
"""The four numbers of the header as the one that they form in memory: written and compared at once."""
_FIXED_LENGTH = 40
_unpack_fixed: Final = struct.Struct("<QIQQQHH").unpack_from
_unpack_headers: Final = struct.Struct("<Q28xHH").unpack_from


def link_set_length(parent_count: int) -> int:
    """The bytes of a message with so many parents."""
    return _FIXED_LENGTH + _PARENT_LENGTH * parent_count


def write_link_set(
    buffer: bytearray | memoryview,
    offset: int,
    stream_id: int,
    epoch: int,
    seq: int,
    trace_id: int,
    parents: Collection[int],
) -> int:
    """Write a message into a buffer and return its length. For the hot path: nothing but the message is made."""
    count = len(parents)
    try:
        if not trace_id or not count or UNTRACED in parents or len(set(parents)) != count:
            raise _forbidden(trace_id, parents)
        _packer(count)(
            buffer,
            offset,
            _HEADER_WORD,
            stream_id,
            epoch,
            seq,
            trace_id,
            _PARENT_LENGTH,
            count,
            *parents,
        )
    except NOT_A_NUMBER_FOR_THE_FIELD as problem:
        if count > MAX_PARENTS:
            raise CodecError(
                f"a TraceLinkSet has at most {MAX_PARENTS} parents, not {count}: note a window"
            ) from problem
        raise CodecError(f"this cannot be written as a TraceLinkSet: {problem}") from problem
    return _FIXED_LENGTH + _PARENT_LENGTH * count


def read_link_set(buffer: Buffer, offset: int = 0) -> LinkSetFields:
    """Read and check one whole message."""
    if offset >= 0 and len(buffer) - offset >= _FIXED_LENGTH:
        header, stream_id, epoch, seq, trace_id, stride, count = _unpack_fixed(buffer, offset)
        end = offset + _FIXED_LENGTH + _PARENT_LENGTH * count
        if header == _HEADER_WORD and stride == _PARENT_LENGTH and end <= len(buffer):
            parents = _unpacker(count)(buffer, offset + _FIXED_LENGTH)
            if not trace_id or not count or UNTRACED in parents or len(set(parents)) != count:
                raise _forbidden(trace_id, parents)
            return stream_id, epoch, seq, trace_id, parents, end
    return _read_any_version(buffer, offset)


def _read_any_version(buffer: Buffer, offset: int) -> LinkSetFields:
    view = LinkSetView().wrap(buffer, offset)
    stream_id, epoch, seq, trace_id = view.block()
    return stream_id, epoch, seq, trace_id, view.parents(), view.end


class LinkSetView:
    """A message in place: `wrap` reads only the headers, and a field is read when it is asked for.

    One view serves for any number of messages, one after the other.
    """

    __slots__ = ("_block_at", "_buffer", "_parents_at", "_stride", "end", "parent_count")

    _buffer: Buffer
    _block_at: int
    _parents_at: int
    _stride: int
    parent_count: int
    end: int
    """Where the next message starts."""

    def wrap(self, buffer: Buffer, offset: int = 0) -> Self:
        """Point the view at the message at an offset. All of it must be within the buffer."""
        if offset >= 0 and len(buffer) - offset >= _FIXED_LENGTH:
            header, stride, count = _unpack_headers(buffer, offset)
            parents_at = offset + _FIXED_LENGTH
            end = parents_at + _PARENT_LENGTH * count
            if header == _HEADER_WORD and stride == _PARENT_LENGTH and end <= len(buffer):
                self._buffer = buffer
                self._block_at = offset + HEADER.size
                self._parents_at = parents_at
                self._stride = stride
                self.parent_count = count
                self.end = end
                return self
        return self._wrap_any_version(buffer, offset)

    def _wrap_any_version(self, buffer: Buffer, offset: int) -> Self:
        block_length = block_length_of(
            buffer,
            offset,
            message="TraceLinkSet",
            schema_id=LINK_SET_SCHEMA_ID,
            template_id=LINK_SET_TEMPLATE_ID,
        )
        if block_length < _BLOCK_LENGTH:
            raise CodecError(f"a TraceLinkSet has a block of {_BLOCK_LENGTH} bytes or more, not {block_length}")
        block_at = offset + HEADER.size
        group_at = block_at + block_length
        if len(buffer) < group_at + GROUP.size:
            raise breaks_off("TraceLinkSet", group_at + GROUP.size - offset, len(buffer) - offset)
        stride, count = GROUP.unpack_from(buffer, group_at)
        if stride < _PARENT_LENGTH:
            raise CodecError(f"a parent takes {_PARENT_LENGTH} bytes or more, not {stride}")
        end = group_at + GROUP.size + stride * count
        if len(buffer) < end:
            raise breaks_off("TraceLinkSet", end - offset, len(buffer) - offset)
        self._buffer = buffer
        self._block_at = block_at
        self._parents_at = group_at + GROUP.size
        self._stride = stride
        self.parent_count = count
        self.end = end
        return self

    @property
    def stream_id(self) -> int:
        """The stream of the output frame."""
        return self.block()[0]

    @property
    def epoch(self) -> int:
        """The epoch of the output frame."""
        return self.block()[1]

    @property
    def seq(self) -> int:
        """The place of the output frame in its stream and epoch."""
        return self.block()[2]

    @property
    def trace_id(self) -> int:
        """The trace whose parents these are."""
        return self.block()[3]

    def block(self) -> tuple[int, int, int, int]:
        """Stream id, epoch, seq and trace id at once."""
        stream_id, epoch, seq, trace_id = _BLOCK.unpack_from(self._buffer, self._block_at)
        return stream_id, epoch, seq, trace_id

    def parents(self) -> tuple[int, ...]:
        """The parents in order. Refused here, since `wrap` does not look at them: none, zeros and repetitions."""
        if self._stride == _PARENT_LENGTH:
            unpack = _unpacker(self.parent_count)
        else:
            unpack = _spaced_unpacker(self.parent_count, self._stride)
        parents = unpack(self._buffer, self._parents_at)
        trace_id = self.trace_id
        if not trace_id or not parents or UNTRACED in parents or len(set(parents)) != len(parents):
            raise _forbidden(trace_id, parents)
        return parents


@dataclass(frozen=True, slots=True, init=False)
class TraceLinkSet:
    """The parents of the output frame (stream_id, epoch, seq), whose trace is `trace_id`."""

    stream_id: int
    epoch: int
    seq: int
    trace_id: int
    parents: tuple[int, ...]

    def __init__(self, stream_id: int, epoch: int, seq: int, trace_id: int, parents: Iterable[int]) -> None:
        self._set(stream_id, epoch, seq, trace_id, tuple(parents))
        self.encode()

    def encode(self) -> bytes:
        """The bytes of the message, header included."""
        buffer = bytearray(link_set_length(len(self.parents)))
        write_link_set(buffer, 0, self.stream_id, self.epoch, self.seq, self.trace_id, self.parents)
        return bytes(buffer)

    @classmethod
    def decode(cls, buffer: Buffer) -> Self:
        """Read the message at the start of a buffer; what follows it is left alone."""
        return cls.from_fields(read_link_set(buffer))

    @classmethod
    def from_fields(cls, fields: LinkSetFields) -> Self:
        """The message of values that were read and checked before."""
        message = object.__new__(cls)
        stream_id, epoch, seq, trace_id, parents, _ = fields
        message._set(stream_id, epoch, seq, trace_id, parents)
        return message

    def _set(self, stream_id: int, epoch: int, seq: int, trace_id: int, parents: tuple[int, ...]) -> None:
        object.__setattr__(self, "stream_id", stream_id)
        object.__setattr__(self, "epoch", epoch)
        object.__setattr__(self, "seq", seq)
        object.__setattr__(self, "trace_id", trace_id)
        object.__setattr__(self, "parents", parents)


@lru_cache(maxsize=256)
def _packer(count: int) -> Callable[..., None]:
    return struct.Struct(f"<QIQQQHH{count}Q").pack_into


@lru_cache(maxsize=256)
def _unpacker(count: int) -> Callable[[Buffer, int], tuple[int, ...]]:
    return struct.Struct(f"<{count}Q").unpack_from


@lru_cache(maxsize=16)
def _spaced_unpacker(count: int, stride: int) -> Callable[[Buffer, int], tuple[int, ...]]:
    return struct.Struct("<" + f"Q{stride - _PARENT_LENGTH}x" * count).unpack_from


def _forbidden(trace_id: int, parents: Collection[int]) -> CodecError:
    if not trace_id:
        return CodecError("a TraceLinkSet has a trace id that is not 0")
    if not parents:
        return CodecError("a TraceLinkSet has at least one parent")
    if UNTRACED in parents:
        return CodecError("0 stands for no trace and cannot be a parent")
    return CodecError("a parent stands more than once in the TraceLinkSet")
