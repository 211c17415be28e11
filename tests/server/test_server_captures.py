"""Captures over HTTP: read by those who have the right, and every reading on record."""

import hashlib
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.auth.roles import AccessRole, Permission
from clew.captures.manifests import CapturedColumn, CapturedFile, Manifest, Places
from clew.captures.queue import CaptureRecord
from clew.definitions.settings import CaptureMode
from clew.runs.clock import utc_now
from clew.storage.local import LocalStorage
from tests.server.server_fixtures import MONTH, OpenSite, Served

PERSONAL = "    captures: {personal_columns: include, include_roles: [auditor]}\n"


def capture(
    served: Served,
    *amounts: int,
    slot: str = "one",
    shows_personal: bool = False,
    days: int = 1,
    tenant: str = "default",
    point: str = "gl-close::fx::converted",
) -> str:
    """A capture of three rows that is ready; its id."""
    places, made = Places(served.environment), utc_now()
    new = CaptureRecord(
        kind="capture",
        slot=slot,
        tenant_id=tenant,
        run_id=served.run_id,
        request_id="r",
        breakpoint=point,
        seq=10,
    )
    folder = Path(places.captures(None).below(new.capture_id).address)
    manifest = Manifest(
        capture_id=new.capture_id,
        run_id=served.run_id,
        request_id="r",
        environment="dev",
        project="gl-close",
        period=MONTH,
        breakpoint=new.breakpoint,
        seq=10,
        plan_digest="0" * 64,
        mode=CaptureMode.FULL_VIEW,
        asked=CaptureMode.FULL_VIEW,
        columns=(CapturedColumn("journal_id", "string"), CapturedColumn("amount_usd", "decimal(18,2)")),
        natural_key=("journal_id",),
        rows=len(amounts),
        size=1,
        files=(_file(folder, amounts),),
        digest="0" * 64,
        folder=places.shown(LocalStorage(folder)),
        shows_personal=shows_personal,
        created_at=made,
        expires_at=made + timedelta(days=days),
    )
    return served.state.captures.publish(new, manifest).capture_id


def _file(folder: Path, amounts: tuple[int, ...]) -> CapturedFile:
    folder.mkdir(parents=True)
    numbers = range(len(amounts))
    columns = {
        "_row_id": pa.array([f"row-{n}" for n in numbers], pa.string()),
        "journal_id": pa.array([f"JE-{n}" for n in numbers], pa.string()),
        "amount_usd": pa.array([Decimal(amount) for amount in amounts], pa.decimal128(18, 2)),
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    content = (folder / "rows.parquet").read_bytes()
    return CapturedFile("rows.parquet", len(amounts), len(content), hashlib.sha256(content).hexdigest())


PATHS = ("", "/rows", "/diff/ID", "/report")


@pytest.mark.parametrize("role", [role.value for role in AccessRole])
def test_only_those_with_the_right_read_a_capture(served: Served, role: str) -> None:
    capture_id = capture(served, 10, 20, 30)
    client = served.client(role)
    may = Permission.READ_CAPTURES in AccessRole(role).permissions
    for path in PATHS:
        answer = client.get(f"/api/v1/captures/{capture_id}{path}".replace("ID", capture_id))
        assert answer.status_code == (200 if may else 403)
        assert ("JE-0" in answer.text) <= may
    listed = client.get("/api/v1/captures")
    assert listed.status_code == (200 if may else 403)


def test_nobody_of_another_tenant_reads_a_capture_whatever_their_role(served: Served) -> None:
    capture_id = capture(served, 10)
    client = served.client("admin", tenant="rivals")
    for path in PATHS:
        assert client.get(f"/api/v1/captures/{capture_id}{path}".replace("ID", capture_id)).status_code in {403, 404}
    theirs = capture(served, 10, slot="theirs", tenant="rivals")
    ours = served.client("admin")
    missing = ours.get(f"/api/v1/captures/{theirs}")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "CaptureNotFound")
    assert [each["capture_id"] for each in ours.get("/api/v1/captures").json()["captures"]] == [capture_id]


def test_personal_columns_are_for_the_roles_that_the_environment_names(serve_with: OpenSite) -> None:
    served = serve_with(extra=PERSONAL)
    capture_id = capture(served, 10, shows_personal=True)
    path = f"/api/v1/captures/{capture_id}/rows"
    refused = served.client("engineer").get(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "CaptureAccessDenied")
    assert served.client("auditor").get(path).status_code == 200


def test_every_reading_of_a_capture_is_on_record(served: Served) -> None:
    capture_id, other = capture(served, 10), capture(served, 11, slot="two")
    auditor = served.client("auditor")
    auditor.get(f"/api/v1/captures/{capture_id}")
    auditor.get(f"/api/v1/captures/{capture_id}/rows", params={"limit": 7})
    auditor.get(f"/api/v1/captures/{capture_id}/diff/{other}")
    served.client("viewer").get(f"/api/v1/captures/{capture_id}")
    log = served.client("admin").get("/api/v1/audit", params={"subject_id": capture_id}).json()["records"]
    assert [(each["actor"], each["subject"], each["detail"]) for each in log] == [
        ("the auditor", "capture", f"compared with {other}; returned 1 row of journal_id, amount_usd"),
        ("the auditor", "capture", "first 7 rows; returned 1 row of _row_id, journal_id, amount_usd"),
        ("the auditor", "capture", "statistics; returned 0 rows of journal_id, amount_usd"),
    ]


def test_rows_statistics_and_differences_are_given(served: Served) -> None:
    before, after = capture(served, 10, 20), capture(served, 10, 25, slot="two")
    client = served.client("auditor")
    rows = client.get(f"/api/v1/captures/{before}/rows").json()["rows"]
    assert [(row["journal_id"], row["amount_usd"]) for row in rows] == [("JE-0", "10.00"), ("JE-1", "20.00")]
    shown = client.get(f"/api/v1/captures/{before}").json()
    assert (shown["status"], shown["rows"]) == ("ready", 2)
    assert {column["name"] for column in shown["statistics"]["columns"]} == {"journal_id", "amount_usd"}
    diff = client.get(f"/api/v1/captures/{before}/diff/{after}", params={"key": "journal_id"}).json()
    assert diff["changed"] == 1
    report = client.get(f"/api/v1/captures/{before}/report")
    assert report.headers["content-disposition"] == f'attachment; filename="{before}.html"'


def test_a_capture_whose_time_is_over_is_gone(served: Served) -> None:
    capture_id = capture(served, 10, days=-1)
    answer = served.client("auditor").get(f"/api/v1/captures/{capture_id}/rows")
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "CaptureExpired")


def test_a_part_of_an_id_finds_no_capture(served: Served) -> None:
    capture_id = capture(served, 10)
    assert served.client("admin").get(f"/api/v1/captures/{capture_id[:-1]}").status_code == 404


def test_a_run_can_be_asked_for_with_captures(served: Served) -> None:
    wish = {"project": "gl-close", "period": MONTH, "request_id": "captured", "captures": ["converted=stats"]}
    started = served.client("engineer").post("/api/v1/runs", json=wish)
    assert started.status_code == 202, started.text
    [listed] = (
        served.client("auditor").get("/api/v1/captures", params={"run": started.json()["run_id"]}).json()["captures"]
    )
    assert (listed["breakpoint"], listed["asked_mode"]) == ("gl-close::fx::converted", "stats")
    unknown = served.client("engineer").post("/api/v1/runs", json={**wish, "captures": ["nowhere"]})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "UnknownBreakpoint")
