"""How long captures live, and who may read them."""

from datetime import timedelta
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.capture import CaptureReader
from clew.api.state import open_state
from clew.auth.roles import AccessRole
from clew.captures.freezing import Fitting, Ticket
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus, Emission, JobReport
from clew.captures.removal import collect_expired
from clew.captures.worker import CaptureWorker
from clew.definitions import CaptureMode
from clew.diagnostics import UserError
from clew.runs.clock import utc_now
from tests.cli.conftest import Clew


def ready(sample: Path, days: float) -> CaptureRecord:
    """A capture whose manifest is there, and that expires after so many days."""
    environment = clew_package.open(sample).run_environment
    folder = Path(environment.storage_root.address) / "captures" / "cap_x" / "1"
    folder.mkdir(parents=True)
    (folder / "rows.parquet").write_bytes(b"x" * 100)
    now = utc_now()
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
    new = CaptureRecord(
        capture_id="cap_x",
        kind="capture",
        slot="s",
        tenant_id="default",
        run_id="run",
        request_id="r",
        breakpoint="gl-close::main::cleaned",
        seq=30,
    )
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


def emitting(sample: Path, status: CaptureStatus) -> list[Path]:
    """A job that sent two files, of which the first has expired; where they are."""
    environment = clew_package.open(sample).run_environment
    folder = sample / "out" / "log"
    folder.mkdir(parents=True)
    paths = [folder / "first.parquet", folder / "second.parquet"]
    for path in paths:
        path.write_bytes(b"x" * 100)
        path.with_suffix(".json").write_text("{}")
    sent = tuple(
        Emission(
            "log", "training_log", path.relative_to(sample).as_posix(), 1, 100, 1, utc_now() + timedelta(days=days)
        )
        for path, days in zip(paths, (-1, 1), strict=True)
    )
    job = CaptureRecord(
        capture_id="cap_job",
        kind="job",
        slot="job_1",
        tenant_id="default",
        run_id="run",
        request_id="r",
        breakpoint="gl-close::main::cleaned",
        seq=30,
    )
    ticket = Ticket(
        run_id="run",
        breakpoint=job.breakpoint,
        seq=30,
        plan_digest="d",
        parts=(),
        skipped=(),
        rows=1,
        estimated_bytes=1,
        frozen_at=None,
    )
    with open_state(environment) as state:
        store = state.captures
        store.enlist([job])
        week = timedelta(days=7)
        store.freeze("cap_job", ticket, 1, lambda _in_flight: Fitting(None, 0, 0, ()), waits_for=week)
        lease = store.claim(owner="w", ttl_s=30)
        assert lease is not None
        assert store.finish(lease, status, CaptureOutcome(job=JobReport("job_1", None, emissions=sent)))
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
