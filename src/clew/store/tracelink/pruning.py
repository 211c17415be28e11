"""Old frames, links and windows, out of a database in small transactions."""

# ruff: noqa: S608 - the statements are put together from constants; all values are bound

from typing import Final

import sqlalchemy as sa

from clew.store.database import Database
from clew.tracelink.pruning import Age, Kept

_IS_OLD = "{t}.trace_id BETWEEN :first_id AND :last_id"
_PASSES_STAGES = (
    "EXISTS (SELECT 1 FROM frames y WHERE y.trace_id = {t}.trace_id AND (y.t_ns >= :before_ns OR y.t_ns < 0))"
)
_MAY_GO = f"{_IS_OLD} AND NOT {_PASSES_STAGES}"
_FLOORS = f"""
    SELECT w.in_stream_id, w.epoch, MIN(w.seq_start) AS first_seq, MIN(w.t_start_ns) AS first_ns FROM trace_windows w
    WHERE NOT ({_MAY_GO.format(t="w")}) GROUP BY w.in_stream_id, w.epoch
"""
"""From where on a stream is needed by windows that stay. Looked up once, not for each frame."""
_FRAME_MAY_GO = f"""
    {_IS_OLD.format(t="t")} AND t.t_ns >= 0 AND t.t_ns < :before_ns AND NOT EXISTS (
        SELECT 1 FROM ({_FLOORS}) floor WHERE floor.in_stream_id = t.stream_id AND floor.epoch = t.epoch
        AND (t.seq >= floor.first_seq OR t.t_ns >= floor.first_ns)
    )
"""

_TABLES: Final = {
    Kept.FRAMES: ("frames", "stream_id, epoch, seq", _FRAME_MAY_GO),
    Kept.LINKS: ("trace_links", "trace_id, parent_trace_id", _MAY_GO.format(t="t")),
    Kept.WINDOWS: ("trace_windows", "trace_id, in_stream_id", _MAY_GO.format(t="t")),
}


class SqlTracePruner:
    """Removes what is old. Rows of runs are not here: they go with their run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, kept: Kept, age: Age) -> int:
        """How many records are so old."""
        table, _, may_go = _TABLES[kept]
        with self._database.read() as connection:
            found = connection.scalar(sa.text(f"SELECT COUNT(*) FROM {table} t WHERE {may_go}"), _bound(age))
            return int(found or 0)

    def prune(self, kept: Kept, age: Age, *, batch: int = 20_000) -> int:
        """Remove them in transactions of so many, and tell how many there were."""
        table, key, may_go = _TABLES[kept]
        columns = ", ".join(f"t.{column}" for column in key.split(", "))
        some = f"SELECT {columns} FROM {table} t WHERE {may_go} LIMIT :batch"
        statement = sa.text(f"DELETE FROM {table} WHERE ({key}) IN ({some})")
        removed = 0
        while True:
            with self._database.write() as connection:
                gone = connection.execute(statement, {**_bound(age), "batch": batch}).rowcount
            removed += gone
            if gone < batch:
                return removed


def _bound(age: Age) -> dict[str, int]:
    first, last = age.trace_ids
    return {"first_id": first, "last_id": last, "before_ns": age.before_ns}
