"""Runs as OpenLineage events, through the outbox to a receiver on loopback and to a file."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attr
import pytest
from openlineage.client import event_v2, facet_v2
from openlineage.client.serde import Serde

import clew as clew_package
from clew.api.state import open_state
from clew.bus.buses import checks_until, plan_of
from clew.bus.openlineage import HttpTarget, OpenLineageBus
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.events.envelope import StoredEvent
from clew.runs.request import RunRecord
from clew.runs.stores import OutboxEntry
from tests.bus.http_receiver import Receiver, listening
from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew

Document = dict[str, Any]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening("/api/v1/lineage", 201) as running:
        yield running


def with_bus(sample: Path, bus: str) -> Path:
    settings = sample / "clew.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("    sinks:\n", f"    bus: [{bus}]\n    sinks:\n", 1), encoding="utf-8")
    return sample


def accepted_by_the_client(document: Document) -> event_v2.RunEvent:
    """The event that the client's own classes make of a document. They refuse what is not of their schema."""
    facets = {
        getattr(module, name)._get_schema(): getattr(module, name)
        for module in vars(facet_v2).values()
        for name in dir(module)
        if name.endswith("Facet") and hasattr(getattr(module, name), "_get_schema")
    }

    def facet(data: Document) -> Any:
        kind = facets[data["_schemaURL"]]
        known = {name: value for name, value in data.items() if not name.startswith("_")}
        made = kind(**known, producer=data["_producer"])
        assert {field.name for field in attr.fields(kind)} >= set(data)
        return made

    def dataset(kind: Any, data: Document) -> Any:
        extra = {
            name: {k: facet(v) for k, v in value.items()} for name, value in data.items() if name.endswith("acets")
        }
        return kind(data["namespace"], data["name"], **extra)

    event = event_v2.RunEvent(
        eventType=event_v2.RunState(document["eventType"]),
        eventTime=document["eventTime"],
        producer=document["producer"],
        run=event_v2.Run(document["run"]["runId"], {k: facet(v) for k, v in document["run"]["facets"].items()}),
        job=event_v2.Job(
            document["job"]["namespace"],
            document["job"]["name"],
            {k: facet(v) for k, v in document["job"]["facets"].items()},
        ),
        inputs=[dataset(event_v2.InputDataset, each) for each in document["inputs"]],
        outputs=[dataset(event_v2.OutputDataset, each) for each in document["outputs"]],
    )
    assert document["schemaURL"] == event.schemaURL
    assert json.loads(Serde.to_json(event)) == document
    return event


def test_a_run_is_told_from_start_to_completion_with_schemas_and_column_lineage(
    clew: Clew, sample: Path, engine: FakeEngine, receiver: Receiver
) -> None:
    with_bus(sample, f'{{id: marquez, type: openlineage, url: "{receiver.url}"}}')
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    events = receiver.documents()
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    for document in events:
        event = accepted_by_the_client(document)
        assert event.run.runId == run_id
        assert (event.job.namespace, event.job.name) == ("clew://default/dev", "gl-close")
    last = events[-1]
    assert {"journal-lines", "fx-rates", "budgets"} <= {each["name"] for each in last["inputs"]}
    closed = next(each for each in last["outputs"] if each["name"] == "gl-closed")
    types = {each["name"]: each["type"] for each in closed["facets"]["schema"]["fields"]}
    assert types["amount_usd"].startswith("decimal")
    origins = closed["facets"]["columnLineage"]["fields"]["amount_usd"]["inputFields"]
    direct = {(o["name"], o["field"]) for o in origins if o["transformations"][0]["type"] == "DIRECT"}
    assert {("fx-rates", "rate"), ("journal-lines", "amount_local")} <= direct
    written = [each for event in events[1:3] for each in event["outputs"]]
    assert all(each["outputFacets"]["outputStatistics"]["rowCount"] == 1569 for each in written)


def test_an_output_of_one_project_is_the_input_of_the_next_by_name(
    clew: Clew, sample: Path, engine: FakeEngine, receiver: Receiver
) -> None:
    with_bus(sample, f'{{id: marquez, type: openlineage, url: "{receiver.url}", namespace: ledger}}')
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    closing = receiver.documents()[-1]
    clew("run", "group-report", "--period", "2026-01", cwd=sample)
    reporting = receiver.documents()[-1]
    assert {("ledger", "gl-closed")} <= {(each["namespace"], each["name"]) for each in closing["outputs"]}
    assert {("ledger", "gl-closed")} <= {(each["namespace"], each["name"]) for each in reporting["inputs"]}


def test_a_failed_run_says_why_and_a_resumed_one_goes_on(
    clew: Clew, sample: Path, engine: FakeEngine, receiver: Receiver
) -> None:
    with_bus(sample, f'{{id: marquez, type: openlineage, url: "{receiver.url}"}}')
    engine.failing["20"] = UserError(JOIN_NOT_UNIQUE.anywhere(**dict.fromkeys(_parameters(), "x")))
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    failed = receiver.documents()[-1]
    assert failed["eventType"] == "FAIL"
    assert failed["run"]["facets"]["errorMessage"]["message"].startswith("JoinNotUnique: ")
    accepted_by_the_client(failed)


