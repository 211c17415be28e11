"""Reads what a state store has on record, for a check, without creating, upgrading or writing anything.

It uses the driver directly: a check runs hundreds of times a day, and SQLAlchemy takes longer to import than everything
else that a check does.
"""

# ruff: noqa: PLC0415 - the drivers are imported by those who have such a store

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.deferred import dataclass
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.store.read_only_files import is_read_only, read_only_uri

if TYPE_CHECKING:
    import psycopg

_PATIENCE_S = 2
_TABLES = ("dataset_versions", "project_versions")
_DATASETS = "SELECT dataset, version, columns FROM dataset_versions WHERE environment_id = {} ORDER BY version DESC"
_PROJECTS = "SELECT project, plan FROM project_versions WHERE environment_id = {} AND status = 'active'"

_Rows = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """A version of a dataset that a run has registered."""

    version: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an environment has on record: registered datasets, and the projects that are active."""

    datasets: Mapping[str, Sequence[RecordedVersion]] = field(default_factory=dict)
    plans: Mapping[str, str] = field(default_factory=dict)

    def versions(self, dataset: str) -> Sequence[RecordedVersion]:
        """All versions of a dataset, newest first; none if it was never registered."""
        return self.datasets.get(dataset, ())

    def active_plan(self, project: str) -> str | None:
        """The plan of the version that runs, as it was stored; None if none is active."""
        return self.plans.get(project)


def look_into_sqlite(path: Path, environment_id: str) -> Recorded:
    """What a file has on record; nothing if there is no file. TransientFailure if it cannot be read."""
    import sqlite3
    from contextlib import closing

    if not path.exists():
        return Recorded()
    try:
        address = read_only_uri(path) if is_read_only(path) else f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_S)) as connection:
            connection.execute("PRAGMA query_only=ON")
            known = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not {name for (name,) in known}.issuperset(_TABLES):
                return Recorded()
            asked = (environment_id,)
            return _recorded(
                connection.execute(_DATASETS.format("?"), asked), connection.execute(_PROJECTS.format("?"), asked)
            )
    except sqlite3.Error as error:
        raise _away(error) from error


def look_into_postgresql(url: str, environment_id: str) -> Recorded:
    """What a server has on record. TransientFailure if it does not answer soon."""
    with _reading(url) as connection:
        known = connection.execute("SELECT to_regclass(name) FROM unnest(%s::text[]) AS name", (list(_TABLES),))
        if any(found is None for (found,) in known):
            return Recorded()
        asked = (environment_id,)
        return _recorded(
            connection.execute(_DATASETS.format("%s"), asked), connection.execute(_PROJECTS.format("%s"), asked)
        )


def time_of_postgresql(url: str) -> float:
    """What the clock of a server says, in seconds since 1970. TransientFailure if it does not answer soon."""
    with _reading(url) as connection:
        [(seconds,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::double precision")
        return float(seconds)


@contextmanager
def _reading(url: str) -> "Iterator[psycopg.Connection[Any]]":
    import psycopg

    from clew.store.punctual import connect_in_time

    address = "postgresql://" + url.partition("://")[2]
    try:
        settings = {"connect_timeout": _PATIENCE_S, "application_name": "clew"}
        patience = float(_PATIENCE_S)
        with connect_in_time((address,), settings, patience_s=patience, connect_s=patience) as connection:
            connection.read_only = True
            connection.execute(f"SET LOCAL statement_timeout = '{_PATIENCE_S}s'")
            yield connection
    except psycopg.Error as error:
        raise _away(error) from error


def _recorded(datasets: _Rows, projects: _Rows) -> Recorded:
    versions = dict[str, list[RecordedVersion]]()
    for dataset, version, columns in datasets:
        listed = json.loads(columns) if isinstance(columns, str) else columns
        found = RecordedVersion(version, tuple((name, type_) for name, type_ in listed))
        versions.setdefault(dataset, []).append(found)
    return Recorded(versions, dict(tuple(row) for row in projects))


def _away(error: Exception) -> TransientFailure:
    return TransientFailure(STORE_UNAVAILABLE.anywhere(reason=str(error).strip().split("\n")[0]))
