"""`clew serve` over a trace of five million rows: 20 users at once against the reader itself, 100 listeners, memory.

The server is a process of its own, and so are those who ask. Run it alone with `python -m benchmarks server`;
CLEW_BENCH_ROWS sets how many rows, CLEW_BENCH_REQUESTS how many requests the memory is watched over.
"""

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from benchmarks.figure import Figure
from benchmarks.trace_data import RUN, Bench, written

from clew.app.access import create_token
from clew.app.running.plans import keep_plan
from clew.explain.explaining import explain
from clew.runs.access.roles import AccessRole
from clew.runs.artifacts import ArtifactRef
from clew.runs.clock import utc_now
from clew.runs.events.bodies import AlertRaised, EventBody, RunCompleted, RunStarted, StepCompleted, StepStarted
from clew.runs.events.envelope import NewEvent
from clew.runs.limits import QueuePolicy
from clew.runs.plan_ref import PlannedStep, PlanRef
from clew.runs.request import RunRequest
from clew.runs.run_queue import RunQueue
from clew.server.site import Site, open_site

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
REQUESTS = int(os.environ.get("CLEW_BENCH_REQUESTS", "2000"))
USERS, EACH = 20, 25
LISTENERS, EVENTS = 100, 20
LOAD = PlannedStep("load", 0, "Load", "load")

Ask = Callable[[int], object]


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), ROWS)
        root = Path(folder) / "workspace"
        (root / ".clew").mkdir()
        (root / ".clew" / "storage").symlink_to(folder)
        with open_site(root) as site:
            finish(site, bench)
            token = create_token(
                site.state, site.environment, name="bench", role=AccessRole.ADMIN, tenant=None, days=1
            ).text
            begun = begin(site, bench, "listened-to")
            figures = list(started(root))
            with serving(root, token) as server:
                figures += [*questions(bench, server), *listening(site, server, begun), *memory(bench, server)]
        bench.trace.close()
        return figures


def begin(site: Site, bench: Bench, run_id: str) -> str:
    """A run that waits for a worker."""
    plan = bench.trace.plan
    keep_plan(site.environment.storage_root, plan)
    request = RunRequest(
        project_id=plan.name,
        plan=PlanRef(plan.name, plan.digest[:16], plan.digest),
        period="2026-01",
        request_id=run_id,
        project_version="1",
    )
    RunQueue(site.state.stores.intake, lambda _environment: QueuePolicy(), new_id=lambda: run_id).submit(request)
    return run_id


def finish(site: Site, bench: Bench) -> None:
    """A completed run whose trace is what the benchmark has written."""
    begin(site, bench, RUN)
    references = list[ArtifactRef]()
    for index, document in enumerate(json.loads((bench.root / "parts.json").read_text())):
        (bench.root / f"part-{index}.json").write_text(json.dumps(document))
        references.append(ArtifactRef(f"storage:part-{index}.json", "trace-part"))
    claim = site.state.stores.leases.acquire(RUN, owner="bench", ttl_s=60)
    assert claim is not None
    bodies: list[tuple[EventBody, str]] = [
        (RunStarted((LOAD,)), "RUN"),
        (StepStarted(0, "Load"), "load"),
        (StepCompleted(tuple(references)), "load"),
        (RunCompleted(), "RUN"),
    ]
    events = [NewEvent(body, emitted_at=utc_now(), step_id=step) for body, step in bodies]
    site.state.stores.writer.append(RUN, events, token=claim.lease.token)


@dataclass(frozen=True)
class Server:
    host: str
    port: int
    pid: int
    token: str

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def get(self, connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return body


@contextmanager
def serving(root: Path, token: str = "") -> Iterator[Server]:
    command = [sys.executable, "-m", "clew.cli", "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, cwd=root, env=as_installed(root), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
            assert found is not None
            yield Server(found[1], int(found[2]), process.pid, token)
        finally:
            process.terminate()


def as_installed(root: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, as where Clew is installed, whatever is set here."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(root / ".clew" / "compiled")}


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

    threads = [threading.Thread(target=user, args=(number,)) for number in range(USERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def memory(bench: Bench, server: Server) -> Iterator[Figure]:
    """What the process holds after a tenth of the requests, and how much more after all."""
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in range(8, bench.rows, max(1, bench.rows // 997))]
    connection = server.connected()

    def ask(requests: int) -> float:
        for number in range(requests):
            server.get(connection, f"/api/v1/runs/{RUN}/trace/rows/{ids[number % len(ids)]}")
        time.sleep(0.2)
        return resident(server.pid)

    before = ask(REQUESTS // 10)
    after = ask(REQUESTS - REQUESTS // 10)
    yield Figure(f"memory of the server after {REQUESTS // 10:,} requests", before, "MB")
    yield Figure(f"more of it after {REQUESTS:,}", after - before, "MB", at_most=20)


def resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
