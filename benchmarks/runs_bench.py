"""What the state store costs: appending against bare INSERTs, projecting, listing, and the queue under four workers.

Run it alone with `python -m benchmarks.runs_bench`. Both sides of a ratio use the same database with the same settings,
and take turns; the median of all rounds counts. CLEW_BENCH_RUNS sets how many runs the queue gets (1,000).
"""

import json
import multiprocessing
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg
from benchmarks.figure import Figure

from clew.events import NewEvent, RawEvent, StepCompleted, StepStarted, StoredEvent
from clew.events.codec import canonical_json, encode
from clew.events.envelope import idempotency_key
from clew.events.reducer import project_run
from clew.events.snapshot import RunStatus
from clew.events.values import PlanRef
from clew.runs.leases import Lease
from clew.runs.limits import Accepted, LeasePolicy
from clew.runs.request import RunFilter, RunRequest
from clew.runs.stores import RunStores
from clew.store import StoreOptions, open_run_stores

TESTS = Path(__file__).parent.parent / "tests"
APPENDS = 400
WRITERS = 8
ROUNDS = 3
PROJECTED = 100_000
LISTED = 10_000
RUNS = int(os.environ.get("CLEW_BENCH_RUNS", "1000"))
WORKERS = 4
EVENTS_OF_A_RUN = 5
MOMENT = datetime(2026, 1, 31, tzinfo=UTC)
PATIENT = StoreOptions(busy_timeout_s=60)


def measure() -> list[Figure]:
    sys.path[:0] = [str(TESTS / "runs"), str(TESTS / "store")]
    from tests.store.store_postgres import DURABLE, postgres_server

    figures = []
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name, postgres_server(DURABLE) as server:
        folder = Path(name)
        for database in (Bare(f"sqlite:///{folder / 'append.db'}", "SQLite"), Bare(server.url, "PostgreSQL")):
            figures += appending(database)
        figures += projecting()
        figures += listing(f"sqlite:///{folder / 'list.db'}")
        figures += queueing(f"sqlite:///{folder / 'queue.db'}")
    return figures


@dataclass(frozen=True, slots=True)
class Bare:
    """A database, and the barest way to put a row into it that survives."""

    url: str
    name: str

    @contextmanager
    def inserting(self) -> Iterator[Callable[[tuple[object, ...]], None]]:
        if self.url.startswith("sqlite"):
            with self._sqlite() as insert:
                yield insert
        else:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS bare (run_id TEXT, seq BIGINT, data TEXT, at TEXT)")
                yield lambda row: _ignore(connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s)", row))

    @contextmanager
    def _sqlite(self) -> Iterator[Callable[[tuple[object, ...]], None]]:
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("CREATE TABLE IF NOT EXISTS bare (run_id TEXT, seq INTEGER, data TEXT, at TEXT)")
            yield lambda row: _ignore(connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?)", row))
        finally:
            connection.close()


def _ignore(_: object) -> None:
    return None


def appending(database: Bare) -> list[Figure]:
    """One event per transaction on either side."""
    with open_run_stores(database.url, PATIENT) as stores:
        leases = [new_run(stores, f"append-{number}") for number in range(WRITERS)]
        one = [(append_alone(stores, leases[0], round_), insert_alone(database, round_)) for round_ in range(ROUNDS)]
    many = [
        (in_processes(append_process, database, leases, round_), in_processes(insert_process, database, leases, round_))
        for round_ in range(ROUNDS)
    ]
    return [
        ratio(f"append an event, {database.name}, one writer, against a bare INSERT", one),
        ratio(f"append an event, {database.name}, {WRITERS} writers, against bare INSERTs", many),
        Figure(f"events appended, {database.name}, one writer", APPENDS / median(a for a, _ in one), "events/s"),
    ]


def ratio(name: str, pairs: Sequence[tuple[float, float]], at_most: float | None = None) -> Figure:
    return Figure(name, median(ours for ours, _ in pairs) / median(theirs for _, theirs in pairs), "x", at_most)


