"""Rows of captures, read without Spark; who may read them; and the tickets that they come from."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from clew.auth.roles import AccessRole
from clew.captures.freezing import freeze, is_reached
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus, new_capture_id
from clew.captures.reading import require_reading
from clew.definitions import CaptureMode
from clew.diagnostics import UserError
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import ArtifactRef
from clew.storage.parts import Part, PartFile, TracedStep
from clew.storage.row_identity import RowIds
from tests.captures.capture_plans import people_plan
from tests.captures.captured_files import captured
from tests.captures.samples import rank, sampled

COLUMNS = {"id": "integer", "amount": "decimal(10,2)", "day": "date", "at": "timestamp", "note": "string"}
ROWS = [
    (1, Decimal("1.10"), datetime(2026, 1, 1, tzinfo=UTC).date(), datetime(2026, 1, 1, 10), "a"),  # noqa: DTZ001
    (2, None, None, None, None),
    (3, Decimal("-3.00"), datetime(2026, 1, 3, tzinfo=UTC).date(), datetime(2026, 1, 1, 12), 'ü"'),  # noqa: DTZ001
]


def test_a_raw_capture_turns_into_a_view_without_the_deleted_rows(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", COLUMNS, ROWS, deleted=[1])
    assert rows.to_arrow().to_pydict() == {
        "_row_id": [RowIds("run-1").row_id(0), RowIds("run-1").row_id(2)],
        **{name: [ROWS[0][index], ROWS[2][index]] for index, name in enumerate(COLUMNS)},
    }
    assert rows.to_arrow_raw().num_rows == 3
    assert rows.deleted() == 1


def test_a_view_is_read_as_it_is_and_as_a_data_frame(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", COLUMNS, ROWS, mode=CaptureMode.FULL_VIEW)
    assert rows.to_arrow().column("id").to_pylist() == [1, 2, 3]
    assert list(rows.to_pandas()["id"]) == [1, 2, 3]
    assert rows.to_arrow(limit=2).num_rows == 2
    assert rows.deleted() == 0


def test_long_numbers_keep_their_digits_in_a_data_frame_where_some_are_missing(tmp_path: Path) -> None:
    long = 2**53 + 1
    frame = captured(tmp_path / "a", {"id": "integer", "n": "integer"}, [(1, long), (2, None)]).to_pandas()
    assert list(frame["n"].dropna()) == [long]
    assert list(frame["n"].isna()) == [False, True]
    assert str(frame["id"].dtype) == "int64"


def test_a_file_that_changed_or_is_gone_is_noticed(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", COLUMNS, ROWS)
    path = tmp_path / "a" / "rows.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="is not what was written"):
        replace(rows)
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        replace(rows)


def test_statistics_alone_have_no_rows_to_read(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", COLUMNS, ROWS)
    with pytest.raises(UserError, match="is without rows: it kept statistics only") as error:
        replace(rows, manifest=replace(rows.manifest, mode=CaptureMode.STATS))
    assert "clew capture show" in (error.value.diagnostic.hint or "")


def test_a_manifest_survives_its_file(tmp_path: Path) -> None:
    manifest = captured(tmp_path / "a", COLUMNS, ROWS).manifest
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_ids_are_long_and_never_the_same() -> None:
    ids = {new_capture_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(each) for each in ids} == {4 + 32}


def record(tmp_path: Path, *, shows_personal: bool = False) -> CaptureRecord:
    manifest = replace(captured(tmp_path / "a", COLUMNS, ROWS).manifest, shows_personal=shows_personal)
    now = datetime(2026, 2, 1, tzinfo=UTC)
    return CaptureRecord(
        capture_id="cap_a",
        kind="capture",
        slot="capture:1",
        tenant_id="ours",
        run_id="run-1",
        request_id="request",
        breakpoint="p::main::x",
        seq=1,
        status=CaptureStatus.READY,
        request=None,
        frozen=None,
        outcome=CaptureOutcome(manifest=manifest),
        attempts=1,
        created_at=now,
        started_at=now,
        completed_at=now,
        expires_at=now,
    )


@pytest.mark.parametrize("role", [AccessRole.AUDITOR, AccessRole.ENGINEER, AccessRole.ADMIN])
def test_roles_with_the_right_may_read_a_capture(tmp_path: Path, role: AccessRole) -> None:
    require_reading(record(tmp_path), role=role, tenant_id="ours", include_roles=(), sees_personal=True)


@pytest.mark.parametrize("role", [AccessRole.VIEWER, AccessRole.OPERATOR])
def test_roles_without_the_right_may_not(tmp_path: Path, role: AccessRole) -> None:
    with pytest.raises(UserError) as error:
        require_reading(record(tmp_path), role=role, tenant_id="ours", include_roles=(), sees_personal=True)
    assert error.value.code == "CaptureAccessDenied"


def test_for_another_tenant_a_capture_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        require_reading(
            record(tmp_path), role=AccessRole.ADMIN, tenant_id="theirs", include_roles=(), sees_personal=True
        )
    assert error.value.code == "CaptureNotFound"


def test_a_capture_that_shows_personal_columns_takes_a_role_that_may_ask_for_them(tmp_path: Path) -> None:
    shown = record(tmp_path, shows_personal=True)
    require_reading(shown, role=AccessRole.AUDITOR, tenant_id="ours", include_roles=["auditor"], sees_personal=True)
    with pytest.raises(UserError) as error:
        require_reading(shown, role=AccessRole.ADMIN, tenant_id="ours", include_roles=["auditor"], sees_personal=True)
    assert error.value.code == "CaptureAccessDenied"


def run_of(parts: list[Part], done: int) -> RunSnapshot:
    steps = tuple(
        StepSnapshot(str(seq), seq=seq, status=StepStatus.SUCCESS if seq <= done else StepStatus.PENDING)
        for seq in (1, 2, 3, 4)
    )
    refs = tuple(ArtifactRef(f"storage:{part.kind}/{part.name}", "trace-part") for part in parts)
    return RunSnapshot("run-1", steps=steps, artifacts=refs)


def parts_of(rows: int) -> list[Part]:
    """What a run has committed; the files are not there at all."""
    return [
        Part("input", "people", (PartFile("nowhere", rows, rows * 10, "", 0),), ()),
        Part("changes", "1-3", (PartFile("nowhere", rows, rows, ""),), (), seq=3, steps=(TracedStep(1, "update", ()),)),
        Part("changes", "4-4", (PartFile("nowhere", rows, rows, ""),), (), seq=4, steps=(TracedStep(4, "delete", ()),)),
    ]


@pytest.mark.parametrize("rows", [0, 1, 10**12])
def test_freezing_reads_no_row_and_tells_how_many_there_are(tmp_path: Path, rows: int) -> None:
    plan, parts = people_plan(tmp_path), parts_of(rows)
    ticket = freeze(plan, "greet::main::noted", 3, run_of(parts, done=3), parts)
    assert (ticket.rows, ticket.estimated_bytes) == (rows, rows * 11)
    assert ticket.parts == ("storage:input/people", "storage:changes/1-3", "storage:changes/4-4")
    assert (ticket.plan_digest, ticket.seq, ticket.run_id) == (plan.digest, 3, "run-1")


def test_a_point_is_reached_once_its_step_is_done() -> None:
    snapshot = run_of([], done=3)
    assert is_reached(snapshot, 3)
    assert not is_reached(snapshot, 4)
    assert not is_reached(snapshot, 99)


def test_a_sample_is_decided_by_run_and_row_alone() -> None:
    everything = list(range(100))
    found = sampled("run-1", everything, 10)
    assert found == sampled("run-1", reversed(everything), 10) == sorted(found)
    assert found != sampled("run-2", everything, 10)
    assert set(found) <= set(sampled("run-1", everything, 11))
    assert sampled("run-1", everything, 1000) == everything
    assert sampled("run-1", [], 10) == []
    assert len(rank("run-1", 5)) == 32
