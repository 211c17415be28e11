import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from clew.bus import EventBus, FileBus, WebhookBus, signature
from clew.bus.dispatcher import Deliveries
from clew.diagnostics import TransientFailure
from clew.events import AlertRaised
from clew.events.snapshot import RunStatus
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import DeliveryPolicy
from clew.runs.stores import OutboxEntry, RunStores
from tests.bus.http_receiver import Receiver, listening
from tests.runs.runs_workers import FakeExecutors, SetClock, Site, succeed
from tests.store.store_fixtures import OpenStores

T = TypeVar("T")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening("/hooks/clew?team=gl") as running:
        yield running


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def site_with(url: str, open_stores: OpenStores, clock: SetClock, buses: dict[str, EventBus], **policy: object) -> Site:
    stores = open_stores(url, clock=clock, buses=tuple(buses))
    delivery = DeliveryPolicy(jitter=0.0, **policy)  # type: ignore[arg-type]
    return Site(stores, FakeExecutors(2), clock=clock, buses=buses, delivery=delivery)


class Broken:
    """A bus that never takes anything."""

    def __init__(self) -> None:
        self.offered = 0

    def deliver(self, entry: OutboxEntry) -> None:
        self.offered += 1
        raise ConnectionRefusedError("nobody there")


def test_a_webhook_gets_each_event_as_a_signed_cloud_event(
    url: str, open_stores: OpenStores, clock: SetClock, receiver: Receiver
) -> None:
    site = site_with(url, open_stores, clock, {"hook": WebhookBus("hook", receiver.url, secret=lambda: "s3cret")})
    site.submit()
    assert site.types() == ["RunQueued"]
    assert site.dispatcher.deliver_due() == Deliveries(delivered=1)
    ((path, headers, body),) = receiver.requests
    assert path == "/hooks/clew?team=gl"
    assert headers["content-type"].startswith("application/cloudevents+json")
    expected = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers["x-clew-signature"] == f"sha256={expected}" == signature("s3cret", body)
    document = json.loads(body)
    event = site.stores.reader.events("run-1")[0]
    assert (document["specversion"], document["id"]) == ("1.0", event.event_id)
    assert document["type"] == "clew.run.RunQueued"
    assert (document["subject"], document["source"]) == ("run-1", "/clew/default/dev/gl-close")
    assert document["datacontenttype"] == "application/json"
    assert all(name.islower() and name.isalnum() for name in document)
    assert (document["runseq"], document["data"]["run_seq"]) == (1, 1)
    assert document["data"]["event_data"]["request_id"] == "r-1"
    assert site.dispatcher.deliver_due() == Deliveries()


def test_all_events_of_a_run_arrive_in_order(
    sqlite_url: str, open_stores: OpenStores, clock: SetClock, receiver: Receiver, tmp_path: Path
) -> None:
    lines = tmp_path / "bus" / "events.jsonl"
    buses: dict[str, EventBus] = {"hook": WebhookBus("hook", receiver.url), "log": FileBus("log", lines)}
    site = site_with(sqlite_url, open_stores, clock, buses)
    site.submit()
    site.drive()
    while site.dispatcher.deliver_due().attempted:
        pass
    types = [f"clew.run.{name}" for name in site.types()]
    assert [document["type"] for document in receiver.documents()] == types
    assert [json.loads(line)["type"] for line in lines.read_text().splitlines()] == types
    assert all("x-clew-signature" not in headers for _, headers, _ in receiver.requests)


def test_a_dispatcher_that_is_told_to_stop_sends_what_is_left_as_long_as_it_is_taken(
    url: str, open_stores: OpenStores, clock: SetClock, receiver: Receiver
) -> None:
    site = site_with(url, open_stores, clock, {"hook": WebhookBus("hook", receiver.url)}, batch=2)
    for number in range(6):
        site.submit(f"r-{number}")
    stopped = threading.Event()
    stopped.set()
    receiver.answers = [204, 204, 204, 503]
    site.dispatcher.run(stopped)
    assert len(receiver.requests) == 4
    clock.forward(1000)
    site.dispatcher.run(stopped)
    subjects = [document["subject"] for document in receiver.documents()]
    assert len(subjects) == 7
    assert subjects[3] in subjects[4:]
    assert len(set(subjects)) == 6


