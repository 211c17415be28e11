"""Upkeep of TraceLink's tables: derives links from windows, and deletes old frames, links and windows.

Windows are taken in the order of their trace ids, as many per transaction as represent the number of links that it may
write. A window that represents more is written in several transactions, one stretch of its stream after the other.
Deleting happens in small transactions too.
"""

# ruff: noqa: S608 - the statements are put together from constants; all values are bound

from collections.abc import Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa

from clew.storage.trace_id_bits import first_id_of
from clew.store.database import Database
from clew.store.tracelink.inserts import insert_new
from clew.store.tracelink.queries import IN_SEQ_BOUNDS, IS_A_PARENT
from clew.store.tracelink.trace_tables import frames, trace_links, trace_windows
from clew.tracelink.ids import UNTRACED
from clew.tracelink.stores import Age, Expansion, Kept

_PAGE = 1000
_Place = tuple[int, int]
"""Where in a stream: the sequence or the time, and the sequence."""
_BEFORE_ALL: _Place = (-1, -1)

_EXPAND_SEVERAL = f"""
    INSERT INTO trace_links (trace_id, parent_trace_id)
    SELECT DISTINCT w.trace_id, f.trace_id FROM trace_windows w JOIN frames f ON {IN_SEQ_BOUNDS}
    WHERE (w.trace_id > :after_trace OR (w.trace_id = :after_trace AND w.in_stream_id >= :after_stream))
        AND (w.trace_id < :last_trace OR (w.trace_id = :last_trace AND w.in_stream_id <= :last_stream))
        AND {IS_A_PARENT}
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING
"""


class SqlWindowExpander:
    """Writes the links that windows represent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def expand(self, *, since_ms: int = 0, batch_links: int = 20_000) -> Expansion:
        """Expand the windows of traces minted since then, in transactions of about so many links."""
        done = Expansion()
        for windows in self._pages(first_id_of(since_ms)):
            for group in _groups(windows, batch_links):
                done += self._expand(group, batch_links)
        return done

    def _pages(self, first_trace_id: int) -> Iterator[Sequence[sa.Row[Any]]]:
        key = sa.tuple_(trace_windows.c.trace_id, trace_windows.c.in_stream_id)
        after = (first_trace_id, -1)
        while True:
            statement = sa.select(trace_windows).where(key > after).order_by(*key.clauses).limit(_PAGE)
            with self._database.read() as connection:
                windows = connection.execute(statement).all()
            if not windows:
                return
            yield windows
            after = (windows[-1].trace_id, windows[-1].in_stream_id)

    def _expand(self, windows: Sequence[sa.Row[Any]], batch_links: int) -> Expansion:
        if _most_links(windows[0]) <= batch_links:
            return Expansion(len(windows), self._expand_together(windows), 1)
        written = list(self._expand_alone(windows[0], batch_links))
        return Expansion(1, sum(written), len(written))

    def _expand_together(self, windows: Sequence[sa.Row[Any]]) -> int:
        first, last = windows[0], windows[-1]
        bounds = {
            "after_trace": first.trace_id,
            "after_stream": first.in_stream_id,
            "last_trace": last.trace_id,
            "last_stream": last.in_stream_id,
        }
        with self._database.write() as connection:
            return connection.execute(sa.text(_EXPAND_SEVERAL), bounds).rowcount

    def _expand_alone(self, window: sa.Row[Any], batch_links: int) -> Iterator[int]:
        """A large window, or one bounded by time: its number of frames is not known in advance."""
        after: _Place | None = _BEFORE_ALL
        while after is not None:
            with self._database.write() as connection:
                found = connection.execute(_next_frames(window, after, batch_links)).all()
                pairs = {(window.trace_id, frame.trace_id) for frame in found}
                yield insert_new(connection, trace_links, sorted(pairs - {(window.trace_id, window.trace_id)}))
            after = (found[-1].place, found[-1].seq) if len(found) == batch_links else None


def _next_frames(window: sa.Row[Any], after: _Place, limit: int) -> sa.Select[Any]:
    is_by_seq = window.seq_start is not None
    place = frames.c.seq if is_by_seq else frames.c.t_ns
    start, end = (window.seq_start, window.seq_end) if is_by_seq else (window.t_start_ns, window.t_end_ns)
    return (
        sa.select(place.label("place"), frames.c.seq, frames.c.trace_id)
        .where(frames.c.stream_id == window.in_stream_id, frames.c.epoch == window.epoch)
        .where(place.between(start, end), sa.tuple_(place, frames.c.seq) > after, frames.c.trace_id != UNTRACED)
        .order_by(place, frames.c.seq)
        .limit(limit)
    )


def _groups(windows: Sequence[sa.Row[Any]], batch_links: int) -> Iterator[Sequence[sa.Row[Any]]]:
    """Adjacent windows that fit into one transaction; one that does not fit is alone."""
    start, expected = 0, 0.0
    for index, window in enumerate(windows):
        links = _most_links(window)
        if index > start and expected + links > batch_links:
            yield windows[start:index]
            start, expected = index, 0.0
        expected += links
    yield windows[start:]


def _most_links(window: sa.Row[Any]) -> float:
    return float("inf") if window.seq_start is None else window.seq_end - window.seq_start + 1


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
    """Removes old records. Rows of runs are not here: they are deleted with their run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, kept: Kept, age: Age) -> int:
        """How many records are that old."""
        table, _, may_go = _TABLES[kept]
        with self._database.read() as connection:
            found = connection.scalar(sa.text(f"SELECT COUNT(*) FROM {table} t WHERE {may_go}"), _bound(age))
            return int(found or 0)

    def prune(self, kept: Kept, age: Age, *, batch: int = 20_000) -> int:
        """Remove them in transactions of this size. Returns how many there were."""
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
