"""Frames, links, windows and artifacts into a database, a batch to a transaction."""

import sqlalchemy as sa

from clew.store.database import Database
from clew.store.tracelink.inserting import insert_new
from clew.store.tracelink.tables import (
    frames,
    signed,
    signed_rows,
    trace_artifacts,
    trace_links,
    trace_windows,
)
from clew.tracelink.records import ArtifactRange, TraceBatch, TraceWindow


class SqlTraceWriter:
    """Writes what tracing tells. A record that comes twice, as datagrams may, is one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, batch: TraceBatch) -> int:
        """Write all or nothing, and tell how many records are new. What is there already stays as it is."""
        if not len(batch):
            return 0
        with self._database.write() as connection:
            return _write(connection, batch)


def _write(connection: sa.Connection, batch: TraceBatch) -> int:
    written = insert_new(connection, frames, signed_rows(batch.frames))
    written += insert_new(connection, trace_links, signed_rows(batch.links))
    written += insert_new(connection, trace_windows, [_window_row(w) for w in sorted(batch.windows, key=_window_key)])
    return written + insert_new(connection, trace_artifacts, sorted(map(_artifact_row, batch.artifacts)))


def _window_row(window: TraceWindow) -> tuple[int | None, ...]:
    bounds = window.bounds
    return (
        signed(window.trace_id),
        window.in_stream_id,
        signed(window.epoch),
        bounds.seq_start,
        bounds.seq_end,
        bounds.t_start_ns,
        bounds.t_end_ns,
    )


def _window_key(window: TraceWindow) -> tuple[int, int]:
    return signed(window.trace_id), window.in_stream_id


def _artifact_row(artifact: ArtifactRange) -> tuple[int, int, int, int, str, int, str, str]:
    start, end = artifact.bounds.ends
    return (
        artifact.stream_id,
        signed(artifact.epoch),
        int(artifact.bounds.is_by_seq),
        start,
        artifact.artifact_id,
        end,
        artifact.kind,
        artifact.uri,
    )