def test_a_failed_delivery_waits_longer_each_time(
    url: str, open_stores: OpenStores, clock: SetClock, receiver: Receiver
) -> None:
    site = site_with(url, open_stores, clock, {"hook": WebhookBus("hook", receiver.url)}, first_delay_s=10)
    receiver.answers = [503, 500, 204]
    site.submit()
    assert site.dispatcher.deliver_due() == Deliveries(postponed=1)
    clock.forward(9)
    assert site.dispatcher.deliver_due() == Deliveries()
    clock.forward(1)
    assert site.dispatcher.deliver_due() == Deliveries(postponed=1)
    clock.forward(19)
    assert site.dispatcher.deliver_due() == Deliveries()
    clock.forward(1)
    assert site.dispatcher.deliver_due() == Deliveries(delivered=1)
    assert len({document["id"] for document in receiver.documents()}) == 1


def test_after_enough_failures_an_event_is_a_dead_letter_with_an_alert_and_can_be_replayed(
    url: str, open_stores: OpenStores, clock: SetClock, receiver: Receiver
) -> None:
    site = site_with(url, open_stores, clock, {"hook": WebhookBus("hook", receiver.url)}, attempts=3, first_delay_s=1)
    receiver.answers = [410] * 6
    site.submit()
    for _ in range(6):
        site.dispatcher.deliver_due()
        clock.forward(100)
    dead = site.stores.outbox.dead_letters()
    assert [(letter.event_type, letter.attempts) for letter in dead] == [("RunQueued", 3), ("AlertRaised", 3)]
    assert "410" in dead[0].error
    assert site.types() == ["RunQueued", "AlertRaised"]
    alert = site.stores.reader.events("run-1")[1].body
    assert isinstance(alert, AlertRaised)
    assert (alert.alert, alert.severity, alert.details["run_seq"]) == ("DEAD_LETTER", "P2", 1)

    assert site.stores.outbox.replay() == 2
    assert site.dispatcher.deliver_due() == Deliveries(delivered=2)
    assert site.stores.outbox.dead_letters() == ()
    assert [document["type"] for document in receiver.documents()[-2:]] == [
        "clew.run.RunQueued",
        "clew.run.AlertRaised",
    ]


def test_a_bus_that_is_down_for_an_hour_loses_nothing_and_slows_no_run(
    sqlite_url: str, open_stores: OpenStores, clock: SetClock, tmp_path: Path
) -> None:
    broken, lines = Broken(), tmp_path / "events.jsonl"
    buses: dict[str, EventBus] = {"hook": broken, "log": FileBus("log", lines)}
    site = site_with(sqlite_url, open_stores, clock, buses)
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    for _ in range(36):
        site.dispatcher.deliver_due()
        clock.forward(100)
    assert broken.offered > 0
    assert len(lines.read_text().splitlines()) == len(site.types())
    assert site.stores.outbox.dead_letters() == ()

    with listening("/hooks/clew?team=gl") as receiver:
        recovered = Site(site.stores, site.executors, clock=clock, buses={"hook": WebhookBus("hook", receiver.url)})
        clock.forward(1000)
        while recovered.dispatcher.deliver_due().attempted:
            pass
        arrived = sorted(document["runseq"] for document in receiver.documents())
    assert arrived == list(range(1, len(site.types()) + 1))


@contextmanager
def silence() -> Iterator[str]:
    """The address of a receiver that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def ends_in_time(action: Callable[[], T]) -> T:
    """The outcome of something that must not wait for the silent receiver, which would take ten minutes."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(action).result(timeout=100)
    finally:
        pool.shutdown(wait=False)


