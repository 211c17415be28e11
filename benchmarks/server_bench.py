"""`clew serve` over a trace of five million rows: 20 users at once against the reader itself, 100 listeners, memory.

The server is a separate process, and so are its clients. Run it alone with `python -m benchmarks server`;
CLEW_BENCH_ROWS sets how many rows, CLEW_BENCH_REQUESTS how many requests the memory is watched over.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from benchmarks.figure import Figure
from benchmarks.server_process import DOCUMENT, PAGE, Server, as_installed, serving
from benchmarks.server_runs import LONG, Site, begin, finish, finish_long, open_site, write_long_project
from benchmarks.trace_data import RUN, Bench, written

from clew.api.run_view import RunReader
from clew.api.tokens import create_token
from clew.auth.roles import AccessRole
from clew.events.bodies import AlertRaised
from clew.events.envelope import NewEvent
from clew.explain.explaining import explain
from clew.runs.clock import utc_now

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
REQUESTS = int(os.environ.get("CLEW_BENCH_REQUESTS", "10000"))
USERS, EACH = 20, 25
LISTENERS, EVENTS = 100, 20
STEPS, LOOKS = 500, 20
WATCHERS, PATIENCE_S = 4, 400
"""Who asks while the memory is watched, and for how long at most."""

Ask = Callable[[int], object]


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), ROWS)
        root = Path(folder) / "workspace"
        write_long_project(root, STEPS)
        (root / ".clew").mkdir()
        (root / ".clew" / "storage").symlink_to(folder)
        with open_site(root) as site:
            finish(site, bench)
            finish_long(site)
            token = create_token(
                site.state, site.environment, name="bench", role=AccessRole.ADMIN, tenant=None, days=1
            ).text
            begun = begin(site, bench.trace.plan, "listened-to")
            figures = list(started(root))
            with serving(root, token) as server:
                figures += [*questions(bench, server), *long_pages(site, server)]
                figures += [*listening(site, server, begun), *memory(bench, server)]
        bench.trace.close()
        return figures


def started(root: Path) -> Iterator[Figure]:
    """From the start of the process to the first page, and what Python needs for itself and FastAPI.

    The first start compiles what it loads, and does not count.
    """
    taken = list[float]()
    for _ in range(4):
        start = perf_counter()
        with serving(root) as server:
            connection = server.connected()
            connection.request("GET", "/login", headers={"Accept": "text/html"})
            assert connection.getresponse().status == 200
            taken.append(perf_counter() - start)
    del taken[0]
    start = perf_counter()
    libraries = "import fastapi, uvicorn, sqlalchemy, jinja2"
    subprocess.run([sys.executable, "-c", libraries], env=as_installed(root), check=True)
    bare = perf_counter() - start
    yield Figure("start of `clew serve` to the first page", median(taken), "s", at_most=3)
    yield Figure("the same against importing the libraries alone", median(taken) / bare, "times")


def questions(bench: Bench, server: Server) -> Iterator[Figure]:
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in range(8, bench.rows, max(1, bench.rows // 997))]
    total = bench.trace.search("total IS NOT NULL AND account = 17").rows[0].row_id

    def history(number: int) -> object:
        return bench.trace.history(ids[number % len(ids)])

    def explained(number: int) -> object:
        return explain(bench.trace, ids[number % len(ids)], "amount")

    asked: dict[str, tuple[Ask, Callable[[int], str]]] = {
        "row inspector": (history, lambda number: f"/api/v1/runs/{RUN}/trace/rows/{ids[number % len(ids)]}"),
        "explain": (
            explained,
            lambda number: f"/api/v1/runs/{RUN}/explain?column=amount&row={ids[number % len(ids)]}",
        ),
    }
    for name, (direct, path) in asked.items():
        alone = at_once(lambda direct=direct: direct)  # type: ignore[misc]

        def over_http(path: Callable[[int], str] = path) -> Ask:
            connection = server.connected()
            return lambda number: server.get(connection, path(number))

        served = at_once(over_http)
        yield Figure(f"{name}, {USERS} users at once, p50", median(served) * 1e3, "ms")
        yield Figure(f"{name}, {USERS} users at once, p95", p95(served) * 1e3, "ms")
        yield Figure(
            f"{name}: p50 against {USERS} threads that call the reader", median(served) / median(alone), "times"
        )
        yield Figure(f"{name}: p95 against {USERS} threads that call the reader", p95(served) / p95(alone), "times")
    connection = server.connected()
    start = perf_counter()
    server.get(connection, f"/api/v1/runs/{RUN}/explain?column=total&row={total}")
    yield Figure(f"why a total of {bench.rows // 1000:,} rows is what it is", (perf_counter() - start) * 1e3, "ms")


def at_once(make: Callable[[], Ask]) -> list[float]:
    """Seconds of each question, asked by so many users who do nothing else."""
    taken, lock = list[float](), threading.Lock()

    def user(number: int) -> None:
        ask = make()
        ask(number)
        for turn in range(EACH):
            start = perf_counter()
            ask(number + USERS * turn)
            with lock:
                taken.append(perf_counter() - start)

    _together([threading.Thread(target=user, args=(number,)) for number in range(USERS)])
    return taken


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]


def listening(site: Site, server: Server, run_id: str) -> Iterator[Figure]:
    """From the moment that an event is stored to the moment that a listener has it."""
    delays = asyncio.run(_listen(site, server, run_id))
    assert len(delays) == LISTENERS * EVENTS
    yield Figure(f"{LISTENERS} listeners on one run, event to listener, p50", median(delays) * 1e3, "ms")
    yield Figure(f"{LISTENERS} listeners on one run, event to listener, p95", p95(delays) * 1e3, "ms", at_most=1000)


async def _listen(site: Site, server: Server, run_id: str) -> list[float]:
    stored: dict[int, float] = {}
    delays = list[float]()
    first = site.state.stores.catalog.run(run_id).last_seq
    ready = asyncio.Semaphore(0)

    async def listener() -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        head = (
            f"GET /api/v1/runs/{run_id}/events/stream?after={first - 1} HTTP/1.1\r\nHost: {server.host}\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n"
        )
        writer.write(head.encode())
        seen = first - 1
        while seen < first + EVENTS:
            line = await reader.readline()
            assert line, "the stream stopped"
            if line.startswith(b"id: "):
                seen = int(line[4:])
                if seen == first:
                    ready.release()
                else:
                    delays.append(perf_counter() - stored[seen])
        writer.close()

    tasks = [asyncio.create_task(listener()) for _ in range(LISTENERS)]
    for _ in tasks:
        await ready.acquire()
    for number in range(EVENTS):
        body = AlertRaised("BENCH", "P4", f"number {number}")
        event = NewEvent(body, emitted_at=utc_now(), step_id=f"BENCH:{number}")
        [kept] = await asyncio.to_thread(site.state.stores.writer.append, run_id, [event])
        stored[kept.run_seq] = perf_counter()
        await asyncio.sleep(0.2)
    await asyncio.gather(*tasks)
    return delays


def long_pages(site: Site, server: Server) -> Iterator[Figure]:
    """The page of a run of many steps, its document, and the page of its project with the plan as a picture."""
    reader, connection = RunReader(site.state, site.environment), server.connected()
    alone = _typical(lambda: reader.view(LONG).to_json())
    page = _typical(lambda: server.get(connection, f"/runs/{LONG}", PAGE))
    document = _typical(lambda: server.get(connection, f"/api/v1/runs/{LONG}"))
    project = _typical(lambda: server.get(connection, f"/projects/{LONG}", PAGE))
    size = len(server.get(connection, f"/runs/{LONG}", PAGE))
    yield Figure(f"page of a run of {STEPS} steps, p50", page * 1e3, "ms")
    yield Figure("its size", size / 1e3, "KB")
    yield Figure("the page against reading the run directly", page / alone, "times")
    yield Figure("its document against reading the run directly", document / alone, "times")
    yield Figure(f"page of a project of {STEPS} steps, p50", project * 1e3, "ms")


def _typical(ask: Callable[[], object]) -> float:
    """The median of the seconds that something takes, asked by one who does nothing else."""
    ask()
    taken = list[float]()
    for _ in range(LOOKS):
        start = perf_counter()
        ask()
        taken.append(perf_counter() - start)
    return median(taken)


def memory(bench: Bench, server: Server) -> Iterator[Figure]:
    """What the process holds after a tenth of the requests, and how much more after all."""
    asked = _what_people_ask(bench)
    first = _ask_all(server, asked, 0, REQUESTS // 10, PATIENCE_S / 4)
    before = server.resident()
    yield Figure(f"memory of the server after {first:,} requests of all kinds", before, "MB")
    done = _ask_all(server, asked, first, REQUESTS, PATIENCE_S)
    yield Figure(f"more of it after {done:,}", server.resident() - before, "MB", at_most=20)


def _what_people_ask(bench: Bench) -> Callable[[int], tuple[str, str]]:
    """Pages and documents in turn, most of them as often as people look at them: rows and their values among others."""
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in range(8, bench.rows, max(1, bench.rows // 997))]
    turns: list[tuple[str, str]] = [
        ("/api/v1/runs/{run}/trace/rows/{row}", DOCUMENT),
        ("/api/v1/runs/{run}/events?limit=100", DOCUMENT),
        ("/runs/{run}", PAGE),
        ("/api/v1/me", DOCUMENT),
        ("/runs/{run}/rows/{row}", PAGE),
        ("/api/v1/runs/{run}/snapshot", DOCUMENT),
        ("/runs", PAGE),
        ("/api/v1/runs/{run}", DOCUMENT),
        ("/api/v1/runs/{run}/explain?column=amount&row={row}", DOCUMENT),
        ("/api/v1/runs", DOCUMENT),
        ("/projects/p", PAGE),
        ("/api/v1/runs/{run}/events?limit=100", DOCUMENT),
        ("/operations", PAGE),
        ("/api/v1/runs/{run}/snapshot", DOCUMENT),
        ("/static/clew.css", DOCUMENT),
        ("/api/v1/metrics", DOCUMENT),
    ]

    def question(number: int) -> tuple[str, str]:
        path, accept = turns[number % len(turns)]
        return path.format(run=RUN, row=ids[number % len(ids)]), accept

    return question


def _ask_all(
    server: Server, question: Callable[[int], tuple[str, str]], first: int, last: int, patience_s: float
) -> int:
    """Ask some of the questions, several at a time; how many were asked by then, which is fewer on a slow machine."""
    numbers, lock, end = iter(range(first, last)), threading.Lock(), perf_counter() + patience_s
    asked, errors = [first], list[Exception]()

    def watcher() -> None:
        connection = server.connected()
        while perf_counter() < end and not errors:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                server.get(connection, *question(number))
            except Exception as error:  # noqa: BLE001 - raised again where the benchmark waits
                errors.append(error)
            with lock:
                asked[0] += 1

    _together([threading.Thread(target=watcher) for _ in range(WATCHERS)])
    if errors:
        raise errors[0]
    return asked[0]


def _together(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
