"""What an append asks of the database: how many statements and transactions there are, whatever stands before it."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from clew.runs.leases import Lease
from clew.runs.stores import RunStores
from clew.store import open_run_stores
from tests.store.test_store_events import alert, new_run, seqs, started


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that the drivers of this process ask SQLite from here on."""
    statements = list[str]()
    connect = sqlite3.connect

    def traced(*values: object, **named: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*values, **named)  # type: ignore[call-overload]
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr("sqlite3.dbapi2.connect", traced)
    monkeypatch.setattr("sqlite3.connect", traced)
    return statements


@pytest.fixture
def stores(tmp_path: Path, asked: list[str]) -> Iterator[RunStores]:
    with open_run_stores(f"sqlite:///{tmp_path / 'state.db'}") as opened:
        yield opened
    assert asked


def verbs(asked: Sequence[str]) -> list[str]:
    """The first words of statements. Where a trigger looks at one, it is told twice."""
    told = [each for before, each in zip(["", *asked], asked, strict=False) if each != before]
    return [each.split()[0].upper() for each in told]


ONE_EVENT = ["BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT"]
"""The lock with the fence, the event, and the head of its run."""


def append(stores: RunStores, lease: Lease, numbers: Sequence[int]) -> None:
    stores.writer.append(lease.run_id, [alert(number) for number in numbers], token=lease.token)


def test_an_event_is_appended_with_three_statements_in_one_transaction(stores: RunStores, asked: list[str]) -> None:
    lease = new_run(stores)
    append(stores, lease, [1])
    for number in (2, 3):
        asked.clear()
        append(stores, lease, [number])
        assert verbs(asked) == ONE_EVENT


def test_an_event_of_a_long_run_takes_as_many_statements_as_the_first(stores: RunStores, asked: list[str]) -> None:
    lease = new_run(stores)
    append(stores, lease, range(300))
    asked.clear()
    append(stores, lease, [300])
    assert verbs(asked) == ONE_EVENT


def test_events_that_come_together_share_lock_head_and_commit(stores: RunStores, asked: list[str]) -> None:
    lease = new_run(stores)
    asked.clear()
    append(stores, lease, range(20))
    assert verbs(asked) == ["BEGIN", "SELECT", *["INSERT"] * 20, "UPDATE", "COMMIT"]


def test_an_event_that_is_stored_is_looked_for_once_the_database_has_refused_it(
    stores: RunStores, asked: list[str]
) -> None:
    lease = new_run(stores)
    event = started()
    stores.writer.append("run-1", [event], token=lease.token)
    before = seqs(stores)
    asked.clear()
    stores.writer.append("run-1", [event], token=lease.token)
    assert verbs(asked) == ["BEGIN", "SELECT", "INSERT", "ROLLBACK", "BEGIN", "SELECT", "SELECT", "COMMIT"]
    assert seqs(stores) == before
