"""Statements about many ids at once, however many there are."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from clew.store.tracelink.tables import signed

_AT_A_TIME = 2000


@contextmanager
def asked(
    connection: sa.Connection, statement: str, trace_ids: Collection[int]
) -> Iterator[sa.CursorResult[*tuple[Any, ...]]]:
    """The rows of a statement in which `{ids}` stands for "is one of these".

    They are read as they are wanted, and may be left before the end: millions can lie behind the first few.
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
