"""Statements about many ids at once, however many there are."""

import json
from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from clew.store.tracelink.tables import signed

_AT_A_TIME = 2000


def rows_of(
    connection: sa.Connection, statement: str, trace_ids: Collection[int]
) -> Iterator[sa.Row[*tuple[Any, ...]]]:
    """The rows of a statement in which `{ids}` stands for "is one of these". Read as they are asked for."""
    ids = [signed(trace_id) for trace_id in trace_ids]
    options = {"stream_results": True, "max_row_buffer": _AT_A_TIME}
    if connection.dialect.name == "postgresql":
        yield from connection.exec_driver_sql(statement.format(ids="= ANY(%s)"), (ids,), options)
    else:
        text = statement.format(ids="IN (SELECT value FROM json_each(?))")
        yield from connection.exec_driver_sql(text, (json.dumps(ids),), options)
