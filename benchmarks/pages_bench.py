"""Every kind of page of a server over a trace of five million rows, asked by 20 users at once, and what each weighs.

The server is a separate process. Each user has a token of their own, and asks for the same kind of page as all others,
for rows and conditions of their own, without a pause. A page weighs what a browser transfers for it the first time: the
answer as it is compressed, with its style and its scripts. A total is of 5,000 rows. A second trace has totals of
75,000: their first rows are asked for as the page does it, and the next ones as its script does. CLEW_BENCH_ROWS sets
how many rows the first one has.
"""

import gzip
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from urllib.parse import quote, urlencode

from benchmarks.figure import Figure
from benchmarks.server_process import PAGE, Server, serving
from benchmarks.server_runs import LONG, Site, begin, finish, finish_long, open_site, write_long_project
from benchmarks.trace_data import GROUPS, RUN, Bench, written

from clew.api.tokens import create_token
from clew.auth.roles import AccessRole

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
USERS = int(os.environ.get("CLEW_BENCH_USERS", "20"))
EACH = 5
STEPS = 100
LARGE_GROUP = 75_000
LARGE_GROUPS = 20
MOST_WEIGHT_KB = 150
_LINKED = re.compile(r'(?:href|src)="(/static/[^"]+\.(?:css|js|svg)[^"]*)"')
_IMPORTED = re.compile(r'from "\./(\w+\.js)"')


def measure() -> list[Figure]:
    figures = list[Figure]()
    with _served(ROWS) as (bench, users):
        figures += _pages(bench, users)
    with _served(LARGE_GROUP * LARGE_GROUPS, LARGE_GROUPS) as (bench, [user, *_]):
        figures += _large_total(bench, user)
    return figures


@contextmanager
def _served(rows: int, groups: int = GROUPS) -> Iterator[tuple[Bench, list[Server]]]:
    """A server, as each user reaches it, on a finished run of so many rows, one of many steps, and one that waits."""
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder), rows, groups)
        root = Path(folder) / "workspace"
        write_long_project(root, STEPS)
        (root / ".clew").mkdir()
        (root / ".clew" / "storage").symlink_to(folder)
        with open_site(root) as site:
            finish(site, bench)
            finish_long(site)
            begin(site, bench.trace.plan, "waiting")
            tokens = [_token(site, number) for number in range(USERS)]
            with serving(root) as server:
                yield bench, [replace(server, token=token) for token in tokens]
        bench.trace.close()


def _token(site: Site, number: int) -> str:
    return create_token(
        site.state, site.environment, name=f"user {number}", role=AccessRole.ADMIN, tenant=None, days=1
    ).text