def _parameters() -> list[str]:
    import string

    return [name for _, name, _, _ in string.Formatter().parse(JOIN_NOT_UNIQUE.message) if name]


def test_a_cancelled_run_is_aborted(clew: Clew, sample: Path, engine: FakeEngine, receiver: Receiver) -> None:
    with_bus(sample, f'{{id: marquez, type: openlineage, url: "{receiver.url}"}}')
    workspace = clew_package.open(sample)

    def cancel(_context: object) -> None:
        run = workspace.runs()[0].id
        assert clew("signal", run, "CANCEL", "--reason", "enough", cwd=sample).code == 0

    engine.during["20"] = cancel
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert receiver.documents()[-1]["eventType"] == "ABORT"
    accepted_by_the_client(receiver.documents()[-1])


def test_events_go_to_a_file_where_one_is_named(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    with_bus(sample, "{id: log, type: openlineage, path: out/lineage.jsonl}")
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    lines = (sample / "out" / "lineage.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["eventType"] for line in lines] == ["START", "RUNNING", "RUNNING", "COMPLETE"]


def test_a_bus_gets_the_events_that_it_asks_for(clew: Clew, sample: Path, engine: FakeEngine) -> None:
    with_bus(
        sample,
        "{id: lineage, type: openlineage, path: out/lineage.jsonl, events: [RunCompleted, RunFailed]}, "
        "{id: log, type: file, path: out/events.jsonl, events: [RunStarted]}",
    )
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    [told] = (sample / "out" / "lineage.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(told)["eventType"] == "COMPLETE"
    [logged] = (sample / "out" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(logged)["type"] == "clew.run.RunStarted"


def test_a_key_is_sent_by_reference_and_kept_nowhere(
    clew: Clew, sample: Path, engine: FakeEngine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARQUEZ_KEY", "s3cret-k3y")
    with_bus(sample, f'{{id: m, type: openlineage, url: "{receiver.url}", secret_ref: secret://env/MARQUEZ_KEY}}')
    clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    path, headers, body = receiver.requests[0]
    assert path == "/api/v1/lineage"
    assert headers["authorization"] == "Bearer s3cret-k3y"
    assert b"s3cret" not in body
    assert all(b"s3cret" not in file.read_bytes() for file in (sample / ".clew").rglob("*") if file.is_file())


@pytest.fixture
def entries(clew: Clew, sample: Path, engine: FakeEngine) -> list[OutboxEntry]:
    """All events of a run, as an outbox would hand them to a sink."""
    run_id = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample).json["run_id"]
    with open_state(clew_package.open(sample).run_environment) as state:
        run: RunRecord = state.stores.catalog.run(run_id)
        events: tuple[StoredEvent, ...] = state.stores.reader.events(run_id)
    return [OutboxEntry(event.run_seq, "m", 0, run, event) for event in events]


def sink(receiver: Receiver, sample: Path, name: str = "m") -> OpenLineageBus:
    environment = clew_package.open(sample).run_environment
    target = HttpTarget(receiver.url)
    return OpenLineageBus(
        name,
        target,
        namespace="ledger",
        plan_of=partial(plan_of, environment),
        checks_until=partial(checks_until, None),
    )


@pytest.mark.slow
def test_the_same_event_sent_twice_is_the_same_to_the_byte(
    entries: list[OutboxEntry], sample: Path, receiver: Receiver
) -> None:
    for entry in entries:
        sink(receiver, sample).deliver(entry)
    first = [body for _, _, body in receiver.requests]
    receiver.requests.clear()
    for entry in entries:
        sink(receiver, sample).deliver(entry)
    assert [body for _, _, body in receiver.requests] == first
    tags = [tag for event in receiver.documents() for tag in event["run"]["facets"]["tags"]["tags"]]
    ids = [tag["value"] for tag in tags if tag["key"] == "clew.event_id"]
    assert len(ids) == len(set(ids)) == len(first)


def test_an_event_that_is_not_taken_is_a_failure_that_passes(
    entries: list[OutboxEntry], sample: Path, receiver: Receiver
) -> None:
    started = next(entry for entry in entries if entry.event.event_type == "RunStarted")
    receiver.answers = [503]
    with pytest.raises(TransientFailure, match="503"):
        sink(receiver, sample).deliver(started)
    sink(receiver, sample).deliver(started)
    bodies = [body for _, _, body in receiver.requests]
    assert bodies[0] == bodies[1]


def test_events_of_a_run_whose_plan_is_gone_go_out_without_datasets(
    entries: list[OutboxEntry], receiver: Receiver
) -> None:
    target = HttpTarget(receiver.url)
    bare = OpenLineageBus("m", target, namespace="ledger", plan_of=lambda _run: None, checks_until=lambda _event: ())
    for entry in entries:
        bare.deliver(entry)
    assert [event["eventType"] for event in receiver.documents()] == ["START", "COMPLETE"]
    for document in receiver.documents():
        assert accepted_by_the_client(document).inputs == []
