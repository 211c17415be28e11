"""Delta tables by their log: JSON files with what each version changed, and checkpoints that sum up all before them."""

import base64
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from clew.deferred import dataclass
from clew.storage.root import StorageRoot
from clew.storage.tables.roaring import positions_of
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import (
    DataFile,
    Positions,
    TableColumn,
    TableProblem,
    TableSnapshot,
    TableWriter,
    UnsupportedTable,
)

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_NAMED_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)")
_READ_FEATURES = frozenset(
    {
        "appendOnly",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding-preview",
    }
)
"""What a reader must know about a table and this one does; a variant column can only be left unread."""
_NEWEST_READER = 3
_TYPES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "timestamp": "timestamp_ltz",
}
_MAGIC = 1681511377
"""What a deletion vector begins with."""
_VACUUM_HOURS = 168.0
_INTERVAL = re.compile(r"(?:interval\s+)?(\d+(?:\.\d+)?)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)
_HOURS = {"week": 168.0, "day": 24.0, "hour": 1.0, "minute": 1 / 60, "second": 1 / 3600}
_BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_LENGTH = 20
_ROW_TRACKING = "delta.enableRowTracking"
"""Without it files may say where ids of rows begin, but rows do not keep theirs when they are moved."""
_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"

_MOST_COMMITS = 200
"""Commits in which runs are looked for that have written files."""
_RUN, _STEP = "clew_run", "clew_step"

_Action = Mapping[str, Any]


def newest_version(root: StorageRoot) -> int:
    """The number of the newest version. TableProblem where there is none."""
    return _Log.of(root).newest


def version_then(root: StorageRoot, at: datetime) -> int:
    """The version that was the newest at a time, by what commits say of their time. TableProblem where none is known.

    A commit that says nothing counts by the time at which its file was written.
    """
    log = _Log.of(root)
    for version in sorted(log.commits, reverse=True):
        if _committed_at(root, log.commits[version]) <= at:
            return version
    oldest = min(log.commits, default=log.newest)
    if oldest == 0:
        raise TableProblem("it did not exist at that time")
    raise TableProblem(f"its log goes back to version {oldest}, which was committed later")


def _committed_at(root: StorageRoot, key: str) -> datetime:
    actions = (json.loads(line) for line in root.read_bytes(key).splitlines() if line.strip())
    told: _Action = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    milliseconds = told.get("inCommitTimestamp", told.get("timestamp"))
    if milliseconds is None:
        return datetime.fromtimestamp(root.stat(key).modified, UTC)
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def version_by(root: StorageRoot, writer: TableWriter) -> int | None:
    """The newest version that a run and step have committed, as far as the newest commits of the log say it."""
    log = _Log.of(root)
    for version in sorted(log.commits, reverse=True)[:_MOST_COMMITS]:
        content = root.read_bytes(log.commits[version])
        if writer.run_id.encode() in content:
            actions = (json.loads(line) for line in content.splitlines() if line.strip())
            if any(_writer(action["commitInfo"]) == writer for action in actions if "commitInfo" in action):
                return version
    return None


def read_delta(place: TablePlace, version: int | None = None) -> TableSnapshot:
    """A version of a table, the newest where none is named.

    Raises TableProblem where it is not there, UnsupportedTable where reading it takes more than this.
    """
    log = _Log.of(place.root)
    wanted = log.newest if version is None else version
    state = _State()
    for action in log.actions(place.root, wanted):
        state.take(action)
    return state.snapshot(place, wanted, log.digest(place.root, wanted), log.writers(place.root, wanted))


@dataclass(frozen=True, slots=True)
class _Log:
    """The files of a log, by version."""

    commits: Mapping[int, str]
    checkpoints: Mapping[int, Sequence[str]]
    """Those of which all pieces are there."""

    @classmethod
    def of(cls, root: StorageRoot) -> "_Log":
        commits, pieces = dict[int, str](), dict[tuple[int, int], list[str]]()
        whole = dict[int, Sequence[str]]()
        for file in root.files(_LOG):
            if file.key.count("/") != 1:
                continue
            if found := _COMMIT.fullmatch(file.name):
                commits[int(found[1])] = file.key
            elif found := _CHECKPOINT.fullmatch(file.name):
                pieces.setdefault((int(found[1]), int(found[3] or 1)), []).append(file.key)
            elif found := _NAMED_CHECKPOINT.fullmatch(file.name):
                whole[int(found[1])] = [file.key]
        for (version, count), keys in pieces.items():
            if len(keys) == count:
                whole[version] = keys
        if not commits and not whole:
            raise TableProblem("it is not a Delta table: it has no _delta_log")
        return cls(commits, whole)

    @property
    def newest(self) -> int:
        return max([*self.commits, *self.checkpoints])

    def actions(self, root: StorageRoot, version: int) -> Iterator[_Action]:
        """Everything that happened up to a version: a checkpoint, and the commits after it."""
        base = max((each for each in self.checkpoints if each <= version), default=-1)
        needed = range(base + 1, version + 1)
        missing = next((each for each in needed if each not in self.commits), None)
        if version > self.newest:
            raise TableProblem(f"it has no version {version}; its newest is version {self.newest}")
        if missing is not None:
            raise TableProblem(f"version {version} can no longer be read: the log has lost version {missing}")
        if base >= 0:
            yield from _checkpoint(root, self.checkpoints[base])
        for each in needed:
            for line in root.read_bytes(self.commits[each]).splitlines():
                if line.strip():
                    yield json.loads(line)

    def writers(self, root: StorageRoot, version: int) -> dict[str, TableWriter]:
        """By path, the runs that have added files, as far as the newest commits of the log say it."""
        found = dict[str, TableWriter]()
        commits = sorted(each for each in self.commits if each <= version)[-_MOST_COMMITS:]
        for each in commits:
            content = root.read_bytes(self.commits[each])
            if _RUN.encode() not in content:
                continue
            actions = [json.loads(line) for line in content.splitlines() if line.strip()]
            writer = next((_writer(action["commitInfo"]) for action in actions if "commitInfo" in action), None)
            if writer is not None:
                found |= {action["add"]["path"]: writer for action in actions if "add" in action}
        return found

    def digest(self, root: StorageRoot, version: int) -> str:
        """The digest of what defines a version: its commit, or the checkpoint where that is gone."""
        keys = [self.commits[version]] if version in self.commits else sorted(self.checkpoints[version])
        digest = hashlib.sha256()
        for key in keys:
            digest.update(root.read_bytes(key))
        return f"sha256:{digest.hexdigest()}"


def _checkpoint(root: StorageRoot, keys: Sequence[str]) -> Iterator[_Action]:
    for key in keys:
        if key.endswith(".json"):
            actions: Iterable[_Action] = [json.loads(line) for line in root.read_bytes(key).splitlines() if line]
        else:
            actions = _parquet_actions(root, key)
        for action in actions:
            if action.get("sidecar"):
                yield from _parquet_actions(root, f"{_LOG}/_sidecars/{action['sidecar']['path']}")
            else:
                yield action


def _parquet_actions(root: StorageRoot, key: str) -> Iterator[_Action]:
    wanted = {"add", "remove", "metaData", "protocol", "sidecar"}
    with root.open_parquet(key) as opened:
        names = [name for name in opened.schema_arrow.names if name in wanted]
        for batch in opened.iter_batches(columns=names):
            for row in batch.to_pylist():
                for name, action in row.items():
                    if action is not None:
                        yield {name: action}


@dataclass(slots=True)
class _State:
    """What actions add up to."""

    protocol: _Action = field(default_factory=dict)
    metadata: _Action = field(default_factory=dict)
    files: dict[tuple[str, str], _Action] = field(default_factory=dict)

    def take(self, action: _Action) -> None:
        if added := action.get("add"):
            self.files[_key(added)] = added
        elif removed := action.get("remove"):
            self.files.pop(_key(removed), None)
        elif metadata := action.get("metaData"):
            self.metadata = metadata
        elif protocol := action.get("protocol"):
            self.protocol = protocol

    def snapshot(
        self, place: TablePlace, version: int, digest: str, writers: Mapping[str, TableWriter]
    ) -> TableSnapshot:
        self._require_readable()
        schema = str(self.metadata["schemaString"])
        configuration = _as_map(self.metadata.get("configuration"))
        columns = tuple(_column(each) for each in json.loads(schema)["fields"])
        by_stored = {column.stored: column.name for column in columns}
        keeps_row_ids = configuration.get(_ROW_TRACKING) == "true"
        return TableSnapshot(
            format="delta",
            version=version,
            table_id=str(self.metadata["id"]),
            schema_id=f"sha256:{hashlib.sha256(schema.encode()).hexdigest()[:16]}",
            digest=digest,
            columns=columns,
            files=tuple(
                self._file(place, each, by_stored, writers.get(each["path"]), keeps_row_ids=keeps_row_ids)
                for each in self.files.values()
            ),
            row_id_column=configuration.get(_ROW_ID_COLUMN) if keeps_row_ids else None,
            kept_hours=_hours(configuration.get("delta.deletedFileRetentionDuration")),
        )

    def _require_readable(self) -> None:
        if not self.protocol or not self.metadata:
            raise TableProblem("its log has neither protocol nor schema")
        reader = int(self.protocol.get("minReaderVersion") or 1)
        features = set(self.protocol.get("readerFeatures") or ())
        if reader > _NEWEST_READER:
            raise UnsupportedTable(f"it wants readers of version {reader}")
        unknown = features - _READ_FEATURES
        if unknown:
            raise UnsupportedTable(f"it has the feature {', '.join(sorted(unknown))}")

    def _file(
        self,
        place: TablePlace,
        added: _Action,
        by_stored: Mapping[str, str],
        writer: TableWriter | None,
        *,
        keeps_row_ids: bool,
    ) -> DataFile:
        values = {by_stored.get(name, name): value or None for name, value in _as_map(added["partitionValues"]).items()}
        vector = added.get("deletionVector")
        base = added.get("baseRowId") if keeps_row_ids else None
        return DataFile(
            address=place.decoded(added["path"]),
            size=int(added["size"]),
            values=values,
            deleted=_deleted(place, vector) if vector else None,
            first_row_id=None if base is None else int(base),
            written_by=writer,
        )


def _writer(commit: _Action) -> TableWriter | None:
    """The run that a commit names, as outputs of Clew do."""
    try:
        about = json.loads(commit.get("userMetadata") or "{}")
        return TableWriter(str(about[_RUN]), int(about[_STEP]))
    except (ValueError, KeyError, TypeError):
        return None


def _key(action: _Action) -> tuple[str, str]:
    """What tells files apart: one with another deletion vector is another file to the log."""
    vector = action.get("deletionVector") or {}
    return action["path"], f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}@{vector.get('offset')}"


