"""Events over HTTP: polled, streamed, resumed, and what happens where one is missing."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Thread
from typing import Any, cast

import httpx
import pytest

from clew.api.state import State
from clew.events.envelope import RawEvent, StoredEvent
from clew.runs.stores import EventReader, RecentSignals, RunReading, RunStores
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import Served
from tests.server.server_processes import listening_in_a_thread

QUICK = ServerSettings(event_poll_s=0.02, keep_alive_s=0.2)
WISH = {"project": "group-report", "period": "2026-01"}


@dataclass
class ReaderWithAHole:
    """A store whose replica has not received some events yet."""

    reader: EventReader
    missing: set[int] = field(default_factory=set)

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        found = self.reader.events(run_id, after=after, limit=limit)
        return tuple(event for event in found if event.run_seq not in self.missing)

    def raw_events(self, run_id: str) -> Iterator[RawEvent]:
        return self.reader.raw_events(run_id)

    def since_last_continuation(self, run_id: str) -> tuple[StoredEvent, ...]:
        return self.reader.since_last_continuation(run_id)

    def by_key(self, run_id: str, keys: Any) -> tuple[StoredEvent, ...]:
        return self.reader.by_key(run_id, keys)

    def now(self) -> datetime:
        return self.reader.now()

    def recent_signals(self, run_id: str, sender: str, *, seconds: float) -> RecentSignals:
        return self.reader.recent_signals(run_id, sender, seconds=seconds)


@dataclass(frozen=True)
class Holed:
    """A server whose store misses events; its saved snapshots are gone, too."""

    served: Served
    reader: ReaderWithAHole


class HoledState:
    """A state store with other histories and snapshots than it has."""

    def __init__(self, state: State, stores: RunStores) -> None:
        self._state, self.stores = state, stores
        self.reading = RunReading(stores.reader, stores.catalog, stores.snapshots)

    def __getattr__(self, name: str) -> object:
        return getattr(self._state, name)


@pytest.fixture
def holed(served: Served) -> Holed:
    keeper = served.workspace._access._keeper
    assert keeper.kept is not None
    reader = ReaderWithAHole(served.state.stores.reader)
    stores = replace(served.state.stores, reader=reader, snapshots=_NoSnapshots())
    keeper.kept = replace(keeper.kept, state=cast("State", HoledState(keeper.kept.state, stores)))
    return Holed(replace(served, app=create_app(served.workspace, QUICK)), reader)


class _NoSnapshots:
    def load(self, run_id: str) -> None:
        return None

    def save(self, snapshot: object) -> None:
        pass

    def behind(self, limit: int, *, after: str = "") -> tuple[str, ...]:
        return ()


def _last(served: Served) -> int:
    last: int = served.client("viewer").get(f"/api/v1/runs/{served.run_id}/events").json()["last_seq"]
    return last


def test_events_are_polled_behind_the_last_one_seen(on_each_database: Served) -> None:
    client, path = on_each_database.client("viewer"), f"/api/v1/runs/{on_each_database.run_id}/events"
    seen, seqs = 0, list[int]()
    while True:
        page = client.get(path, params={"after": seen, "limit": 4}).json()
        assert (page["stale"], page["gap"]) == (False, None)
        if not page["events"]:
            break
        seqs += [event["run_seq"] for event in page["events"]]
        seen = seqs[-1]
    assert seqs == list(range(1, page["last_seq"] + 1))
    assert page["status"] == "COMPLETED"


def test_a_gap_makes_a_poller_stale_until_it_closes(holed: Holed) -> None:
    served, missing = holed.served, holed.reader.missing
    client, path = served.client("viewer"), f"/api/v1/runs/{served.run_id}"
    missing.update({10, 11})
    page = client.get(f"{path}/events", params={"after": 5}).json()
    assert [event["run_seq"] for event in page["events"]] == [6, 7, 8, 9]
    assert (page["stale"], page["gap"]) == (True, {"expected_seq": 10, "found_seq": 12})
    snapshot = client.get(f"{path}/snapshot").json()
    assert (snapshot["stale"], snapshot["gap"], snapshot["last_event_seq"]) == (True, page["gap"], 9)
    missing.clear()
    page = client.get(f"{path}/events", params={"after": 9}).json()
    assert (page["stale"], page["events"][0]["run_seq"]) == (False, 10)
    snapshot = client.get(f"{path}/snapshot").json()
    assert (snapshot["stale"], snapshot["status"]) == (False, "COMPLETED")


def test_the_page_of_a_run_says_which_event_is_missing(holed: Holed) -> None:
    served, missing = holed.served, holed.reader.missing
    client, path = served.client("viewer"), f"/runs/{served.run_id}/fragment"
    missing.update({10, 11})
    stale = client.get(path, headers={"Accept": "text/html"}).text
    assert "STALE: event 10 is missing" in stale
    assert 'id="stale">' in stale
    missing.clear()
    assert 'id="stale" hidden>' in client.get(path, headers={"Accept": "text/html"}).text


def test_events_missing_at_the_end_are_a_gap_too(holed: Holed) -> None:
    served, last = holed.served, _last(holed.served)
    holed.reader.missing.add(last)
    page = served.client("viewer").get(f"/api/v1/runs/{served.run_id}/events", params={"after": last - 1}).json()
    assert (page["events"], page["stale"]) == ([], True)
    assert page["gap"] == {"expected_seq": last, "found_seq": last}


Told = tuple[str, str | None, Any]
"""The name, the id and the data of a server-sent event."""


def _told(lines: Iterator[str]) -> Iterator[Told]:
    name, id_, data = "", None, ""
    for line in lines:
        word, _, value = line.partition(": ")
        if word == "event":
            name = value
        elif word == "id":
            id_ = value
        elif word == "data":
            data = value
        elif not line and name:
            yield name, id_, json.loads(data)
            name, id_ = "", None


@contextmanager
def _streaming(url: str, served: Served, run_id: str, **headers: str) -> Iterator[Iterator[Told]]:
    signed = {"Authorization": f"Bearer {served.token('viewer')}", **headers}
    with (
        httpx.Client(base_url=url, headers=signed, timeout=60) as client,
        client.stream("GET", f"/api/v1/runs/{run_id}/events/stream") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _told(answer.iter_lines())


def _seqs(told: Sequence[Told]) -> list[int]:
    return [data["run_seq"] for name, _, data in told if name == "run-event"]


def test_a_stream_tells_every_event_and_then_the_end(served: Served) -> None:
    with listening_in_a_thread(served, QUICK) as url, _streaming(url, served, served.run_id) as stream:
        told = list(stream)
    last = _last(served)
    assert _seqs(told) == list(range(1, last + 1))
    assert [id_ for name, id_, _ in told if name == "run-event"] == [str(seq) for seq in range(1, last + 1)]
    assert told[-1][0::2] == ("end", {"status": "COMPLETED", "last_seq": last})


def test_a_stream_goes_on_behind_the_last_event_that_the_client_has(served: Served) -> None:
    last = _last(served)
    with listening_in_a_thread(served, QUICK) as url:
        with _streaming(url, served, served.run_id, **{"Last-Event-ID": "7"}) as stream:
            assert _seqs(list(stream)) == list(range(8, last + 1))
        signed = {"Authorization": f"Bearer {served.token('viewer')}", "Last-Event-ID": str(last)}
        over = httpx.get(f"{url}/api/v1/runs/{served.run_id}/events/stream", headers=signed, timeout=60)
        assert over.status_code == 204


def test_listeners_see_a_run_while_it_goes_on(served: Served) -> None:
    run_id = served.client("operator").post("/api/v1/runs", json=WISH).json()["run_id"]
    told: dict[int, list[Told]] = {}

    def listen(number: int, url: str) -> None:
        with _streaming(url, served, run_id) as stream:
            told[number] = list(stream)

    with listening_in_a_thread(served, QUICK) as url:
        threads = [Thread(target=listen, args=(number, url)) for number in range(3)]
        for thread in threads:
            thread.start()
        with _streaming(url, served, run_id) as stream:
            assert next(stream)[2]["event_type"] == "RunQueued"
            served.finish(run_id)
            assert "end" in [name for name, _, _ in stream]
        for thread in threads:
            thread.join()
    last = served.state.stores.catalog.run(run_id).last_seq
    assert [_seqs(told[number]) for number in range(3)] == [list(range(1, last + 1))] * 3


def test_a_stream_says_that_it_is_stale_and_when_it_goes_on(holed: Holed) -> None:
    served, missing = holed.served, holed.reader.missing
    missing.update({10})
    with listening_in_a_thread(served, QUICK) as url, _streaming(url, served, served.run_id) as stream:
        before = [next(stream) for _ in range(9)]
        assert _seqs(before) == list(range(1, 10))
        assert next(stream)[0::2] == ("stale", {"expected_seq": 10, "found_seq": 11})
        missing.clear()
        assert next(stream)[0::2] == ("resumed", {"expected_seq": 10, "found_seq": 11})
        assert next(stream)[1] == "10"
        assert [name for name, _, _ in stream][-1] == "end"


def test_a_stream_ends_when_its_token_is_revoked(served: Served) -> None:
    run_id = served.client("operator").post("/api/v1/runs", json=WISH).json()["run_id"]
    with listening_in_a_thread(served, QUICK) as url, _streaming(url, served, run_id) as stream:
        assert next(stream)[0] == "run-event"
        for token in served.state.tokens.tokens():
            served.state.tokens.revoke(token.token_id, token.created_at)
        assert [name for name, _, _ in stream if name == "end"] == []


def test_a_client_that_leaves_is_not_waited_for(served: Served) -> None:
    run_id = served.client("operator").post("/api/v1/runs", json=WISH).json()["run_id"]
    with listening_in_a_thread(served, QUICK) as url:
        with _streaming(url, served, run_id) as stream:
            next(stream)
            assert served.app.state.streams.listeners == 1
        while served.app.state.streams.listeners:
            httpx.get(f"{url}/api/v1/health", timeout=60)


FAR = str(2**62)


@pytest.mark.parametrize("header", [FAR, "9" * 5000, "-1"])
def test_a_position_beyond_the_last_event_is_the_last_event(served: Served, header: str) -> None:
    served = replace(served, app=create_app(served.workspace, QUICK))
    token, last = served.token("viewer"), served.workspace.find_run(served.run_id).record.last_seq
    path = f"/api/v1/runs/{served.run_id}/events/stream"
    with (
        listening_in_a_thread(served, QUICK) as url,
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
    ):
        told = list(_told(iter(client.get(path, params={"after": FAR}).text.splitlines())))
        assert told == [("end", None, {"status": "COMPLETED", "last_seq": last})]
        again = client.get(path, headers={"Last-Event-ID": header})
        if header == FAR:
            assert again.status_code == 204
        else:
            assert _seqs(list(_told(iter(again.text.splitlines()))))[-1:] in ([last], [])


def test_a_listener_that_claims_to_be_far_ahead_receives_what_happens_next(served: Served) -> None:
    served = replace(served, app=create_app(served.workspace, QUICK))
    run_id = served.starter.submit("group-report", "2026-01").run_id
    known = served.workspace.find_run(run_id).record.last_seq
    with listening_in_a_thread(served, QUICK) as url, _streaming(url, served, run_id, **{"Last-Event-ID": FAR}) as told:
        served.finish(run_id)
        received = list(told)
    last = served.workspace.find_run(run_id).record.last_seq
    assert _seqs(received) == list(range(known + 1, last + 1))


def test_a_caller_holds_a_few_streams_and_can_open_another_when_one_ends(served: Served) -> None:
    few = replace(QUICK, most_streams_per_caller=2)
    served = replace(served, app=create_app(served.workspace, few))
    run_id = served.starter.submit("group-report", "2026-01").run_id
    path, token = f"/api/v1/runs/{run_id}/events/stream", served.token("viewer")
    signed = {"Authorization": f"Bearer {token}"}
    with listening_in_a_thread(served, few) as url, httpx.Client(base_url=url, headers=signed, timeout=60) as client:
        with client.stream("GET", path), client.stream("GET", path):
            refused = client.get(path)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "TooManyStreams")
            assert "retry-after" in refused.headers
            with _streaming(url, served, run_id) as other_caller:
                assert next(other_caller)[2]["event_type"] == "RunQueued"
        for _ in range(3000):
            with client.stream("GET", path) as answer:
                if answer.status_code == 200:
                    break
        assert answer.status_code == 200