def new_run(stores: RunStores, run_id: str) -> Lease:
    request = RunRequest(project_id="bench", plan=PlanRef("bench", "1"), period=run_id, request_id=run_id)
    stores.intake.create(request, run_id=run_id, approval_required=False, decide=lambda _: Accepted())
    claim = stores.leases.acquire(run_id, owner="bench", ttl_s=3600)
    if claim is None:
        raise SystemExit("the run of the benchmark is taken")
    return claim.lease


def append_alone(stores: RunStores, lease: Lease, round_: int) -> float:
    start = perf_counter()
    for number in range(APPENDS):
        event = NewEvent(StepStarted(10, "a step"), MOMENT, step_id=f"{round_}-{number}")
        stores.writer.append(lease.run_id, [event], token=lease.token)
    return perf_counter() - start


def insert_alone(database: Bare, round_: int) -> float:
    data = canonical_json(encode(StepStarted(10, "a step")))
    with database.inserting() as insert:
        start = perf_counter()
        for number in range(APPENDS):
            insert((f"run-{round_}", number, data, MOMENT.isoformat()))
        return perf_counter() - start


def append_process(database: Bare, lease: Lease, round_: int, barrier: Barrier) -> None:
    with open_run_stores(database.url, PATIENT) as stores:
        stores.catalog.run(lease.run_id)
        barrier.wait()
        append_alone(stores, lease, round_ + 100)
        barrier.wait()


def insert_process(database: Bare, _lease: Lease, round_: int, barrier: Barrier) -> None:
    barrier.wait()
    insert_alone(database, round_)
    barrier.wait()


def in_processes(target: Callable[..., None], database: Bare, leases: Sequence[Lease], round_: int) -> float:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["clew.store", "psycopg"])
    barrier = context.Barrier(len(leases) + 1)
    processes = [context.Process(target=target, args=(database, lease, round_, barrier)) for lease in leases]
    for process in processes:
        process.start()
    barrier.wait()
    start = perf_counter()
    barrier.wait()
    taken = perf_counter() - start
    for process in processes:
        process.join()
    return taken


def projecting() -> list[Figure]:
    """A history of 100,000 events, against parsing the JSON that it is stored as."""
    events = history(PROJECTED)
    texts = [canonical_json(event.raw.event_data) for event in events]
    pairs = []
    for _ in range(ROUNDS):
        start = perf_counter()
        snapshot = project_run("bench", events)
        projected = perf_counter() - start
        if snapshot.last_event_seq != PROJECTED:
            raise SystemExit("the projection stopped half-way")
        start = perf_counter()
        for text in texts:
            json.loads(text)
        pairs.append((projected, perf_counter() - start))
    return [
        ratio(f"project {PROJECTED:,} events, against parsing their JSON", pairs),
        Figure(f"project {PROJECTED:,} events", median(ours for ours, _ in pairs), "s"),
    ]


