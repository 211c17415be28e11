"""Reads Avro files: the form of Iceberg's manifests. Records become dictionaries."""

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CHECKSUM_BYTES = 4

Read = Callable[["_Bytes"], Any]


class _Bytes:
    """Bytes that are read from front to back."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise ValueError("an Avro file is cut short")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self) -> int:
        """A number in as few bytes as it needs, its sign in the last bit."""
        shift = value = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7


def read_avro(data: bytes) -> tuple[Mapping[str, bytes], Iterator[dict[str, Any]]]:
    """What a file says about itself, and its records. ValueError where it is not an Avro file."""
    source = _Bytes(data)
    if source.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an Avro file")
    header: dict[str, bytes] = _map(lambda each: each.take(each.number()))(source)
    sync = source.take(_SYNC_BYTES)
    read = _reader(json.loads(header["avro.schema"]), {})
    return header, _records(source, sync, header.get("avro.codec", b"null").decode(), read)


def _records(source: _Bytes, sync: bytes, codec: str, read: Read) -> Iterator[dict[str, Any]]:
    while source.at < len(source.data):
        count = source.number()
        block = _Bytes(_decompressed(source.take(source.number()), codec))
        if source.take(_SYNC_BYTES) != sync:
            raise ValueError("a block of an Avro file does not end where it should")
        for _ in range(count):
            yield read(block)


def _decompressed(block: bytes, codec: str) -> bytes:
    match codec:
        case "null":
            return block
        case "deflate":
            return zlib.decompress(block, -15)
        case "snappy":
            return bytes(pa.decompress(block[:-_CHECKSUM_BYTES], _length_of_snappy(block), "snappy", asbytes=True))
        case "zstandard":
            return bytes(pa.CompressedInputStream(pa.BufferReader(block), "zstd").read())
        case _:
            raise ValueError(f"its codec {codec} is not known")


def _length_of_snappy(block: bytes) -> int:
    shift = value = 0
    for byte in block:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value


def _reader(schema: Any, named: dict[str, Read]) -> Read:  # noqa: ANN401 - JSON
    """A function that reads one value of a schema. Schemas may name others that came before them."""
    if isinstance(schema, list):
        branches = [_reader(each, named) for each in schema]
        return lambda source: branches[source.number()](source)
    if isinstance(schema, str) and schema in named:
        return named[schema]
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, dict | list):
        return _reader(kind, named)
    found = _READERS.get(kind) or _compound(kind, schema, named)
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = found
    return found


def _compound(kind: str, schema: Any, named: dict[str, Read]) -> Read:  # noqa: ANN401 - JSON
    match kind:
        case "record":
            fields = [(each["name"], _reader(each["type"], named)) for each in schema["fields"]]
            return lambda source: {name: read(source) for name, read in fields}
        case "map":
            return _map(_reader(schema["values"], named))
        case "array":
            return _array(_reader(schema["items"], named))
        case "fixed":
            size = int(schema["size"])
            return lambda source: source.take(size)
        case "enum":
            symbols = schema["symbols"]
            return lambda source: symbols[source.number()]
        case _:
            raise ValueError(f"an Avro file has the unknown type {kind}")


def _blocks(source: _Bytes) -> Iterator[int]:
    """How many entries each piece of an array or map has. A negative number is followed by a size in bytes."""
    while count := source.number():
        if count < 0:
            source.number()
        yield abs(count)


def _array(read: Read) -> Read:
    return lambda source: [read(source) for count in _blocks(source) for _ in range(count)]


def _map(read: Read) -> Read:
    def entries(source: _Bytes) -> dict[str, Any]:
        found = dict[str, Any]()
        for count in _blocks(source):
            for _ in range(count):
                name = source.take(source.number()).decode()
                found[name] = read(source)
        return found

    return entries


_READERS: dict[str, Read] = {
    "null": lambda _source: None,
    "boolean": lambda source: source.take(1) != b"\x00",
    "int": _Bytes.number,
    "long": _Bytes.number,
    "float": lambda source: struct.unpack("<f", source.take(4))[0],
    "double": lambda source: struct.unpack("<d", source.take(8))[0],
    "bytes": lambda source: source.take(source.number()),
    "string": lambda source: source.take(source.number()).decode(),
}
