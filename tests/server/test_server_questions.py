"""Questions over HTTP: how many at once, when they are stopped, and that nothing else waits for them."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from clew.cli.main import run as command
from clew.server.protection.question_pool import QuestionPool
from tests.server.server_fixtures import OpenSite, Served
from tests.server.server_processes import listening_in_a_thread, served_by_a_process

BOMB = "journal_id"
for _ in range(9):
    BOMB = f'REPLACE({BOMB}, "J", "JJJJJJJJJJ")'
BOMB = f"LEN({BOMB}) > 5"
"""Short, and a gigabyte of text where nothing bounds it."""

_LONG_TEXT = 'CONCAT(journal_id, "aaaaaaaaa")'
for _ in range(5):
    _LONG_TEXT = f'REPLACE({_LONG_TEXT}, "a", "aaaaaaaaaa")'
SLOW = " OR ".join(f"LEN({_LONG_TEXT}) = {number}" for number in range(35))
"""Minutes of work on the rows of the sample, and no row matches."""


@dataclass(frozen=True)
class Site:
    """A server that listens, and tokens for it."""

    served: Served
    address: str

    @property
    def pool(self) -> QuestionPool:
        found: QuestionPool = self.served.app.state.questions
        return found

    def ask(self, token: str, path: str) -> socket.socket:
        """Send a request and do not wait for the answer."""
        place = urlsplit(self.address)
        assert place.hostname is not None
        connection = socket.create_connection((place.hostname, place.port or 80), timeout=120)
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        return connection

    def search(self, token: str, where: str) -> socket.socket:
        return self.ask(token, self.rows(where))

    def rows(self, where: str) -> str:
        return f"/api/v1/runs/{self.served.run_id}/trace/rows?where={quote(where)}"

    def get(self, path: str, token: str | None = None) -> "Response":
        place = urlsplit(self.address)
        with closing(http.client.HTTPConnection(place.netloc, timeout=120)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            return read(connection.getresponse())


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        found: str = json.loads(self.body)["error"]["code"]
        return found

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def read(response: http.client.HTTPResponse) -> Response:
    return Response(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def answer_on(connection: socket.socket) -> Response:
    with connection:
        response = http.client.HTTPResponse(connection)
        response.begin()
        return read(response)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread; it fails the test where it does not."""
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


@contextmanager
def site(served: Served) -> Iterator[Site]:
    with listening_in_a_thread(served) as address:
        yield Site(served, address)


def limits(**given: int) -> str:
    return "    questions: {" + ", ".join(f"{name}: {value}" for name, value in given.items()) + "}\n"


def test_a_text_bomb_is_refused_with_its_reason(served: Served) -> None:
    answer = served.client("operator").get(f"/api/v1/runs/{served.run_id}/trace/rows", params={"where": BOMB})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "ValueOutOfRange"
    assert "1,000,000 characters" in answer.json()["error"]["message"]


def test_a_question_that_takes_too_long_is_stopped(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(deadline_seconds=1))
    token = served.token("operator")
    with site(served) as here:
        answer = here.get(here.rows(SLOW), token)
        assert (answer.status, answer.code) == (422, "QuestionTooLong")
        assert "1 seconds" in answer.json["error"]["message"]
        assert here.pool.stopped["QuestionTooLong"] == 1
        until(lambda: here.pool.running == 0)
        assert here.get(here.rows("amount_usd > 0"), token).status == 200


@pytest.mark.parametrize("page", ["rows?where=", "why-not?where=", "rows?sort=amount_usd&where="])
def test_pages_have_the_same_limits(serve_with: OpenSite, page: str) -> None:
    served = serve_with(extra=limits(deadline_seconds=1))
    answer = served.browser().get(f"/runs/{served.run_id}/{page}{quote(SLOW)}", headers={"accept": "text/html"})
    assert answer.status_code == 422
    assert "not answered within 1 seconds" in answer.text


def test_a_question_that_needs_too_much_memory_is_refused(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(memory_megabytes=16))
    answer = served.client("operator").get(f"/api/v1/runs/{served.run_id}/trace/rows", params={"where": SLOW})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "QuestionTooLarge"
    assert "16 MB" in answer.json()["error"]["message"]


def test_a_question_ends_when_its_caller_leaves(served: Served) -> None:
    token = served.token("operator")
    with site(served) as here:
        connection = here.search(token, SLOW)
        until(lambda: here.pool.running == 1)
        connection.close()
        until(lambda: here.pool.running == 0)
        until(lambda: here.pool.stopped["CallerGone"] == 1)


def test_a_question_that_waits_is_forgotten_when_its_caller_leaves(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(max_running=1, max_running_per_caller=1))
    token = served.token("operator")
    with site(served) as here:
        running = here.search(token, SLOW)
        until(lambda: here.pool.running == 1)
        waiting = here.search(token, "amount_usd > 0")
        until(lambda: here.pool.waiting == 1)
        waiting.close()
        until(lambda: here.pool.waiting == 0)
        assert here.pool.running == 1
        running.close()
        until(lambda: here.pool.running == 0)


def test_a_caller_has_a_few_places_and_leaves_room_for_others(serve_with: OpenSite) -> None:
    served = serve_with(
        extra=limits(max_running=3, max_running_per_caller=2, max_waiting_per_caller=2, retry_after_seconds=7)
    )
    greedy, modest = served.token("operator"), served.token("operator")
    with site(served) as here:
        held = [here.search(greedy, SLOW) for _ in range(2)]
        until(lambda: here.pool.running == 2)
        held += [here.search(greedy, SLOW) for _ in range(2)]
        until(lambda: here.pool.waiting == 2)
        refused = here.get(here.rows(SLOW), greedy)
        assert (refused.status, refused.code) == (429, "TooManyQuestions")
        assert refused.headers["retry-after"] == "7"
        assert here.get(here.rows("amount_usd > 0"), modest).status == 200
        assert (here.pool.running, here.pool.waiting) == (2, 2)
        for connection in held:
            connection.close()
        until(lambda: here.pool.running == here.pool.waiting == 0)