def _kinds(bench: Bench) -> Mapping[str, Callable[[int], str]]:
    """Every kind of page, with the address that a user asks for in their turn."""
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in range(8, bench.rows, max(1, bench.rows // 997))]
    totals = [row.row_id for row in bench.trace.search("total IS NOT NULL", limit=50).rows]
    run = f"/runs/{RUN}"

    def row(number: int) -> str:
        return ids[number % len(ids)]

    def total(number: int) -> str:
        return urlencode({"row": totals[number % len(totals)], "column": "total"})

    def where(number: int) -> str:
        return quote(f"account = {number % 500 * 2}")

    return {
        "overview": lambda _n: "/",
        "runs": lambda _n: "/runs",
        "run": lambda _n: run,
        "run of 100 steps": lambda _n: f"/runs/{LONG}",
        "log of a run": lambda _n: f"{run}/log",
        "rows": lambda n: f"{run}/rows?at={10 * (n % 6)}",
        "rows, filtered": lambda n: f"{run}/rows?at=60&where={where(n)}",
        "rows that a step changed": lambda n: f"{run}/rows?at={10 + 10 * (n % 4)}&changed=1",
        "values of a column": lambda n: f"{run}/values?at=60&column=currency&where={where(n)}",
        "row": lambda n: f"{run}/rows/{row(n)}",
        "explanation of a value": lambda n: f"{run}/explain?column=amount&row={row(n)}",
        "explanation of a total of 5,000 rows": lambda n: f"{run}/explain?{total(n)}",
        "graph of a value": lambda n: f"/lineage?run={RUN}&column=amount&row={row(n)}",
        "lineage": lambda _n: "/lineage",
        "projects": lambda _n: "/projects",
        "project": lambda _n: "/projects/p",
        "datasets": lambda _n: "/datasets",
        "dataset": lambda _n: "/datasets/lines",
        "captures": lambda _n: "/captures",
        "operations": lambda _n: "/operations",
        "audit": lambda _n: "/audit",
        "search for a value": lambda n: f"/search?q=JE-{n * 977 % bench.rows:08}",
        "what-if, asked for": lambda _n: f"{run}/what-if",
        "compare, asked for": lambda _n: f"{run}/compare",
    }


MAY_TAKE_LONGER: Mapping[str, str] = {
    "explanation of a total of 5,000 rows": "computes it again from all its rows: some 0.25 s of a core for each user",
    "rows, filtered": "looks for its condition in five million rows, and counts all that match",
    "values of a column": "counts the values of a column of five million rows",
    "search for a value": "looks through the columns of every row of the newest results",
}
"""Kinds of pages that may take longer than a second for so many users at once, and what each of them does."""


def _pages(bench: Bench, users: Sequence[Server]) -> Iterator[Figure]:
    weights = dict[str, float]()
    for name, path in _kinds(bench).items():
        taken, why = _at_once(users, path), MAY_TAKE_LONGER.get(name)
        about = f"{name} ({why})" if why else name
        yield Figure(f"{about}, {USERS} users at once, p50", median(taken) * 1e3, "ms")
        p95 = quantiles(taken, n=20)[-1] * 1e3
        yield Figure(f"{about}, {USERS} users at once, p95", p95, "ms", at_most=None if why else 1000)
        weights[name] = _weight(users[0], path(1))
    for name, weight in sorted(weights.items(), key=lambda each: -each[1]):
        yield Figure(f"{name}: its weight, compressed, with style and scripts", weight, "KB", at_most=MOST_WEIGHT_KB)


def _at_once(users: Sequence[Server], path: Callable[[int], str]) -> list[float]:
    """Seconds of each page, asked for by so many users who do nothing else."""
    taken, lock = list[float](), threading.Lock()
    users[0].get(users[0].connected(), path(0), PAGE)

    def user(number: int) -> None:
        server = users[number]
        connection = server.connected()
        for turn in range(EACH):
            start = perf_counter()
            server.get(connection, path(number + USERS * turn), PAGE)
            with lock:
                taken.append(perf_counter() - start)

    threads = [threading.Thread(target=user, args=(number,)) for number in range(USERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def _weight(server: Server, path: str) -> float:
    """Kilobytes that a browser transfers for a page which it sees for the first time."""
    connection = server.connected()
    page, size = _compressed(connection, server, path)
    waiting, seen = list(dict.fromkeys(_LINKED.findall(page))), set[str]()
    while waiting:
        file = waiting.pop()
        name = file.partition("?")[0]
        if name in seen:
            continue
        seen.add(name)
        text, bytes_ = _compressed(connection, server, file)
        size += bytes_
        waiting += [f"/static/{each}" for each in _IMPORTED.findall(text)]
    return size / 1e3


def _compressed(connection: HTTPConnection, server: Server, path: str) -> tuple[str, int]:
    headers = {"Authorization": f"Bearer {server.token}", "Accept": PAGE, "Accept-Encoding": "gzip"}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    text = gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
    return text.decode(), len(body)


def _large_total(bench: Bench, server: Server) -> Iterator[Figure]:
    """The first answer to why a total of 75,000 rows is what it is, and the rows that follow."""
    asked = urlencode({"row": bench.trace.search("total IS NOT NULL", limit=1).rows[0].row_id, "column": "total"})
    connection = server.connected()
    server.get(connection, f"/runs/{RUN}", PAGE)
    start = perf_counter()
    page = server.get(connection, f"/runs/{RUN}/explain?{asked}", PAGE).decode()
    yield Figure("why a total of 75,000 rows is what it is: first answer", perf_counter() - start, "s", at_most=1)
    assert "75,000 rows" in page
    pieces = list[float]()
    for first in range(5, 485, 80):
        start = perf_counter()
        server.get(connection, f"/runs/{RUN}/explain/rows?{asked}&skip={first}&top={first + 80}", PAGE)
        pieces.append(perf_counter() - start)
    yield Figure("each further 80 of its rows, p50", median(pieces), "s")
    yield Figure("its 485 largest rows, piece by piece", sum(pieces), "s")
