"""The trace of a run against the states that DuckDB computes: every row after every step, and every record."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from clew.api.run_view import RunView
from clew.api.workspace import Workspace
from clew.trace.reader import RunTrace
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import Shop

_ALL = 1_000_000


@contextmanager
def tables(folder: Path, names: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables of a folder."""
    with duckdb.connect() as database:
        for name in names:
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
        yield database


def check_states(shop: Shop, view: RunView, names: Sequence[str], states: Mapping[int, str]) -> None:
    """Compare the rows after each step with what a query gives for them, step 0 first, and records with differences.

    A query names the columns of the working dataset and `_deleted`, whatever their order.
    """
    before = None
    for database, trace, seq in _compared(shop, view, names, states, None):
        if before is not None:
            _check_records(database, trace, before, seq)
        before = seq


def check_states_where(
    shop: Shop, view: RunView, names: Sequence[str], states: Mapping[int, str], condition: str
) -> None:
    """Compare only the rows that a condition names, which must mean the same here and in DuckDB."""
    for _ in _compared(shop, view, names, states, condition):
        pass


def _compared(
    shop: Shop, view: RunView, names: Sequence[str], states: Mapping[int, str], condition: str | None
) -> Iterator[tuple[duckdb.DuckDBPyConnection, RunTrace, int]]:
    trace = open_trace(view, Workspace(shop.root).run_environment)
    with tables(shop.root / "data", names) as database:
        for seq, query in states.items():
            _check_state(database, trace, seq, query, condition)
            yield database, trace, seq
    trace.close()


def _check_state(
    database: duckdb.DuckDBPyConnection, trace: RunTrace, seq: int, query: str, condition: str | None
) -> None:
    rows = trace.search(condition, at=seq, limit=_ALL)
    assert not rows.has_more
    database.register("rows_now", rows.to_arrow())
    database.execute(f"CREATE TABLE after_{seq} AS FROM rows_now")
    columns = ", ".join([*_data(trace, seq), "_deleted"])
    found, expected = f"SELECT {columns} FROM after_{seq}", f"SELECT {columns} FROM ({query}) WHERE {condition or True}"
    for missing in (f"{found} EXCEPT ALL {expected}", f"{expected} EXCEPT ALL {found}"):
        assert database.sql(missing).limit(3).fetchall() == [], f"after step {seq}"


def _check_records(database: duckdb.DuckDBPyConnection, trace: RunTrace, before: int, seq: int) -> None:
    """A row has a record where it differs from the row before, or was not there; and the record says how."""
    records = trace.step_rows(seq, limit=_ALL).to_arrow()
    database.register("records", records)
    both = [name for name in _data(trace, seq) if name in _data(trace, before)] + ["_deleted"]
    added = [name for name in _data(trace, seq) if name not in both]
    differs = " OR ".join(
        [f"a.{name} IS DISTINCT FROM b.{name}" for name in both] + [f"a.{name} IS NOT NULL" for name in added]
    )
    changed = f"""SELECT a.row_id FROM after_{seq} a LEFT JOIN after_{before} b USING (row_id)
                  WHERE b.row_id IS NULL OR {differs}"""
    recorded = "SELECT row_id FROM records"
    for wrong in (f"{changed} EXCEPT ALL {recorded}", f"{recorded} EXCEPT ALL {changed}"):
        assert database.sql(wrong).limit(3).fetchall() == [], f"records of step {seq}"
    told = [name.removeprefix("after.") for name in records.column_names if name.startswith("after.")]
    for name in (name for name in told if name in {*both, *added} - {"_deleted"}):
        old = f"b.{name}" if name in both else "NULL"
        wrong = f"""SELECT row_id FROM records r JOIN after_{seq} a USING (row_id)
                    LEFT JOIN after_{before} b USING (row_id)
                    WHERE list_contains(r.changed, '{name}')
                      AND (r."after.{name}" IS DISTINCT FROM a.{name} OR r."before.{name}" IS DISTINCT FROM {old})"""
        assert database.sql(wrong).limit(3).fetchall() == [], f"values of {name} in step {seq}"


def _data(trace: RunTrace, seq: int) -> list[str]:
    return [name for name, _ in trace.run.columns(seq) if not name.startswith("_")]