def history(count: int) -> list[StoredEvent]:
    events = []
    for number in range(count):
        step = str(number // 2)
        body = StepCompleted((), {"rows_updated": number}) if number % 2 else StepStarted(number // 2, "a step")
        raw = RawEvent(
            run_id="bench",
            run_seq=number + 1,
            event_id=f"{number}",
            step_id=step,
            logical_attempt_id=1,
            engine_attempt_id=1,
            event_type=body.NAME,
            event_version=body.VERSION,
            event_data=encode(body),
            idempotency_key=idempotency_key("bench", step, 1, body.NAME, "1"),
            emitted_at=MOMENT,
            persisted_at=MOMENT,
            adapter_version="bench",
        )
        events.append(raw.read())
    return events


def listing(url: str) -> list[Figure]:
    """The newest 50 of 10,000 runs, as `clew runs` asks for them, against the bare SELECT."""
    with open_run_stores(url) as stores:
        for number in range(LISTED):
            request = RunRequest(
                project_id=f"project-{number % 20}",
                plan=PlanRef("bench", "1"),
                period=f"2026-{number % 12 + 1:02}",
                request_id=str(number),
            )
            stores.intake.create(request, run_id=f"run-{number}", approval_required=False, decide=lambda _: Accepted())
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        pairs, filtered = [], []
        for _ in range(15):
            start = perf_counter()
            stores.catalog.runs(RunFilter(), limit=50)
            ours = perf_counter() - start
            start = perf_counter()
            connection.execute("SELECT * FROM runs ORDER BY created_at DESC, run_id DESC LIMIT 50").fetchall()
            pairs.append((ours, perf_counter() - start))
            start = perf_counter()
            stores.catalog.runs(RunFilter(project_id="project-7", status=RunStatus.PENDING), limit=50)
            filtered.append(perf_counter() - start)
        connection.close()
    return [
        ratio(f"list 50 of {LISTED:,} runs, against a bare SELECT", pairs),
        Figure(f"list 50 of {LISTED:,} runs", median(ours for ours, _ in pairs) * 1e3, "ms", at_most=100),
        Figure(f"list 50 of {LISTED:,} runs of one project and status", median(filtered) * 1e3, "ms", at_most=100),
    ]


def work(url: str, barrier: Barrier) -> None:
    """A worker process that drives what it gets until nothing is left."""
    import threading

    from tests.runs.runs_workers import FakeExecutors, Site

    with open_run_stores(url, PATIENT) as stores:
        site = Site(stores, FakeExecutors(1), lease=LeasePolicy())
        stop = threading.Event()
        worker = threading.Thread(target=site.worker(name=str(os.getpid()), capacity=4).run, args=(stop,))
        barrier.wait()
        worker.start()
        while stores.catalog.load("dev").queued or stores.catalog.load("dev").running:
            stop.wait(0.1)
        barrier.wait()
        stop.set()
        worker.join()


def queueing(url: str) -> list[Figure]:
    """Runs of one trivial step: submitted first, then driven by four workers."""
    from tests.runs.runs_workers import FakeExecutors, Site

    with open_run_stores(url, PATIENT) as stores:
        site = Site(stores, FakeExecutors())
        start = perf_counter()
        for number in range(RUNS):
            site.submit(str(number))
        submitted = perf_counter() - start
        context = multiprocessing.get_context("forkserver")
        barrier = context.Barrier(WORKERS + 1)
        processes = [context.Process(target=work, args=(url, barrier)) for _ in range(WORKERS)]
        for process in processes:
            process.start()
        barrier.wait()
        start = perf_counter()
        barrier.wait()
        driven = perf_counter() - start
        for process in processes:
            process.join()
        doubled = sum(
            [event.event_type for event in stores.reader.events(run.run_id)].count("RunStarted") != 1
            for run in stores.catalog.runs(RunFilter(status=RunStatus.COMPLETED), limit=RUNS + 1)
        )
        left = RUNS - len(stores.catalog.runs(RunFilter(status=RunStatus.COMPLETED), limit=RUNS + 1))
    bare = median(insert_alone(Bare(url, "SQLite"), round_) for round_ in range(ROUNDS)) / APPENDS
    return [
        Figure(f"submit {RUNS:,} runs", RUNS / submitted, "runs/s"),
        ratio(
            f"a run in a queue of {RUNS:,}, {WORKERS} workers, against bare INSERTs of its {EVENTS_OF_A_RUN} events",
            [(driven / RUNS, EVENTS_OF_A_RUN * bare)],
        ),
        Figure(f"drive {RUNS:,} runs of one trivial step, {WORKERS} workers", RUNS / driven, "runs/s"),
        Figure("runs started twice", float(doubled), "runs", at_most=0),
        Figure("runs left behind", float(left), "runs", at_most=0),
    ]


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.name:<76} {figure.value:>12,.2f} {figure.unit}")
