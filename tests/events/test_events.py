import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

import clew.runs
from clew.diagnostics import UserError
from clew.events import EVENT_TYPES, RawEvent, StepCompleted, verify_chain
from clew.events.chain import GENESIS, chain_hash
from clew.events.codec import canonical_json, decode, encode
from clew.events.envelope import UPCASTERS, body_of, request_key
from clew.events.values import ArtifactRef, Cursor, positions_of, ranges_of
from tests.runs.runs_histories import PLAN, artifact, eventful, queued, request
from tests.store.seals import KEY


def test_the_idempotency_key_is_the_sha256_of_the_five_parts_joined_by_a_bar() -> None:
    expected = hashlib.sha256(b"run-1|10|2|StepCompleted|7").hexdigest()
    assert clew.runs.idempotency_key("run-1", "10", 2, "StepCompleted", "7") == expected
    assert clew.runs.idempotency_key("run-1", "10", "2", "StepCompleted", 7) == expected


def test_the_request_key_has_six_parts() -> None:
    expected = hashlib.sha256(b"default|gl-close|dev|gl-close|7|r-1").hexdigest()
    assert request().key == expected
    parts = {"tenant_id": "t", "project_id": "p", "environment_id": "e", "plan_id": "pl", "plan_version": "1"}
    assert request_key(**parts, request_id="r") == hashlib.sha256(b"t|p|e|pl|1|r").hexdigest()


def test_bodies_survive_the_way_into_json_and_back() -> None:
    body = replace(queued(), not_before=datetime(2026, 2, 1, tzinfo=timezone(timedelta(hours=2))), plan=PLAN)
    again = decode(type(body), encode(body))
    assert again == body
    for event in eventful(["ok", "skip", "retry", "pause"], continue_after=2).stored():
        assert body_of(event.event_type, event.body.VERSION, encode(event.body)) == event.body


def test_a_step_that_version_1_completed_has_no_counts() -> None:
    old = {"artifacts": [{"uri": "file:///a", "kind": "trace", "sha256": None, "size_bytes": 3, "expires_at": None}]}
    body = body_of("StepCompleted", 1, old)
    assert isinstance(body, StepCompleted)
    assert body.counts == {}
    assert body.artifacts == (ArtifactRef("file:///a", "trace", None, 3),)


def test_every_older_version_of_every_event_has_an_upcaster() -> None:
    needed = {(cls.NAME, version) for cls in EVENT_TYPES for version in range(1, cls.VERSION)}
    assert set(UPCASTERS) == needed


@pytest.mark.parametrize(("event_type", "version"), [("RunTeleported", 1), ("RunStarted", 99)])
def test_an_event_of_a_newer_clew_is_refused_by_name(event_type: str, version: int) -> None:
    with pytest.raises(UserError) as refused:
        body_of(event_type, version, {})
    assert refused.value.code == "EventTooNew"


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": "ü"}) == canonical_json({"a": "ü", "b": 1}) == '{"a":"ü","b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


def test_a_stored_reference_to_an_artifact_has_five_facts_and_nothing_of_the_content() -> None:
    [stored] = encode(StepCompleted((artifact("10"),)))["artifacts"]
    assert stored.keys() == {"uri", "kind", "sha256", "size_bytes", "expires_at"}
    assert (stored["uri"], stored["size_bytes"]) == ("file:///trace/10.parquet", 1234)


def test_ranges_cover_exactly_their_positions() -> None:
    assert ranges_of([5, 1, 2, 3, 7, 2]) == ((1, 3), (5, 5), (7, 7))
    assert positions_of(((1, 3), (7, 7))) == {1, 2, 3, 7}
    cursor = Cursor(succeeded=((0, 4),), skipped=((6, 6),))
    assert [position in cursor for position in (0, 4, 5, 6, 7)] == [True, True, False, True, False]


def chained() -> list[RawEvent]:
    events, previous = [], GENESIS
    for event in eventful(["ok", "ok"]).stored():
        own = chain_hash(event.raw, previous, KEY)
        events.append(event.raw.with_hash(previous_hash=previous, own_hash=own))
        previous = own
    return events


def test_an_untouched_chain_is_intact() -> None:
    events = chained()
    report = verify_chain(events, key=KEY, last_seq=len(events), last_hash=events[-1].hash)
    assert report.is_intact
    assert report.verified == len(events)


@pytest.mark.parametrize("tampering", ["change", "remove", "swap", "truncate", "time"])
def test_a_chain_shows_tampering(tampering: str) -> None:
    events = chained()
    last_seq, last_hash = len(events), events[-1].hash
    match tampering:
        case "change":
            events[3] = replace(events[3], event_data={"seq": 10, "name": "something else"})
        case "time":
            events[3] = replace(events[3], persisted_at=datetime(2020, 1, 1, tzinfo=UTC))
        case "remove":
            del events[2]
        case "swap":
            events[2], events[3] = events[3], events[2]
        case _:
            del events[-1]
    assert not verify_chain(events, key=KEY, last_seq=last_seq, last_hash=last_hash).is_intact


def test_events_from_before_the_chain_are_counted_apart() -> None:
    events = chained()
    plain = [replace(event, hash=None, previous_hash=None) for event in events[:2]]
    first = events[2]
    rest, previous = [], GENESIS
    for event in [first, *events[3:]]:
        own = chain_hash(event, previous, KEY)
        rest.append(event.with_hash(previous_hash=previous, own_hash=own))
        previous = own
    report = verify_chain([*plain, *rest], key=KEY, last_seq=len(events), last_hash=previous, adopted=2)
    assert report.is_intact
    assert report.unchained == 2
