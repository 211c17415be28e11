"""Questions about lineage, answered from a database, for any number of ids at once."""

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from clew.store.database import Database
from clew.store.tracelink.trace_tables import signed, unsigned
from clew.tracelink.lineage_walk import Link, TracedFrame, TracePlace

_AT_A_TIME = 2000


@contextmanager
def asked(
    connection: sa.Connection, statement: str, trace_ids: Collection[int]
) -> Iterator[sa.CursorResult[*tuple[Any, ...]]]:
    """The rows of a statement in which `{ids}` stands for "is one of these".

    They are read as needed, and reading may stop early: millions can follow the first few.
    """
    ids = [signed(trace_id) for trace_id in trace_ids]
    options = {"stream_results": True, "max_row_buffer": _AT_A_TIME}
    if connection.dialect.name == "postgresql":
        result = connection.exec_driver_sql(statement.format(ids="= ANY(%s)"), (ids,), options)
    else:
        text = statement.format(ids="IN (SELECT value FROM json_each(?))")
        result = connection.exec_driver_sql(text, (json.dumps(ids),), options)
    try:
        yield result
    finally:
        result.close()


_WINDOW_JOINS_FRAME = "f.stream_id = w.in_stream_id AND f.epoch = w.epoch"
IN_SEQ_BOUNDS = f"{_WINDOW_JOINS_FRAME} AND f.seq BETWEEN w.seq_start AND w.seq_end"
IN_TIME_BOUNDS = f"{_WINDOW_JOINS_FRAME} AND f.t_ns BETWEEN w.t_start_ns AND w.t_end_ns"
IS_A_PARENT = "f.trace_id <> 0 AND f.trace_id <> w.trace_id"

_PARENTS = (
    "SELECT trace_id, parent_trace_id FROM trace_links WHERE trace_id {ids} ORDER BY trace_id, parent_trace_id",
    *(
        f"SELECT w.trace_id, f.trace_id FROM trace_windows w JOIN frames f ON {bounds} "  # noqa: S608
        f"WHERE w.trace_id {{ids}} AND {IS_A_PARENT} ORDER BY w.trace_id, w.in_stream_id, {place}"
        for bounds, place in ((IN_SEQ_BOUNDS, "f.seq"), (IN_TIME_BOUNDS, "f.t_ns, f.seq"))
    ),
)
"""Parents of a window come in the order of the index, so that the first of millions are there at once."""
_CHILDREN = (
    "SELECT trace_id, parent_trace_id FROM trace_links WHERE parent_trace_id {ids} ORDER BY parent_trace_id, trace_id",
    *(
        f"SELECT w.trace_id, f.trace_id FROM frames f JOIN trace_windows w ON {bounds} "  # noqa: S608
        f"WHERE f.trace_id {{ids}} AND {IS_A_PARENT} ORDER BY f.trace_id, w.trace_id"
        for bounds in (IN_SEQ_BOUNDS, IN_TIME_BOUNDS)
    ),
)
_FRAMES = (
    "SELECT trace_id, stream_id, epoch, seq, stage_id, t_ns, status FROM frames WHERE trace_id {ids} "
    "ORDER BY t_ns, stream_id, epoch, seq"
)
_ARTIFACTS = """
    SELECT DISTINCT f.trace_id, a.kind, a.artifact_id, a.uri FROM frames f
    JOIN trace_artifacts a ON a.stream_id = f.stream_id AND a.epoch = f.epoch
        AND CASE a.is_by_seq WHEN 1 THEN f.seq ELSE f.t_ns END BETWEEN a.range_start AND a.range_end
    WHERE f.trace_id {ids} ORDER BY f.trace_id, a.kind, a.artifact_id
"""
_WINDOWS = (
    "SELECT trace_id, in_stream_id, epoch, seq_start, seq_end, t_start_ns, t_end_ns FROM trace_windows "
    "WHERE trace_id {ids} ORDER BY trace_id, in_stream_id"
)


class SqlLineageReader:
    """Reads what the collector and others have written."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the trace."""
        return self._links(_PARENTS, trace_ids)

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        """The links in which one of these is the parent."""
        return self._links(_CHILDREN, trace_ids)

    def frames(self, trace_ids: Collection[int]) -> Iterable[TracedFrame]:
        """The frames that were sent under these traces. Rows of runs are in their files, and not here."""
        with self._database.read() as connection, asked(connection, _FRAMES, trace_ids) as rows:
            for row in rows:
                trace_id, stream_id, epoch, seq, stage_id, t_ns, status = map(unsigned, row)
                yield TracedFrame(
                    trace_id=trace_id,
                    stream_id=stream_id,
                    epoch=epoch,
                    seq=seq,
                    stage_id=stage_id,
                    t_ns=t_ns,
                    status=status,
                )

    def places(self, trace_ids: Collection[int]) -> Iterable[TracePlace]:
        """The windows that these traces stand for, and the artifacts that were in use for their frames."""
        with self._database.read() as connection:
            yield from _window_places(connection, trace_ids)
            with asked(connection, _ARTIFACTS, trace_ids) as artifacts:
                for row in artifacts:
                    note = f"{row.kind} {row.artifact_id} ({row.uri})"
                    yield TracePlace(trace_id=unsigned(row.trace_id), note=note)

    def _links(self, statements: Iterable[str], trace_ids: Collection[int]) -> Iterator[Link]:
        with self._database.read() as connection:
            for statement in statements:
                with asked(connection, statement, trace_ids) as links:
                    for child, parent in links:
                        yield unsigned(child), unsigned(parent)


def _window_places(connection: sa.Connection, trace_ids: Collection[int]) -> Iterator[TracePlace]:
    with asked(connection, _WINDOWS, trace_ids) as windows:
        for row in windows:
            if row.seq_start is not None:
                bounds = f"seq {row.seq_start} to {row.seq_end}"
            else:
                bounds = f"{row.t_start_ns} to {row.t_end_ns} ns"
            note = f"window over stream {row.in_stream_id}, epoch {unsigned(row.epoch)}, {bounds}"
            yield TracePlace(trace_id=unsigned(row.trace_id), note=note)
