"""Iceberg tables by their metadata: a JSON file, the manifests that it leads to, and the deletes that these list."""

import gzip
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from clew.deferred import dataclass
from clew.storage.tables.avro import read_avro
from clew.storage.tables.roaring import positions_of
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import (
    DataFile,
    TableColumn,
    TableProblem,
    TableSnapshot,
    TableWriter,
    UnsupportedTable,
)

_HINT = "metadata/version-hint.text"
_NUMBERED = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_METADATA_FILE = re.compile(r".*\.metadata\.json(?:\.gz)?")
_NEWEST_FORMAT = 3
_TYPES = {"int": "int", "long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp_ltz"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_DATA, _POSITION_DELETES, _EQUALITY_DELETES = 0, 1, 2
_DELETED = 2
"""The status of an entry that a snapshot has removed."""
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"

_RUN, _STEP = "clew.run", "clew.step"
_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
_FIVE_DAYS_MS = 432_000_000

_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WantedSnapshot:
    """Which snapshot is asked for: the current one, unless one of these is given."""

    snapshot_id: int | None = None
    ref: str | None = None
    """A branch or a tag."""


def is_metadata_file(name: str) -> bool:
    """Whether a path names the metadata of a table instead of its folder."""
    return _METADATA_FILE.fullmatch(name.rpartition("/")[2]) is not None


def current_metadata(place: TablePlace) -> str:
    """The address of a table's current metadata file, where no catalog is needed to tell. Else TableProblem."""
    names = {file.name: file.key for file in place.root.files("metadata")}
    numbered = {int(found[1]): key for name, key in names.items() if (found := _NUMBERED.fullmatch(name))}
    if not names:
        raise TableProblem("it is not an Iceberg table: it has no folder metadata")
    if not numbered:
        raise TableProblem("its current metadata is known to a catalog only: name the catalog, or the metadata file")
    hinted = _hinted(place)
    while hinted + 1 in numbered:
        hinted += 1
    return place.below(numbered.get(hinted, numbered[max(numbered)]))


def numbered_metadata(name: str) -> int | None:
    """The number of a metadata file of a table in a folder; None for one that only a catalog knows to be current."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else int(found[1])


def _hinted(place: TablePlace) -> int:
    try:
        return int(place.root.read_bytes(_HINT))
    except (FileNotFoundError, ValueError):
        return 0


def read_iceberg(place: TablePlace, metadata: str, wanted: WantedSnapshot | None = None) -> TableSnapshot:
    """A snapshot of the table that a metadata file describes.

    Raises TableProblem where it is not there, UnsupportedTable where reading it takes more than this.
    """
    content = place.read(metadata)
    found = _parsed(content)
    if int(found["format-version"]) > _NEWEST_FORMAT:
        raise UnsupportedTable(f"it has format version {found['format-version']}")
    chosen = _chosen(found, wanted or WantedSnapshot())
    schema = _schema(found, chosen, is_current=_is_of_now(found, wanted or WantedSnapshot()))
    return TableSnapshot(
        format="iceberg",
        version=int(chosen["snapshot-id"]) if chosen else 0,
        table_id=str(found["table-uuid"]),
        schema_id=str(schema.get("schema-id", 0)),
        digest=f"sha256:{hashlib.sha256(content).hexdigest()}",
        columns=tuple(_column(each) for each in schema["fields"]),
        files=tuple(_Contents(place, found, schema, chosen).files()) if chosen else (),
        kept_hours=_kept_hours(found),
    )


def _kept_hours(metadata: _Json) -> float:
    """How old a snapshot must be at least for `expire_snapshots` to take it, where nobody says otherwise."""
    return float(metadata.get("properties", {}).get(_SNAPSHOT_AGE, _FIVE_DAYS_MS)) / 3_600_000


def current_snapshot_id(place: TablePlace, metadata: str) -> int | None:
    """The current snapshot; None where the table has no rows yet."""
    chosen = _chosen(_parsed(place.read(metadata)), WantedSnapshot())
    return None if chosen is None else int(chosen["snapshot-id"])


def snapshot_then(place: TablePlace, metadata: str, at: datetime) -> int:
    """The snapshot that was the current one at a time. TableProblem where that is not known."""
    found = _parsed(place.read(metadata))
    log = [(int(each["timestamp-ms"]), int(each["snapshot-id"])) for each in found.get("snapshot-log", ())]
    milliseconds = at.timestamp() * 1000
    known = [(when, snapshot) for when, snapshot in log if when <= milliseconds]
    if known:
        return max(known)[1]
    raise TableProblem("it had no snapshot at that time, or its log no longer says which")


def snapshot_by(place: TablePlace, metadata: str, writer: TableWriter) -> int | None:
    """The newest snapshot that a run and step have committed, among those that a metadata file lists."""
    snapshots: Sequence[_Json] = _parsed(place.read(metadata)).get("snapshots", ())
    own = [int(each["snapshot-id"]) for each in snapshots if _writer(each.get("summary", {})) == writer]
    return own[-1] if own else None


def _writer(summary: _Json) -> TableWriter | None:
    """The run that the summary of a snapshot names, as outputs of Clew do."""
    if _RUN in summary and str(summary.get(_STEP, "")).isdecimal():
        return TableWriter(str(summary[_RUN]), int(summary[_STEP]))
    return None


def _parsed(content: bytes) -> _Json:
    found: _Json = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    return found


def _chosen(metadata: _Json, wanted: WantedSnapshot) -> _Json | None:
    number = wanted.snapshot_id
    if wanted.ref is not None:
        reference = metadata.get("refs", {}).get(wanted.ref)
        if reference is None:
            raise TableProblem(f'it has no branch or tag "{wanted.ref}"')
        number = int(reference["snapshot-id"])
    is_current = number is None
    if number is None:
        number = metadata.get("current-snapshot-id")
    if is_current and number in {None, -1}:
        return None
    snapshots: Sequence[_Json] = metadata.get("snapshots", ())
    found = next((each for each in snapshots if each["snapshot-id"] == number), None)
    if found is None:
        raise TableProblem(f"it has no snapshot {number}: it has expired, or never was")
    return found


def _is_of_now(metadata: _Json, wanted: WantedSnapshot) -> bool:
    """Whether a snapshot goes with the newest schema: the current one does, and the head of a branch."""
    if wanted.ref is not None:
        return bool(metadata["refs"][wanted.ref].get("type") == "branch")
    return wanted.snapshot_id is None


def _schema(metadata: _Json, snapshot: _Json | None, *, is_current: bool) -> _Json:
    """What is read now has the schema of now; a snapshot of the past has its own."""
    number = metadata.get("current-schema-id")
    if not is_current and snapshot is not None:
        number = snapshot.get("schema-id", number)
    schemas: Sequence[_Json] = metadata.get("schemas") or [metadata["schema"]]
    return next((each for each in schemas if each.get("schema-id", 0) == number), schemas[-1])


def _column(field: _Json) -> TableColumn:
    type_, default = field["type"], field.get("initial-default")
    decimal = _DECIMAL.fullmatch(type_) if isinstance(type_, str) else None
    if isinstance(type_, dict):
        type_ = str(type_["type"])
    name = f"decimal({decimal[1]},{decimal[2]})" if decimal else _TYPES.get(type_, str(type_))
    text = None if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return TableColumn(field["name"], name, field["name"], int(field["id"]), text)


@dataclass(frozen=True)
class _Entry:
    """A file that a manifest lists."""

    sequence: int
    file: _Json
    partition: Mapping[str, Any]
    spec: int
    first_row_id: int | None
    added_by: int | None
    """The snapshot that has added it."""


@dataclass(frozen=True)
class _Contents:
    """The files of a snapshot."""

    place: TablePlace
    metadata: _Json
    schema: _Json
    snapshot: _Json

    def files(self) -> Iterator[DataFile]:
        """The data files, with what is deleted in them."""
        deletes = _Deletes(self.place, list(self._entries(is_deletes=True)))
        deletes.require_positions()
        for entry in self._entries(is_deletes=False):
            _require_parquet(entry.file)
            address = self.place.absolute(entry.file["file_path"])
            yield DataFile(
                address=address,
                size=int(entry.file["file_size_in_bytes"]),
                values=self._identity_values(entry),
                deleted=partial(deletes.positions, address, entry.sequence) if deletes.entries else None,
                first_row_id=entry.first_row_id,
                written_by=self._writers.get(entry.added_by),
            )

    def _entries(self, *, is_deletes: bool) -> Iterator[_Entry]:
        if "manifest-list" not in self.snapshot:
            raise UnsupportedTable("its snapshot lists manifests in a way that only the first version had")
        _, manifests = read_avro(self.place.read(self.place.absolute(self.snapshot["manifest-list"])))
        for manifest in manifests:
            if (manifest.get("content") or 0) == (1 if is_deletes else 0):
                yield from self._listed(manifest)

    def _listed(self, manifest: _Json) -> Iterator[_Entry]:
        _, entries = read_avro(self.place.read(self.place.absolute(manifest["manifest_path"])))
        next_row = manifest.get("first_row_id")
        for entry in entries:
            file = entry["data_file"]
            if entry["status"] == _DELETED:
                continue
            if file.get("key_metadata"):
                raise UnsupportedTable("its files are encrypted")
            sequence = entry.get("sequence_number")
            if sequence is None:
                sequence = manifest.get("sequence_number") or 0
            first = file.get("first_row_id")
            if first is None and next_row is not None:
                first = next_row
                next_row += file["record_count"]
            yield _Entry(
                sequence=sequence,
                file=file,
                partition=file.get("partition") or {},
                spec=manifest.get("partition_spec_id") or 0,
                first_row_id=first,
                added_by=entry.get("snapshot_id") or manifest.get("added_snapshot_id"),
            )

    def _identity_values(self, entry: _Entry) -> dict[str, str | None]:
        """The columns that the file is partitioned by as they are; those that are cut or hashed say less."""
        names = {each["id"]: each["name"] for each in self.schema["fields"]}
        found = dict[str, str | None]()
        for field in self._specs.get(entry.spec, ()):
            name = names.get(field["source-id"])
            value = entry.partition.get(field["name"])
            if field["transform"] == "identity" and name is not None and isinstance(value, str | None):
                found[name] = value
        return found

    @cached_property
    def _writers(self) -> dict[int | None, TableWriter]:
        """By snapshot, the runs that have committed them; those of expired snapshots are not known."""
        found = dict[int | None, TableWriter]()
        for each in self.metadata.get("snapshots", ()):
            writer = _writer(each.get("summary", {}))
            if writer is not None:
                found[each["snapshot-id"]] = writer
        return found

    @cached_property
    def _specs(self) -> dict[int, Sequence[_Json]]:
        return {each["spec-id"]: each["fields"] for each in self.metadata.get("partition-specs", ())}


@dataclass(frozen=True)
class _Deletes:
    """The rows that delete files name."""

    place: TablePlace
    entries: Sequence[_Entry]

    def require_positions(self) -> None:
        """Deletes by value take a join with the rows, which their connector knows how to do."""
        if any(entry.file["content"] == _EQUALITY_DELETES for entry in self.entries):
            raise UnsupportedTable("it has equality deletes, which name rows by their values")
        for entry in self.entries:
            if entry.file["file_format"].upper() != "PUFFIN":
                _require_parquet(entry.file)

    def positions(self, address: str, sequence: int) -> list[int]:
        """The deleted rows of a data file: those of deletes that are not older than it."""
        found = set[int]()
        for deleted_by, positions in self._by_file.get(address, ()):
            if sequence <= deleted_by:
                found.update(positions)
        return sorted(found)

    @cached_property
    def _by_file(self) -> dict[str, list[tuple[int, Sequence[int]]]]:
        found = dict[str, list[tuple[int, Sequence[int]]]]()
        for entry in self.entries:
            for address, positions in self._read(entry.file):
                found.setdefault(address, []).append((entry.sequence, positions))
        return found

    def _read(self, file: _Json) -> Iterator[tuple[str, Sequence[int]]]:
        address = self.place.absolute(file["file_path"])
        if file["file_format"].upper() == "PUFFIN":
            start, size = int(file["content_offset"]), int(file["content_size_in_bytes"])
            vector = _vector(self.place.read(address)[start : start + size])
            yield self.place.absolute(file["referenced_data_file"]), positions_of(vector)
            return
        root, key = self.place.opened(address)
        with root.open_parquet(key) as opened:
            rows = opened.read(columns=["file_path", "pos"])
        by_path = dict[str, list[int]]()
        for path, position in zip(rows["file_path"].to_pylist(), rows["pos"].to_pylist(), strict=True):
            by_path.setdefault(path, []).append(position)
        yield from ((self.place.absolute(path), positions) for path, positions in by_path.items())


def _require_parquet(file: _Json) -> None:
    if str(file["file_format"]).upper() != "PARQUET":
        raise UnsupportedTable(f"it has {str(file['file_format']).lower()} files")


def _vector(blob: bytes) -> bytes:
    (size,) = struct.unpack_from(">i", blob)
    data = blob[4 : 4 + size]
    (checksum,) = struct.unpack_from(">I", blob, 4 + size)
    if data[:4] != _VECTOR_MAGIC or zlib.crc32(data) != checksum:
        raise TableProblem("a deletion vector is damaged")
    return data[4:]
