"""Who uses a deployment: people ask for runs, send signals and read; and things go wrong."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import httpx

from tests.soak.deployment import TTL_S, Deployment

PERIODS = ("2026-01", "2026-02", "2026-03")
AT_ONCE = 3
"""How many runs are asked for before one of them has ended."""
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
READERS = 2

_WHERE = {"gl-close": 'account_type = "expense"', "group-report": 'cost_center = "C110"'}
_NUMBERS = {
    "gl-close": {"where": 'row_kind = "total" AND account_type = "expense"', "column": "total_usd"},
    "group-report": {
        "where": 'row_kind = "report" AND cost_center = "C110" AND account_type = "expense"',
        "column": "actual_usd",
    },
}


class People:
    """Everybody, each in a thread, until they are told to go home."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        self.deployment = deployment
        self.seed = seed
        self.home = threading.Event()
        self.counts = Counter[str]()
        self.problems: list[str] = []
        self.done_to: dict[str, set[str]] = {}
        """By run, the signals that it accepted."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Everybody comes."""
        work: Mapping[str, Callable[[random.Random, httpx.Client], None]] = {
            "requester": self._request,
            "operator": self._signal,
            **{f"reader-{number}": self._read for number in range(READERS)},
            "gc": self._collect,
            "accidents": self._break,
        }
        for name, each in work.items():
            thread = threading.Thread(target=self._until_home, args=(name, each), name=name)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Everybody goes home, when they have finished what they do."""
        self.home.set()
        for thread in self._threads:
            thread.join()

    def _until_home(self, name: str, work: Callable[[random.Random, httpx.Client], None]) -> None:
        chance = random.Random(f"{self.seed} {name}")
        with self.deployment.client() as client:
            while not self.home.is_set():
                try:
                    work(chance, client)
                except Exception as error:  # noqa: BLE001 - whoever fails here fails the soak, not the thread
                    self.fail(f"{name}: {type(error).__name__}: {error}")
                    self.home.wait(5)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def fail(self, problem: str) -> None:
        with self._lock:
            self.problems.append(problem)

    def runs(self, client: httpx.Client) -> Sequence[dict[str, Any]]:
        """The newest runs."""
        found: list[dict[str, Any]] = client.get("/api/v1/runs", params={"limit": 40}).raise_for_status().json()["runs"]
        return found

    def _request(self, chance: random.Random, client: httpx.Client) -> None:
        if sum(run["status"] not in ENDED for run in self.runs(client)) >= AT_ONCE:
            self.home.wait(1)
            return
        wish: dict[str, Any] = {
            "project": chance.choice(["gl-close", "gl-close", "gl-close", "group-report"]),
            "period": chance.choice(PERIODS),
            "request_id": uuid4().hex,
        }
        if wish["project"] == "gl-close" and chance.random() < 0.4:
            wish["captures"] = [chance.choice(["cleaned", "after_totals"])]
        told = [client.post("/api/v1/runs", json=wish) for _ in range(chance.choice([1, 1, 2]))]
        if len({each.json().get("run_id") for each in told if each.status_code == httpx.codes.ACCEPTED}) > 1:
            self.fail(f"two runs for one request: {[each.text for each in told]}")
        if not self._is_fine(told[0], {202, 429}):
            self.home.wait(5)
        self.count("runs asked for")

    def _signal(self, chance: random.Random, client: httpx.Client) -> None:
        self.home.wait(chance.uniform(1, 8))
        runs = self.runs(client)
        paused = [run for run in runs if run["status"] == "PAUSED"]
        busy = [run for run in runs if run["status"] in {"PENDING", "RUNNING"}]
        failed = [run for run in runs if run["status"] == "FAILED"]
        if paused:
            self._send(client, chance.choice(paused), "RESUME")
        elif busy and chance.random() < 0.5:
            self._send(client, chance.choice(busy), chance.choice(["PAUSE", "PAUSE", "PAUSE", "CANCEL"]))
        elif failed and chance.random() < 0.3:
            self._send(client, chance.choice(failed), "RETRY_RUN")

    def _send(self, client: httpx.Client, run: Mapping[str, Any], signal: str) -> None:
        wish = {"signal": signal, "reason": "soak", "signal_id": uuid4().hex}
        answer = client.post(f"/api/v1/runs/{run['run_id']}/signals", json=wish)
        self.count("signals sent")
        if self._is_fine(answer, {200, 404, 409, 410, 429}) and answer.status_code == httpx.codes.OK:
            self.done_to.setdefault(run["run_id"], set()).add(signal)

    def _read(self, chance: random.Random, client: httpx.Client) -> None:
        self.home.wait(chance.uniform(0.1, 1.0))
        runs = self.runs(client)
        if not runs:
            return
        run = chance.choice(runs)
        at, where = f"/runs/{run['run_id']}", _WHERE[run["project"]]
        question, parameters = chance.choice(
            [
                ("/", {}),
                ("/runs", {}),
                ("/operations", {}),
                ("/captures", {}),
                ("/lineage", {}),
                ("/search", {"q": "JE-00231"}),
                (at, {}),
                (f"{at}/rows", {"where": where}),
                (f"{at}/reconciliation", {}),
                (f"/api/v1{at}", {}),
                (f"/api/v1{at}/events", {}),
                (f"/api/v1{at}/trace", {}),
                (f"/api/v1{at}/trace/rows", {"where": where, "limit": "5"}),
                (f"/api/v1{at}/explain", _NUMBERS[run["project"]]),
                *self._of_captures(client, run["run_id"]),
                ("/api/v1/overview", {}),
                ("/metrics", {}),
            ]
        )
        answer = client.get(question, params=parameters)
        self.count("pages and documents read")
        self._is_fine(answer, {200, 404, 409, 410, 422, 429})

    def _of_captures(self, client: httpx.Client, run_id: str) -> Iterator[tuple[str, dict[str, str]]]:
        """The rows of the captures of a run."""
        answer = client.get("/api/v1/captures", params={"run": run_id})
        if self._is_fine(answer, {200, 404, 410, 429}) and answer.status_code == httpx.codes.OK:
            for capture in answer.json()["captures"]:
                yield f"/api/v1/captures/{capture['capture_id']}/rows", {}

    def _is_fine(self, answer: httpx.Response, statuses: set[int]) -> bool:
        """Whether a server under load may say so. That the store does not answer in time, it may."""
        if answer.status_code in statuses:
            return True
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            self.count("answers that it is not available")
            return False
        self.fail(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:500]}")
        return False

    def _collect(self, chance: random.Random, _client: httpx.Client) -> None:
        self.home.wait(chance.uniform(10, 30))
        code, told = self.deployment.told("gc")
        self.count("collections of garbage")
        if code:
            self.fail(f"clew gc: {told}")

    def _break(self, chance: random.Random, _client: httpx.Client) -> None:
        if self.home.wait(chance.uniform(20, 60)):
            return
        if self.counts["workers killed"] <= self.counts["workers frozen"]:
            self.count("workers killed")
            self.deployment.programs["worker-a"].ended()
        else:
            self.count("workers frozen")
            self.deployment.programs["worker-b"].frozen(1.5 * TTL_S, self.home.wait)
