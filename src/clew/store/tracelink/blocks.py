"""Blocks of trace ids in a database."""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from clew.store.database import Database
from clew.store.schema import trace_blocks
from clew.store.tracelink.inserting import insert_new
from clew.store.tracelink.tables import signed, unsigned
from clew.tracelink.block_register import PublishedBlock
from clew.tracelink.blocks import TraceIdBlock
from clew.tracelink.layout import decompose, tick_of

_END_OF_IDS = 1 << 63
"""Larger numbers are ids that somebody else minted in another way."""


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
        with self._database.write() as connection:
            insert_new(connection, trace_blocks, [row])

    def blocks_of(self, trace_ids: Collection[int]) -> Iterable[PublishedBlock]:
        """The blocks that these ids are of, each once: a statement per block, however many ids it has."""
        places = sorted((decompose(i).node_id, tick_of(i)) for i in trace_ids if i < _END_OF_IDS)
        with self._database.read() as connection:
            for node_id, ticks in groupby(places, key=lambda place: place[0]):
                yield from _blocks_of_node(connection, node_id, [tick for _, tick in ticks])

    def blocks_of_run(self, run_id: str) -> Iterable[PublishedBlock]:
        """The blocks of a run in the order of its steps."""
        order = (trace_blocks.c.operation_seq, trace_blocks.c.first_tick)
        statement = sa.select(trace_blocks).where(trace_blocks.c.run_id == run_id).order_by(*order)
        with self._database.read() as connection:
            return tuple(map(_published, connection.execute(statement)))


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
