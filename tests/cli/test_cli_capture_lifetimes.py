"""How long captures live, and who may read them."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import clew as clew_package
from clew.api.capture import CaptureReader
from clew.api.state import open_state
from clew.auth.roles import AccessRole
from clew.captures.freezing import Fitting, Ticket
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus, CaptureStore, Emission, JobReport
from clew.captures.removal import collect_expired
from clew.captures.worker import CaptureWorker
from clew.definitions import CaptureMode
from clew.definitions.settings import SinkType
from clew.diagnostics import UserError
from clew.runs.clock import utc_now
from clew.store.state_store import StoreOptions
from tests.cli.conftest import Clew

COMMON: dict[str, Any] = {
    "tenant_id": "default",
    "request_id": "r",
    "breakpoint": "gl-close::main::cleaned",
    "seq": 30,
}
TICKET = Ticket(
    run_id="run",
    breakpoint=COMMON["breakpoint"],
    seq=30,
    plan_digest="d",
    parts=(),
    skipped=(),
    rows=1,
    estimated_bytes=1,
    frozen_at=None,
)


def done_job(
    store: CaptureStore,
    capture_id: str,
    run_id: str,
    outcome: CaptureOutcome,
    status: CaptureStatus = CaptureStatus.READY,
) -> CaptureRecord:
    """A job that a worker has done."""
    ticket = replace(TICKET, run_id=run_id)
    store.enlist([CaptureRecord(**COMMON, capture_id=capture_id, kind="job", slot="job_1", run_id=run_id)])
    week = timedelta(days=7)
    store.freeze(capture_id, ticket, 1, lambda _in_flight: Fitting(None, 0, 0, ()), waits_for=week)
    lease = store.claim(owner="w", ttl_s=30)
    assert lease is not None
    assert store.finish(lease, status, outcome)
    found = store.find(capture_id)
    assert found is not None
    return found


def ready(sample: Path, days: float, moment: datetime | None = None) -> CaptureRecord:
    """A capture whose manifest is there, and that expires after so many days."""
    environment = clew_package.open(sample).run_environment
    folder = Path(environment.storage_root.address) / "captures" / "cap_x" / "1"
    folder.mkdir(parents=True)
    (folder / "rows.parquet").write_bytes(b"x" * 100)
    now = moment or utc_now()
    manifest = Manifest(
        capture_id="cap_x",
        run_id="run",
        request_id="r",
        environment="dev",
        project="gl-close",
        period="2026-01",
        breakpoint="gl-close::main::cleaned",
        seq=30,
        plan_digest="d",
        mode=CaptureMode.FULL_RAW,
        asked=CaptureMode.FULL_RAW,
        columns=(),
        rows=1,
        size=100,
        files=(),
        digest="",
        folder=".clew/storage/captures/cap_x/1",
        shows_personal=True,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    new = CaptureRecord(**COMMON, capture_id="cap_x", kind="capture", slot="s", run_id="run")
    with open_state(environment) as state:
        return state.captures.publish(new, manifest)


def test_an_expired_capture_cannot_be_read_and_is_collected(clew: Clew, sample: Path) -> None:
    ready(sample, days=-1)
    answer = clew("capture", "show", "cap_x", "--json", cwd=sample)
    assert (answer.code, answer.json["error"]["code"]) == (3, "CaptureExpired")
    garbage = clew("gc", "--json", cwd=sample).json
    assert [(each["kind"], each["name"]) for each in garbage["removed"]] == [("capture", "cap_x")]
    assert garbage["freed_bytes"] >= 100
    assert not (sample / ".clew" / "storage" / "captures" / "cap_x").exists()
    [gone] = clew("captures", "--json", cwd=sample).json["captures"]
    assert gone["status"] == "expired"
    assert clew("capture", "show", "cap_x", "--json", cwd=sample).json["error"]["code"] == "CaptureExpired"


def test_a_worker_with_nothing_to_do_takes_away_what_has_expired(clew: Clew, sample: Path) -> None:
    ready(sample, days=-1)
    environment = clew_package.open(sample).run_environment
    with open_state(environment) as state:
        assert not CaptureWorker(environment, state, lambda: None).work_once()  # type: ignore[arg-type, return-value]
    [gone] = clew("captures", "--json", cwd=sample).json["captures"]
    assert (gone["capture_id"], gone["status"]) == ("cap_x", "expired")
    assert not (sample / ".clew" / "storage" / "captures" / "cap_x").exists()
    [removal] = clew("gc", "--history", "--json", cwd=sample).json["removals"]
    assert (removal["kind"], removal["name"]) == ("capture", "cap_x")


def test_a_capture_that_lives_is_not_collected_and_can_be_removed(clew: Clew, sample: Path) -> None:
    ready(sample, days=1)
    environment = clew_package.open(sample).run_environment
    with open_state(environment) as state:
        assert collect_expired(environment, state) == ()
    removed = clew("capture", "rm", "cap_x", "--json", cwd=sample).json
    assert (removed["removed"], removed["freed_bytes"] >= 100) == (["cap_x"], True)
    assert not (sample / ".clew" / "storage" / "captures" / "cap_x").exists()
    assert clew("captures", "--json", cwd=sample).json["captures"] == []


def test_reading_takes_a_role_that_may(sample: Path) -> None:
    ready(sample, days=1)
    environment = clew_package.open(sample).run_environment
    with open_state(environment) as state:
        assert CaptureReader(state, environment, AccessRole.ADMIN).find("cap_x").status == "ready"
        # It shows personal columns, which auditors see masked only, and viewers read no captures at all.
        for role in (AccessRole.AUDITOR, AccessRole.VIEWER):
            with pytest.raises(UserError) as error:
                CaptureReader(state, environment, role).find("cap_x")
            assert error.value.code == "CaptureAccessDenied"


def emitting(sample: Path, status: CaptureStatus, moment: datetime | None = None) -> list[Path]:
    """A job that sent two files, of which the first has expired; where they are."""
    environment = clew_package.open(sample).run_environment
    folder = sample / "out" / "log"
    folder.mkdir(parents=True)
    paths = [folder / "first.parquet", folder / "second.parquet"]
    for path in paths:
        path.write_bytes(b"x" * 100)
        path.with_suffix(".json").write_text("{}")
    sent = tuple(
        Emission("log", "training_log", path.relative_to(sample).as_posix(), 1, 100, 1, (moment or utc_now()) + expires)
        for path, expires in zip(paths, (timedelta(hours=-1), timedelta(hours=1)), strict=True)
    )
    with open_state(environment) as state:
        done_job(state.captures, "cap_job", "run", CaptureOutcome(job=JobReport("job_1", None, emissions=sent)), status)
    return paths


@pytest.mark.parametrize("status", [CaptureStatus.READY, CaptureStatus.FAILED])
def test_each_emission_of_a_job_expires_on_its_own_date_also_if_the_job_failed_later(
    clew: Clew, sample: Path, status: CaptureStatus
) -> None:
    first, second = emitting(sample, status)
    garbage = clew("gc", "--json", cwd=sample).json
    assert [each["name"] for each in garbage["removed"]] == ["cap_job"]
    assert garbage["freed_bytes"] == 102
    assert [path.exists() for path in (first, first.with_suffix(".json"))] == [False, False]
    assert [path.exists() for path in (second, second.with_suffix(".json"))] == [True, True]
    assert clew("gc", "--json", cwd=sample).json["removed"] == []
    environment = clew_package.open(sample).run_environment
    with open_state(environment) as state:
        record = state.captures.find("cap_job")
        assert record is not None
        assert record.outcome.job is not None
        assert [each.status.value for each in record.outcome.job.emissions] == ["expired", "sent"]
        assert (record.status, record.expires_at) == (status, record.outcome.job.emissions[1].expires_at)


def test_a_capture_that_waits_too_long_for_a_worker_expires(clew: Clew, sample: Path) -> None:
    """What an attempt has left goes with it, and no worker takes it any more."""
    environment = clew_package.open(sample).run_environment
    with open_state(environment) as state:
        state.captures.enlist([CaptureRecord(**COMMON, capture_id="cap_late", kind="capture", slot="s", run_id="run")])
        ticket = replace(TICKET, run_id="run")
        fitting = Fitting(CaptureMode.FULL_RAW, 10, 1, ())
        state.captures.freeze("cap_late", ticket, 1, lambda _in_flight: fitting, waits_for=timedelta(seconds=-1))
        assert state.captures.claim(owner="w", ttl_s=30) is None
    [waiting] = clew("captures", "--json", cwd=sample).json["captures"]
    assert waiting["status"] == "queued"
    removed = clew("gc", "--json", cwd=sample).json["removed"]
    assert [(each["kind"], each["name"]) for each in removed] == [("capture", "cap_late")]
    [gone] = clew("captures", "--json", cwd=sample).json["captures"]
    assert gone["status"] == "expired"
    assert clew("capture", "view", "cap_late", "--json", cwd=sample).json["error"]["code"] == "CaptureExpired"


# Files that nothing names


def left_over(path: Path, *, hours: float) -> Path:
    """A file that was written so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    then = utc_now().timestamp() - hours * 3600
    os.utime(path, (then, then))
    return path


