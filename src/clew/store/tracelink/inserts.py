"""Frames, links, windows, artifacts and blocks of trace ids into a database: many rows to a transaction."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from clew.storage.trace_id_bits import MAX_NODE_ID, node_id_of, tick_of, trace_id_of
from clew.store.database import Database
from clew.store.schema import trace_blocks
from clew.store.tracelink.trace_tables import (
    frames,
    signed,
    signed_rows,
    trace_artifacts,
    trace_links,
    trace_windows,
    unsigned,
)
from clew.tracelink.frames import ArtifactRange, PublishedBlock, TraceBatch, TraceWindow, UnsignedWrite
from clew.tracelink.ids import TraceIdBlock


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[object, ...]]) -> int:
    """Insert rows whose values are in the order of the table's columns; how many were not there before."""
    if not rows:
        return 0
    columns = ", ".join(table.c.keys())
    if connection.dialect.name == "postgresql":
        arrays = ", ".join(f"%s::{_array_type(column)}[]" for column in table.c)
        statement = f"INSERT INTO {table.name} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
        return connection.exec_driver_sql(statement, tuple(map(list, zip(*rows, strict=True)))).rowcount
    places = ", ".join("?" for _ in table.c)
    statement = f"INSERT INTO {table.name} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def _array_type(column: sa.Column[object]) -> str:
    return "bigint" if isinstance(column.type, sa.Integer) else "text"


_LOCK = "trace-blocks"
"""Held while a block is registered, and while records of unknown senders are compared with the blocks there are."""
_END_OF_IDS = 1 << 63
"""Larger numbers are ids with another layout."""


class SqlBlockRegister:
    """Which run and step the ids of a block belong to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, published: PublishedBlock) -> None:
        """Keep a block. The same one again changes nothing; one without ids is not kept."""
        block = published.block
        if not len(block):
            return
        row = (
            *(block.node_id, block.first_tick, block.count, published.run_id, published.operation_seq),
            *(published.stream_id, signed(published.epoch), signed(published.first_seq), signed(published.t_ns)),
        )
        with self._database.write(lock=_LOCK) as connection:
            if insert_new(connection, trace_blocks, [row]):
                _forget_what_was_foretold(connection, block)

    def blocks_of(self, trace_ids: Collection[int]) -> Iterable[PublishedBlock]:
        """The blocks of these ids, each once: a statement per block, however many ids it has."""
        with self._database.read() as connection:
            yield from _blocks_of(connection, trace_ids)

    def blocks_of_run(self, run_id: str) -> Iterable[PublishedBlock]:
        """The blocks of a run in the order of its steps."""
        order = (trace_blocks.c.operation_seq, trace_blocks.c.first_tick)
        statement = sa.select(trace_blocks).where(trace_blocks.c.run_id == run_id).order_by(*order)
        with self._database.read() as connection:
            return tuple(map(_published, connection.execute(statement)))


def _blocks_of(connection: sa.Connection, trace_ids: Collection[int]) -> Iterator[PublishedBlock]:
    places = sorted((node_id_of(i), tick_of(i)) for i in trace_ids if i < _END_OF_IDS)
    for node_id, ticks in groupby(places, key=lambda place: place[0]):
        yield from _blocks_of_node(connection, node_id, [tick for _, tick in ticks])


def _blocks_of_node(connection: sa.Connection, node_id: int, ticks: list[int]) -> Iterator[PublishedBlock]:
    """From the largest tick down. What lies between a block's end and the next tick asked for is of no block."""
    while ticks:
        statement = (
            sa.select(trace_blocks)
            .where(trace_blocks.c.node_id == node_id, trace_blocks.c.first_tick <= ticks[-1])
            .order_by(trace_blocks.c.first_tick.desc())
            .limit(1)
        )
        row = connection.execute(statement).one_or_none()
        if row is None:
            return
        if any(row.first_tick <= tick < row.first_tick + row.id_count for tick in ticks):
            yield _published(row)
        ticks = [tick for tick in ticks if tick < row.first_tick]


def _published(row: sa.Row[Any]) -> PublishedBlock:
    return PublishedBlock(
        block=TraceIdBlock(node_id=row.node_id, first_tick=row.first_tick, count=row.id_count),
        run_id=row.run_id,
        operation_seq=row.operation_seq,
        stream_id=row.stream_id,
        epoch=unsigned(row.epoch),
        first_seq=unsigned(row.first_seq),
        t_ns=unsigned(row.t_ns),
    )


def _forget_what_was_foretold(connection: sa.Connection, block: TraceIdBlock) -> None:
    """Delete what senders have said about ids before these were given out: ids can be guessed, as they count up."""
    first, last = trace_id_of(block.first_tick, 0), trace_id_of(block.first_tick + block.count, MAX_NODE_ID)
    for column in (trace_links.c.trace_id, trace_links.c.parent_trace_id, frames.c.trace_id):
        found = connection.execute(sa.select(column).where(column.between(first, last)).distinct()).scalars()
        ours = [each for each in found if block.ordinal_of(each) is not None]
        for start in range(0, len(ours), _AT_ONCE):
            connection.execute(sa.delete(column.table).where(column.in_(ours[start : start + _AT_ONCE])))


_AT_ONCE = 500


def _without_rows_of_runs(connection: sa.Connection, batch: TraceBatch) -> TraceBatch:
    """The frames and links of a batch that name no row of a run."""
    named = {frame[_TRACE_ID] for frame in batch.frames} | {each for link in batch.links for each in link}
    blocks = [published.block for published in _blocks_of(connection, named)]

    def is_free(trace_id: int) -> bool:
        return all(block.ordinal_of(trace_id) is None for block in blocks)

    if not blocks:
        return batch
    return TraceBatch(
        frames=[frame for frame in batch.frames if is_free(frame[_TRACE_ID])],
        links=[link for link in batch.links if is_free(link[0]) and is_free(link[1])],
    )


_TRACE_ID = 5
"""Where a frame has its trace id."""


class SqlTraceWriter:
    """Stores what tracing reports. A record that arrives twice, as datagrams may, is stored once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, batch: TraceBatch) -> int:
        """Write all or nothing; existing records do not change. Returns how many records are new."""
        if not len(batch):
            return 0
        with self._database.write() as connection:
            return _write(connection, batch)

    def write_unsigned(self, batch: TraceBatch) -> UnsignedWrite:
        """Write frames and links from senders without a key, except those that name rows of runs."""
        if not len(batch):
            return UnsignedWrite(0, 0)
        with self._database.write(lock=_LOCK) as connection:
            kept = _without_rows_of_runs(connection, batch)
            return UnsignedWrite(_write(connection, kept), len(batch) - len(kept))


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
