"""Opens the version of a table that a path and options name, whichever format it has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import pyarrow as pa

from clew.deferred import dataclass
from clew.diagnostics.file_system import OutOfReach
from clew.storage.tables.delta import newest_version, read_delta, version_by, version_then
from clew.storage.tables.iceberg import (
    WantedSnapshot,
    current_metadata,
    current_snapshot_id,
    is_metadata_file,
    read_iceberg,
    snapshot_by,
    snapshot_then,
)
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import (
    TableFormat,
    TableProblem,
    TableSnapshot,
    TableWriter,
    UnsupportedTable,
)

T = TypeVar("T")

_DELTA_VERSION = "versionasof"
_SNAPSHOT = "snapshot-id"
_REFS = ("branch", "tag")


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """Where a table lies, and what it is called."""

    place: TablePlace
    shown: str
    format: TableFormat
    metadata: str | None = None
    """Iceberg's metadata file, where it is known."""


def read_snapshot(
    place: TablePlace, format_: TableFormat, options: Mapping[str, str], metadata: str | None = None
) -> TableSnapshot:
    """The version that options name, the newest where they name none; `metadata` is Iceberg's file, where known.

    Raises TableProblem and UnsupportedTable.
    """
    given = {name.casefold(): value for name, value in options.items()}
    if format_ == "delta":
        version = given.pop(_DELTA_VERSION, None)
        _require_no_more(given)
        return _told(lambda: read_delta(place, None if version is None else _number(version, "versionAsOf")))
    snapshot = given.pop(_SNAPSHOT, None)
    refs = [given.pop(name) for name in _REFS if name in given]
    _require_no_more(given)
    wanted = WantedSnapshot(
        None if snapshot is None else _number(snapshot, _SNAPSHOT), refs[0] if refs and snapshot is None else None
    )
    return _told(lambda: read_iceberg(place, metadata or current_metadata(place), wanted))


def version_option(place: TablePlace, format_: TableFormat, metadata: str | None = None) -> dict[str, str]:
    """The option by which the connector of a format reads the version that is the newest now. Raises TableProblem."""
    if format_ == "delta":
        return {"versionAsOf": str(_told(lambda: newest_version(place.root)))}
    found = _told(lambda: current_snapshot_id(place, metadata or current_metadata(place)))
    return {} if found is None else {_SNAPSHOT: str(found)}


def option_then(table: "LocatedTable", at: datetime) -> dict[str, str]:
    """The option that names the version of a table that was the newest at a time. Raises TableProblem."""
    if table.format == "delta":
        return {"versionAsOf": str(_told(lambda: version_then(table.place.root, at)))}
    return {
        _SNAPSHOT: str(_told(lambda: snapshot_then(table.place, table.metadata or current_metadata(table.place), at)))
    }


@dataclass(frozen=True, slots=True)
class CommittedVersion:
    """A version of a table, and how it is found again."""

    snapshot: TableSnapshot
    metadata: str | None
    """Iceberg's metadata file in which it was found."""


def committed_by(table: LocatedTable, writer: TableWriter) -> CommittedVersion | None:
    """The version that a run and step have committed to a table; None where its metadata names none.

    Raises TableProblem and UnsupportedTable.
    """
    if table.format == "delta":
        version = _told(lambda: version_by(table.place.root, writer))
        return None if version is None else CommittedVersion(version_at(table, version), None)
    metadata = table.metadata or _told(lambda: current_metadata(table.place))
    snapshot = _told(lambda: snapshot_by(table.place, metadata, writer))
    if snapshot is None:
        return None
    return CommittedVersion(version_at(replace(table, metadata=metadata), snapshot), metadata)


def version_at(table: LocatedTable, version: int) -> TableSnapshot:
    """A version of a table by its number. Raises TableProblem and UnsupportedTable."""
    option = "versionAsOf" if table.format == "delta" else _SNAPSHOT
    return read_snapshot(table.place, table.format, {option: str(version)}, table.metadata)


def table_folder(location: str, format_: TableFormat) -> tuple[str, str | None]:
    """The folder of a table, and its metadata file where the location names that."""
    if format_ == "iceberg" and is_metadata_file(location):
        return re.sub(r"/metadata/[^/]*$", "", location), location
    return location, None


def _require_no_more(options: Mapping[str, str]) -> None:
    if options:
        raise UnsupportedTable(f"its rule has the option {', '.join(sorted(options))}")


def _number(text: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise TableProblem(f'its option {name} is "{text}", which is not a number')
    return int(text)


def _told(read: Callable[[], T]) -> T:
    """Metadata that is gone or not what it should be, as one kind of error."""
    try:
        return read()
    except OutOfReach:
        raise
    except FileNotFoundError as error:
        raise TableProblem(f"its metadata is incomplete: {error.filename or error} is gone") from None
    except (KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise TableProblem(f"its metadata is damaged: {error}") from None
