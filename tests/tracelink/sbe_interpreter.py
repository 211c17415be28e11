"""Writes messages by walking an SBE schema and knows nothing of our codecs: the independent word on the bytes."""

import struct
from collections.abc import Mapping, Sequence
from importlib.resources import files
from xml.etree import ElementTree as ET

FORMATS = {"uint16": "H", "uint32": "I", "uint64": "Q"}
Value = int | None | Sequence[Mapping[str, int]]


class SbeSchema:
    def __init__(self, file_name: str) -> None:
        self.root = ET.fromstring(files("clew.tracelink").joinpath("schemas", file_name).read_text(encoding="utf-8"))
        assert self.root.get("byteOrder") == "littleEndian"
        self.composites = {e.get("name"): [t.get("name") for t in e] for e in self.root.iter("composite")}
        self.types = {e.get("name"): e for e in self.root.find("types") or () if e.tag == "type"}
        (self.message,) = (e for e in self.root if e.tag.endswith("}message"))

    def attribute(self, name: str) -> int:
        return int(self.root.attrib[name])

    def encode(self, values: Mapping[str, Value]) -> bytes:
        block = b"".join(self._field(e, values[e.attrib["name"]]) for e in self.message if e.tag == "field")
        assert len(block) == int(self.message.attrib["blockLength"])
        header = {
            "blockLength": len(block),
            "templateId": int(self.message.attrib["id"]),
            "schemaId": self.attribute("id"),
            "version": self.attribute("version"),
        }
        groups = b"".join(self._group(e, values[e.attrib["name"]]) for e in self.message if e.tag == "group")
        return self._composite("messageHeader", header) + block + groups

    def _composite(self, name: str, values: Mapping[str, int]) -> bytes:
        return b"".join(struct.pack("<H", values[part or ""]) for part in self.composites[name])

    def _field(self, field: ET.Element, value: Value) -> bytes:
        declared = self.types.get(field.attrib["type"])
        primitive = field.attrib["type"] if declared is None else declared.attrib["primitiveType"]
        if value is None:
            assert declared is not None
            assert declared.get("presence") == "optional"
            value = int(declared.attrib["nullValue"])
        return struct.pack("<" + FORMATS[primitive], value)

    def _group(self, group: ET.Element, entries: Value) -> bytes:
        assert isinstance(entries, Sequence)
        length = int(group.attrib["blockLength"])
        body = [b"".join(self._field(f, entry[f.attrib["name"]]) for f in group) for entry in entries]
        assert all(len(entry) == length for entry in body)
        dimension = {"blockLength": length, "numInGroup": len(body)}
        return self._composite(group.attrib["dimensionType"], dimension) + b"".join(body)