def test_all_callers_together_are_limited_too(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(max_running=1, max_waiting=1))
    tokens = [served.token("operator") for _ in range(3)]
    with site(served) as here:
        first = here.search(tokens[0], SLOW)
        until(lambda: here.pool.running == 1)
        second = here.search(tokens[1], SLOW)
        until(lambda: here.pool.waiting == 1)
        refused = here.get(here.rows(SLOW), tokens[2])
        assert (refused.status, refused.code) == (503, "QuestionsBusy")
        assert refused.headers["retry-after"] == "5"
        first.close()
        second.close()
        until(lambda: here.pool.running == here.pool.waiting == 0)


def test_a_question_has_its_turn_when_another_ends(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(max_running=1))
    token = served.token("operator")
    with site(served) as here:
        first = here.search(token, SLOW)
        until(lambda: here.pool.running == 1)
        second = here.search(token, "amount_usd > 0")
        until(lambda: here.pool.waiting == 1)
        first.close()
        assert answer_on(second).status == 200


def test_health_and_metrics_answer_while_all_places_are_taken(served: Served) -> None:
    tokens = [served.token("operator") for _ in range(3)]
    with site(served) as here:
        held = [here.search(token, SLOW) for token in tokens for _ in range(20)]
        until(lambda: here.pool.running == 4)
        until(lambda: here.pool.running + here.pool.waiting == 60)
        assert here.get("/api/v1/health").json == {"status": "ok"}
        assert here.get("/api/v1/ready").json == {"status": "ready"}
        shown = here.get("/api/v1/metrics", tokens[0]).body.decode()
        assert 'clew_questions{state="running"} 4.0' in shown
        assert 'clew_questions{state="waiting"} 56.0' in shown
        assert (here.pool.running, here.pool.waiting) == (4, 56)
        for connection in held:
            connection.close()
        until(lambda: here.pool.running == here.pool.waiting == 0)


def test_a_server_that_stops_stops_its_questions(served: Served) -> None:
    token = served.token("operator")
    with site(served) as here:
        running = [here.search(token, SLOW) for _ in range(3)]
        until(lambda: (here.pool.running, here.pool.waiting) == (2, 1))
        pool = here.pool
    assert [answer_on(each).code for each in running] == ["ServerStopping"] * 3
    assert pool.stopped["ServerStopping"] == 3
    assert not any(each.name.startswith("server") for each in threading.enumerate())


def test_the_command_stops_although_questions_are_running(ledger: Path, finished_ledger: tuple[Path, str]) -> None:
    with (
        served_by_a_process(ledger) as started,
        closing(http.client.HTTPConnection(urlsplit(started.url).netloc, timeout=120)) as connection,
        closing(http.client.HTTPConnection(urlsplit(started.url).netloc, timeout=120)) as asked,
    ):
        connection.request("GET", f"/login/link?key={started.key}")
        cookie = {"Cookie": read(connection.getresponse()).headers["set-cookie"].partition(";")[0]}
        path = f"/api/v1/runs/{finished_ledger[1]}/trace/rows?where={quote(SLOW)}"
        asked.request("GET", path, headers=cookie)

        def is_running() -> bool:
            connection.request("GET", "/api/v1/metrics", headers=cookie)
            return b'clew_questions{state="running"} 1.0' in read(connection.getresponse()).body

        until(is_running)
        started.process.terminate()
        assert read(asked.getresponse()).code == "ServerStopping"
        assert started.process.wait(60) == 0


def test_commands_have_the_same_deadline(
    ledger: Path, finished_ledger: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ledger / "clew.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(
        text.replace("    mode: dev\n", "    mode: dev\n" + limits(deadline_seconds=1), 1), encoding="utf-8"
    )
    monkeypatch.chdir(ledger)
    for arguments in (
        ["trace", finished_ledger[1], "--where", SLOW],
        ["explain", finished_ledger[1], "amount_usd", "--where", SLOW],
        ["explain", finished_ledger[1], "--why-not", SLOW],
    ):
        assert command([*arguments, "--json"]) == 1
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["code"], error["hint"] is not None) == ("QuestionTooLong", True), arguments


def test_programs_have_the_same_limits(serve_with: OpenSite) -> None:
    served = serve_with(extra=limits(deadline_seconds=1))
    run = served.workspace.get_run(served.run_id)
    for ask in (
        lambda: run.trace(where=SLOW),
        lambda: run.open_trace().search(SLOW),
        lambda: run.row_where(SLOW),
        lambda: run.why_not(SLOW),
    ):
        with pytest.raises(Exception, match="QuestionTooLong"):
            ask()


@pytest.mark.parametrize(
    "written", ["deadline_seconds: 0", "memory_megabytes: 15", "max_running: none", "max_waiting: -1", "speed: 9"]
)
def test_limits_are_checked(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    settings = ledger / "clew.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(
        text.replace("    mode: dev\n", f"    mode: dev\n    questions: {{{written}}}\n", 1), encoding="utf-8"
    )
    monkeypatch.chdir(ledger)
    assert command(["check", "--json"]) == 1
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    assert found["file"] == "clew.yaml"
    assert found["line"] > 1