def relative(paths: list[Path], root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in paths}


def test_gc_removes_what_dead_and_overtaken_workers_left_of_captures_after_an_hour(clew: Clew, sample: Path) -> None:
    """Everything else stays: what counts, what is recent, what is waited for, and what this store does not know."""
    run, other = "0f0e7d1a-6a53-4d2b-9a0e-0123456789ab", "1f0e7d1a-6a53-4d2b-9a0e-0123456789ab"
    settings = (sample / "clew.yaml").read_text()
    sinks = "    sinks:\n      log: {type: training_log, path: out/log, max_ttl_days: 3}\n"
    (sample / "clew.yaml").write_text(settings.replace("    sinks:\n", sinks, 1))
    ready(sample, days=1)
    environment = clew_package.open(sample).run_environment
    captures, log = sample / ".clew" / "storage" / "captures", sample / "out" / "log"
    [shelf] = [
        sample / sink.path for sink in environment.settings.sinks.values() if sink.type is SinkType.CAPTURE_STORE
    ]
    sent = left_over(log / run / "job_1-0-a.parquet", hours=50)
    emission = Emission("log", "training_log", f"out/log/{run}/{sent.name}", 1, 10, 1, utc_now() + timedelta(days=1))
    with open_state(environment) as state:
        job = done_job(
            state.captures, "cap_job", run, CaptureOutcome(job=JobReport("job_1", None, emissions=(emission,)))
        )
        waiting = CaptureRecord(**COMMON, capture_id="cap_waiting", kind="capture", slot="w", run_id=other)
        state.captures.enlist([waiting])
        assert job.status is CaptureStatus.READY
    orphans = [
        left_over(captures / "cap_x" / "2" / "rows.parquet", hours=2),
        left_over(shelf / "cap_x" / "3" / "rows.parquet", hours=2),
        left_over(captures / "staging" / f"{run}-job_1-rows-1" / "a" / "part.parquet", hours=2),
        left_over(log / run / "job_1-1-b.parquet", hours=2),
        left_over(log / run / ".job_1-2-c.parquet.d.staging", hours=2),
    ]
    staying = [
        sent,
        left_over(sent.with_suffix(".json"), hours=50),
        captures / "cap_x" / "1" / "rows.parquet",
        left_over(captures / "cap_x" / "4" / "rows.parquet", hours=0.5),
        left_over(captures / "cap_unknown" / "1" / "rows.parquet", hours=50),
        left_over(captures / "cap_waiting" / "1" / "rows.parquet", hours=50),
        left_over(captures / "staging" / f"{other}-job_1-rows-1" / "a" / "part.parquet", hours=50),
        left_over(log / "notes" / "mine.parquet", hours=50),
        left_over(log / other / "job_1-0-a.parquet", hours=50),
        left_over(log / "2f0e7d1a-6a53-4d2b-9a0e-0123456789ab" / "job_1-0-a.parquet", hours=50),
    ]
    found = clew("gc", "--dry-run", "--json", cwd=sample).json["removed"]
    assert all(path.exists() for path in orphans)
    garbage = clew("gc", "--json", cwd=sample).json
    assert garbage["removed"] == found
    assert {each["kind"] for each in found} == {"capture-leftover"}
    assert [each["bytes"] for each in found] == [10] * len(orphans)
    assert relative([path for path in orphans if path.exists()], sample) == set()
    assert relative([path for path in staying if not path.exists()], sample) == set()
    assert clew("gc", "--json", cwd=sample).json["removed"] == []
    history = clew("gc", "--history", "--json", cwd=sample).json["removals"]
    assert {each["name"] for each in history} == {each["name"] for each in found}


# Whose clock


@pytest.mark.parametrize("hours", [-3, 3])
def test_what_has_expired_is_decided_by_the_clock_of_the_state_store(
    sample: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """The clock of the state store is hours away from that of the process: behind it, or ahead of it."""
    moment = utc_now() + timedelta(hours=hours)
    monkeypatch.setattr("clew.api.opened_stores.StoreOptions", partial(StoreOptions, clock=lambda: moment))
    first, second = emitting(sample, CaptureStatus.FAILED, moment=moment)
    ready(sample, days=0.1 if hours < 0 else -0.1, moment=moment)
    workspace = clew_package.open(sample)
    if hours < 0:
        assert workspace.capture("cap_x").manifest.rows == 1
    else:
        with pytest.raises(UserError) as expired:
            _ = workspace.capture("cap_x").manifest
        assert expired.value.code == "CaptureExpired"
    workspace.gc()
    assert [path.exists() for path in (first, second)] == [False, True]
    assert (sample / ".clew" / "storage" / "captures" / "cap_x").exists() is (hours < 0)
