"""Codes that few tests meet, each told by the outermost door that it can reach: a command, Python or a server."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import clew
from clew.api.workspace import Workspace
from clew.captures.manifests import Manifest
from clew.captures.queue import CaptureRecord, CaptureStatus
from clew.change.material import Edit, Material
from clew.cli.main import run as command
from clew.diagnostics import ClewError
from clew.runs.clock import utc_now
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from clew.tracelink import Bounds, FrameDescriptor
from tests.captures.captured_files import captured
from tests.faults.calls import Calls
from tests.faults.calls import sql as failing_sql
from tests.plan.plan_workspaces import BASE, TinyWorkspace, project_text
from tests.trace.interpreted_shop import Ran, ran_shop

Says = Callable[..., str]
"""A command in the copy of the shop, as its words: the codes that it names, if it fails."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def site(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shop, for one test to spoil."""
    shutil.copytree(ran.shop.root, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    def call(*arguments: str) -> str:
        code = command(list(arguments))
        told = capsys.readouterr()
        assert code != 0, told.out
        return told.err

    return call


def store_of(site: Path) -> Path:
    return site / ".clew" / "state.db"


def sql(site: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store_of(site))) as database:
        for (guard,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {guard}")
        for statement in statements:
            assert database.execute(statement).rowcount != 0, statement
        database.commit()


def test_a_store_of_a_newer_version(site: Path, says: Says) -> None:
    sql(site, "INSERT INTO schema_version (version) VALUES (9999)")
    assert "error StoreTooNew: the state store has schema version 9999" in says("runs")


def test_a_store_that_is_no_database(site: Path, says: Says) -> None:
    store_of(site).write_text("id;amount\n" * 500)
    assert "error StoreUnreadable: " in says("runs")


def test_a_key_that_is_too_short(site: Path, ran: Ran, says: Says) -> None:
    [key] = site.glob(".clew/**/*.key")
    key.write_text("abcd\n")
    assert "error InvalidSealKey: " in says("verify", ran.january)


def test_a_parameter_without_a_value(site: Path, says: Says) -> None:
    tiny = TinyWorkspace(site / "tiny")
    text = project_text("- {seq: 1, name: drop, type: delete}", more="parameters: {least: {type: integer}}\n")
    months = "id: m\nlevels: [year, month]\ngenerate: {first_year: 2026, last_year: 2026}\n"
    tiny.write({**BASE, "projects/p.yaml": text, "calendars/months.yaml": months})
    assert "error MissingParameter: " in says("run", "p", "--period", "2026-01", "--workspace", str(tiny.root))


def test_an_address_and_a_stage_that_cannot_be(site: Path, says: Says) -> None:
    assert "error AddressUnusable: " in says("collect", "--bind", "nowhere")
    assert "error InvalidStage: expected STREAM=STAGE" in says("collect", "--stage", "seven")


def test_a_check_that_a_run_does_not_have(site: Path, ran: Ran) -> None:
    with clew.open(site) as workspace, pytest.raises(ClewError) as refused:
        workspace.get_run(ran.january).failing_rows("nothing")
    assert refused.value.code == "UnknownCheck"


def test_evidence_of_more_than_a_pack_holds(site: Path, ran: Ran, says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.explain.explaining.MOST_EVIDENCE", 1)
    told = says("evidence", ran.report, "--where", 'total IS NOT NULL AND currency = "EUR"', "total", "-o", "pack.zip")
    assert "error EvidenceTooLarge: " in told


def kept_capture(workspace: Workspace, name: str, run_id: str) -> tuple[Path, Manifest]:
    """A capture of two rows that is ready to be read."""
    folder = workspace.root / ".clew" / "storage" / "captures" / name
    manifest = replace(
        captured(folder, {"id": "integer"}, [[1], [2]], run_id=run_id).manifest,
        capture_id=name,
        folder=f".clew/storage/captures/{name}",
        expires_at=utc_now() + timedelta(days=1),
    )
    record = CaptureRecord(
        capture_id=name,
        kind="capture",
        slot="a",
        tenant_id="default",
        run_id=run_id,
        request_id="r",
        breakpoint="close::main::a",
        seq=10,
        status=CaptureStatus.READY,
        request=None,
    )
    with workspace._access.opened() as at:
        at.state.captures.publish(record, manifest)
    return folder, manifest


def test_a_capture_that_was_changed(site: Path, ran: Ran) -> None:
    with clew.open(site) as workspace:
        folder, manifest = kept_capture(workspace, "c1", ran.january)
        assert workspace.capture("c1").to_arrow().num_rows == 2
        [file] = manifest.files
        (folder / file.path).write_bytes((folder / file.path).read_bytes() + b"\0")
        with pytest.raises(ClewError) as refused:
            workspace.capture("c1").to_arrow()
    assert refused.value.code == "CaptureDamaged"


def test_captures_of_two_runs_without_a_key_in_common(site: Path, ran: Ran, says: Says) -> None:
    with clew.open(site) as workspace:
        kept_capture(workspace, "c1", ran.january)
        kept_capture(workspace, "c2", ran.february)
    assert "error NoCommonKey: the captures are of different runs" in says("capture", "diff", "c1", "c2")
    assert 'not both captures have a column "ids"' in says("capture", "diff", "c1", "c2", "--key", "ids")


def test_a_number_that_is_longer_than_trace_ids(site: Path) -> None:
    with clew.open(site) as workspace, pytest.raises(ClewError) as refused:
        workspace.lineage(1 << 64)
    assert refused.value.code == "StoreRefusedValue"


def test_a_method_that_an_address_does_not_have(site: Path) -> None:
    with clew.open(site) as workspace:
        client = TestClient(create_app(workspace, ServerSettings()), base_url="http://127.0.0.1:8765")
        answer = client.put("/api/v1/openapi.json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "MethodNotAllowed")


def test_a_value_that_is_another_when_it_is_calculated_again(
    site: Path, ran: Ran, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    calculated = Material.value

    def wrong(self: Material, made: frozenset[Edit]) -> Decimal:
        return calculated(self, made) + 1

    monkeypatch.setattr(Material, "value", wrong)
    told = says("why-changed", ran.january, ran.february, "usd", "--where", 'currency = "EUR"')
    assert "error RecomputationDiffers: " in told


def test_a_tag_of_a_table_that_cannot_be_removed(
    site: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_place: object, _tag: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("clew.storage.tables.iceberg_tags.held_tags", lambda _details: [(str(site), "kept")])
    monkeypatch.setattr("clew.storage.tables.iceberg_tags.remove_tag", refused)
    assert command(["rm", ran.report, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert f"the tag kept of the table {site} could not be removed: Permission denied" in json.dumps(told)


def test_a_store_without_room(site: Path, says: Says) -> None:
    with failing_sql(Calls("sql", site, 1, "full", lambda name: name == "commit")):
        assert "error StoreFull: " in says("token", "create", "ada")


def test_an_event_of_a_newer_version(site: Path, ran: Ran, says: Says) -> None:
    sql(site, f"UPDATE run_events SET event_version = 99 WHERE run_id = '{ran.failed}'")
    assert "error EventTooNew: " in says("events", ran.failed)


def test_bounds_and_messages_that_cannot_be() -> None:
    with pytest.raises(ClewError) as refused:
        Bounds()
    assert refused.value.code == "InvalidBounds"
    with pytest.raises(ClewError) as broken:
        FrameDescriptor.decode(b"\0")
    assert broken.value.code == "InvalidTraceMessage"