def _as_map(found: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A map as JSON has it, or as pairs, which is what Parquet gives."""
    return dict(found or {})


def _column(field_: Mapping[str, Any]) -> TableColumn:
    metadata, type_ = field_.get("metadata") or {}, field_["type"]
    stored = metadata.get("delta.columnMapping.physicalName", field_["name"])
    name = _TYPES.get(type_, type_) if isinstance(type_, str) else str(type_.get("type", "struct"))
    return TableColumn(field_["name"], name, stored)


def _hours(interval: str | None) -> float:
    found = _INTERVAL.search(interval or "")
    return float(found[1]) * _HOURS[found[2].lower()] if found else _VACUUM_HOURS


# Deletion vectors


def _deleted(place: TablePlace, vector: _Action) -> Positions:
    return partial(_vector_positions, place, vector)


def _vector_positions(place: TablePlace, vector: _Action) -> list[int]:
    kind, where = vector["storageType"], str(vector["pathOrInlineDv"])
    if kind == "i":
        data = _z85(where)
    else:
        address = place.decoded(where) if kind == "p" else place.below(_vector_file(where))
        data = _stored_vector(place.read(address), int(vector.get("offset") or 0))
    (magic,) = struct.unpack_from("<i", data)
    if magic != _MAGIC:
        raise UnsupportedTable("it has deletion vectors of an unknown kind")
    found = positions_of(data[4:])
    if len(found) != int(vector["cardinality"]):
        raise TableProblem(f"a deletion vector has {len(found)} rows, and its log says {vector['cardinality']}")
    return found


def _vector_file(where: str) -> str:
    prefix, coded = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
    name = f"deletion_vector_{UUID(bytes=_z85(coded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def _stored_vector(content: bytes, offset: int) -> bytes:
    (size,) = struct.unpack_from(">i", content, offset)
    data = content[offset + 4 : offset + 4 + size]
    (checksum,) = struct.unpack_from(">I", content, offset + 4 + size)
    if zlib.crc32(data) != checksum:
        raise TableProblem("a deletion vector is damaged")
    return data


def _z85(text: str) -> bytes:
    return base64.b85decode(text.translate(str.maketrans(_Z85, _BASE85)))