def test_a_bus_that_takes_the_call_and_never_answers_delays_neither_the_run_nor_other_buses(
    url: str, open_stores: OpenStores, tmp_path: Path
) -> None:
    lines = tmp_path / "events.jsonl"
    with silence() as address:
        silent = WebhookBus("hook", address, timeout_s=600)
        buses: dict[str, EventBus] = {"hook": silent, "log": FileBus("log", lines)}
        stores = open_stores(url, buses=tuple(buses))
        site = Site(stores, FakeExecutors(2), buses=buses, delivery=DeliveryPolicy(finish_s=1))
        site.submit()
        assert ends_in_time(site.drive) is RunStatus.COMPLETED
    types = [json.loads(line)["type"].removeprefix("clew.run.") for line in lines.read_text().splitlines()]
    assert types == site.types()
    assert types[-1] == "RunCompleted"
    waiting = {load.bus: load for load in stores.activity.outbox("dev")}
    assert (waiting["hook"].waiting, "log" in waiting) == (len(types), False)


def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_silent_bus(sqlite_url: str, open_stores: OpenStores) -> None:
    stop = threading.Event()

    def stopping(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        stop.set()
        return succeed(attempts, context)

    with silence() as address:
        buses: dict[str, EventBus] = {"hook": WebhookBus("hook", address, timeout_s=600)}
        stores = open_stores(sqlite_url, buses=tuple(buses))
        executors = FakeExecutors(2, stopping)
        site = Site(stores, executors, buses=buses, delivery=DeliveryPolicy(finish_s=1))
        site.submit()
        ends_in_time(lambda: site.worker().run(stop))
    assert site.types()[-1] == "StepCompleted"
    assert DeliveryPolicy().finish_s == 5.0


def test_a_bus_that_breaks_does_not_keep_events_from_the_others(
    sqlite_url: str, open_stores: OpenStores, clock: SetClock, tmp_path: Path
) -> None:
    lines = tmp_path / "events.jsonl"
    site = site_with(sqlite_url, open_stores, clock, {"broken": Broken(), "log": FileBus("log", lines)})
    site.submit()
    assert site.dispatcher.deliver_due() == Deliveries(delivered=1, postponed=1)


def test_an_address_that_does_not_answer_is_a_failed_delivery(
    sqlite_url: str, open_stores: OpenStores, clock: SetClock
) -> None:
    with listening("/hooks/clew?team=gl") as gone:
        address = gone.url
    site = site_with(sqlite_url, open_stores, clock, {"hook": WebhookBus("hook", address, timeout_s=1)})
    site.submit()
    (entry,) = site.stores.outbox.take("hook", limit=1, hold_s=0)
    with pytest.raises(TransientFailure) as failed:
        WebhookBus("hook", address, timeout_s=1).deliver(entry)
    assert failed.value.code == "DeliveryFailed"
    with pytest.raises(ValueError, match="not an http address"):
        WebhookBus("hook", "ftp://example.com/x")


def test_a_file_that_cannot_be_written_is_a_failed_delivery(
    sqlite_url: str, open_stores: OpenStores, clock: SetClock, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    site = site_with(sqlite_url, open_stores, clock, {"log": FileBus("log", blocked / "events.jsonl")})
    site.submit()
    assert site.dispatcher.deliver_due() == Deliveries(postponed=1)


def test_the_worker_delivers_while_runs_go_on(sqlite_url: str, open_stores: OpenStores, receiver: Receiver) -> None:
    stores: RunStores = open_stores(sqlite_url, buses=("hook",))
    site = Site(stores, FakeExecutors(), buses={"hook": WebhookBus("hook", receiver.url)})
    site.submit()
    stop = threading.Event()
    thread = threading.Thread(target=site.worker().run, args=(stop,))
    thread.start()
    arrived = threading.Event()
    try:
        for _ in range(3000):
            if len(receiver.requests) >= 9:
                break
            arrived.wait(0.02)
    finally:
        stop.set()
        thread.join(30)
    assert {document["runseq"] for document in receiver.documents()} == set(range(1, 10))
