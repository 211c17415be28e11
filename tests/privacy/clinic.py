"""A workspace full of canaries: values that are in personal, secret and public columns only, and found in any byte.

Two projects with joins, selectors, aggregates, an append, derived columns and a registered dataset; runs of both, a
postlude job with results, a capture that shows personal columns, and a run that failed on a public value.
"""

import hashlib
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.api.workspace import open_workspace
from clew.captures.manifests import CapturedColumn, CapturedFile, Manifest, Places
from clew.captures.queue import CaptureOutcome, CaptureRecord, JobReport
from clew.definitions.settings import CaptureMode
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH
from clew.runs.clock import utc_now
from clew.server.application import create_app
from clew.storage.local import LocalStorage
from tests.engine.engine_workspaces import SHOP, Shop
from tests.server.server_fixtures import Served
from tests.trace.interpreted_shop import output, setting, step
from tests.trace.interpreting_engine import InterpretingEngine, InterpretingExecutor

MONTH = "2026-01"
PUBLIC, PERSONAL, SECRET = "QXPUB", "QXPERS", "QXSEC"
"""In every text of a column of the class, and in what is made of it."""
SALARY, PIN = 7340021, 5918273
"""Digits that are in personal and secret numbers only."""
CANARIES = {
    "public": (PUBLIC,),
    "personal": (PERSONAL, str(SALARY), f"{SALARY:,}"),
    "secret": (SECRET, str(PIN), f"{PIN:,}"),
}


def _dataset(name: str, key: list[str], *columns: tuple[str, str, str | None], mode: str = "none") -> dict[str, Any]:
    listed = [{"name": n, "type": t, **({"privacy": p} if p else {})} for n, t, p in columns]
    return {"id": name, "natural_key": key, "main_table": {"name": name, "temporal_mode": mode, "columns": listed}}


FILES: dict[str, Any] = {
    **{name: content for name, content in SHOP.items() if not name.startswith("datasets/")},
    "datasets/patients.yaml": _dataset(
        "patients",
        ["name"],
        ("name", "string", "personal"),
        ("ward", "string", None),
        ("diagnosis", "string", "personal"),
        ("salary", "decimal(12,2)", "personal"),
        ("ssn", "string", "secret"),
        ("pin", "integer", "secret"),
        ("cost", "decimal(12,2)", None),
        mode="period",
    ),
    "datasets/wards.yaml": _dataset("wards", ["ward"], ("ward", "string", None), ("head", "string", "personal")),
    "datasets/contacts.yaml": _dataset("contacts", ["ssn"], ("ssn", "string", "secret"), ("region", "string", None)),
    "datasets/visitors.yaml": _dataset(
        "visitors", ["guest"], ("guest", "string", "personal"), ("spent", "decimal(12,2)", None), mode="period"
    ),
}
ROWS = 6
DATA: dict[str, list[dict[str, Any]]] = {
    "patients": [
        {
            "name": f"{PERSONAL}-name-{index}" + ("" if period == MONTH else "-later"),
            "ward": f"{PUBLIC}-ward-{index % 2}",
            "diagnosis": f"{PERSONAL}-diagnosis-{'long' * (index % 3)}",
            "salary": Decimal(f"{SALARY}.{index:02}"),
            "ssn": f"{SECRET}-ssn-{index}",
            "pin": PIN * 10 + index,
            "cost": Decimal(100 + index),
            "_period": period,
        }
        for period in (MONTH, "2026-02")
        for index in range(ROWS)
    ],
    "wards": [{"ward": f"{PUBLIC}-ward-{n}", "head": f"{PERSONAL}-head-{n}"} for n in range(2)],
    "contacts": [{"ssn": f"{SECRET}-ssn-{n}", "region": f"{PUBLIC}-region-{n}"} for n in range(ROWS)],
    "visitors": [{"guest": f"{PERSONAL}-guest-{n}", "spent": Decimal(7 + n), "_period": MONTH} for n in range(2)],
}
WARD = {"alias": "w", "dataset_id": "wards", "on": "w.ward = patients.ward"}
CONTACT = {"alias": "c", "dataset_id": "contacts", "on": "c.ssn = patients.ssn"}
CARE = (
    step(10, "Heads", "update", joins=[WARD], assignments=setting(head="w.head")),
    step(20, "Derive", "update", assignments=setting(greeting='CONCAT("Dear ", name)', code='CONCAT(ssn, "-", ward)')),
    step(30, "Flag", "update", "LEN(diagnosis) > 20", assignments=setting(risk='CONCAT(ward, " at risk")')),
    step(40, "Regions", "update", joins=[CONTACT], assignments=setting(region="c.region")),
    step(50, "Drop", "delete", 'name = "nobody"'),
    step(60, "Discharge", "delete", "salary - FLOOR(salary) > 0.04"),
    step(70, "By diagnosis", "aggregate", group_by=["diagnosis"], aggregations=setting(cost="SUM(cost)")),
    step(80, "Pay", "aggregate", group_by=["ward"], aggregations=setting(payroll="SUM(salary)", rows="COUNT_ALL()")),
    step(
        90,
        "Guests",
        "append",
        source={"dataset_id": "visitors"},
        aggregation={"group_by": [], "aggregations": setting(cost="SUM(spent)")},
    ),
    output(
        100,
        "Publish",
        "care/{period}",
        "cost > 101",
        columns=["name", "ward", "greeting", "code", "payroll", "cost", "_period"],
        register_as_dataset="cared",
    ),
)
REPORT = (
    step(10, "Total", "aggregate", group_by=["ward"], aggregations=setting(total="SUM(cost)", pay="SUM(payroll)")),
    output(20, "Out", "report/{period}", columns=["ward", "total", "pay", "greeting"]),
)
JOB = {
    "name": "Look",
    "tasks": [{"describe": {}}, {"topk": {"column": "ward", "k": 3}}],
}
OTHER = {"mode": "dev", "retry": {"max_attempts": 1}}


@dataclass(frozen=True)
class Clinic:
    """The workspace with its runs, served."""

    served: Served
    folder: Path
    care: str
    report: str
    failed: str
    capture: str

    @property
    def care_rows(self) -> list[str]:
        """The ids of all rows of the first run: loaded, deleted, created by steps."""
        trace = self.served.workspace.find_run(self.care).open_trace()
        return [row.row_id for row in trace.search(None, limit=1000).rows]

    @property
    def trace_ids(self) -> list[int]:
        trace = self.served.workspace.find_run(self.care).open_trace()
        found = [trace.history(row).trace_id for row in self.care_rows[:2]]
        return [each for each in found if each is not None]


def write_clinic(folder: Path, environment: Mapping[str, Any] | None = None) -> Shop:
    """The files of the workspace; `environment` is what dev says beside the usual."""
    settings = {**FILES["clew.yaml"]["environments"]["dev"], **(environment or {})}
    jobs = [{"after_request": [JOB]}] + [{}] * (len(CARE) - 1)
    operations = [{**each, **more} for each, more in zip(CARE, jobs, strict=True)]
    shop = Shop(folder).write(FILES)
    shop.write({"clew.yaml": {**FILES["clew.yaml"], "environments": {"dev": settings, "other": OTHER}}})
    return shop.project("care", *operations, dataset="patients").project("report", *REPORT, dataset="cared")


def _engine(failing: bool) -> Any:
    def engine(_workspace: object, environment: Any, datasets: Any, *_others: object, **_more: object) -> Any:
        made = InterpretingEngine(environment.storage_root, datasets, DATA)
        return FailingEngine(made) if failing else made

    return engine


def failing_engine() -> Any:
    """An engine whose runs fail in step 20."""
    return _engine(failing=True)


@dataclass
class FailingEngine:
    """Fails in step 20 with a message that quotes a public value, as the loading of real files does."""

    inner: InterpretingEngine

    def open(self, run: Any, snapshot: Any) -> "FailingExecutor":
        opened = self.inner.open(run, snapshot)
        return FailingExecutor(opened.engine, opened.run, opened.plan)


class FailingExecutor(InterpretingExecutor):
    def execute(self, attempts: Any, context: Any) -> Any:
        if attempts[0].step.step_id == "20":
            problem = f'column "ward" of "patients": "{PUBLIC}-ward-x" is not an integer, in row 3'
            raise UserError(SCHEMA_MISMATCH.anywhere(problem=problem))
        return super().execute(attempts, context)


@contextmanager
def opened_clinic(folder: Path, environment: Mapping[str, Any] | None = None) -> Iterator[Clinic]:
    """The workspace with its runs, and an application on it."""
    write_clinic(folder, environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
        patch.setattr("clew.api.starting.SparkExecutors", _engine(failing=False))
        with open_workspace(folder).following_files() as workspace:
            served = Served(workspace, create_app(workspace), "", None)  # type: ignore[arg-type]
            care = _ran(served, "care", MONTH)
            report = _ran(served, "report", MONTH)
            patch.setattr("clew.api.starting.SparkExecutors", _engine(failing=True))
            failed = _ran(served, "care", "2026-02")
            patch.setattr("clew.api.starting.SparkExecutors", _engine(failing=False))
            served = replace(served, run_id=care)
            _job_done(served, care)
            yield Clinic(served, folder, care, report, failed, _captured(served, care))


def _ran(served: Served, project: str, period: str) -> str:
    run = served.starter.submit(project, period)
    served.starter.drive(run.run_id, threading.Event())
    return run.run_id


def _job_done(served: Served, run_id: str) -> None:
    """What a job with all columns in clear has found, as jobs of older versions may have."""
    store = served.state.captures
    [job] = [each for each in store.of_run(run_id) if each.kind == "job"]
    columns = [
        {"name": name, "type": "string", "rows": 6, "nulls": 0, "distinct": 2, "min": f"{marker}-min", "max": None}
        for name, marker in (("ward", PUBLIC), ("name", PERSONAL), ("ssn", SECRET))
    ]
    results = (
        {"task": "describe", "rows": 6, "columns": columns},
        {"task": "topk", "column": "ward", "values": [{"value": f"{PUBLIC}-top", "count": 3}]},
        {"task": "topk", "column": "greeting", "values": [{"value": f"Dear {PERSONAL}-top", "count": 3}]},
        {"task": "histogram", "column": "pin", "bins": [{"low": PIN, "high": PIN + 1, "count": 3}]},
    )
    outcome = CaptureOutcome(job=JobReport(job.slot, "Look", results=results))
    store.drop(job.capture_id, outcome)


def _captured(served: Served, run_id: str) -> str:
    """A capture that shows personal columns as they are."""
    places, made = Places(served.environment), utc_now()
    new = CaptureRecord(
        kind="capture",
        slot="one",
        tenant_id="default",
        run_id=run_id,
        request_id="r",
        breakpoint="care::main::x",
        seq=20,
    )
    folder = Path(places.captures(None).below(new.capture_id).address)
    folder.mkdir(parents=True)
    rows = pa.table({"_row_id": ["r-1"], "name": [f"{PERSONAL}-captured"], "ward": [f"{PUBLIC}-captured"]})
    pq.write_table(rows, folder / "p.parquet")
    content = (folder / "p.parquet").read_bytes()
    file = CapturedFile("p.parquet", 1, len(content), hashlib.sha256(content).hexdigest())
    manifest = Manifest(
        capture_id=new.capture_id,
        run_id=run_id,
        request_id="r",
        environment="dev",
        project="care",
        period=MONTH,
        breakpoint=new.breakpoint,
        seq=20,
        plan_digest="0" * 64,
        mode=CaptureMode.FULL_VIEW,
        asked=CaptureMode.FULL_VIEW,
        columns=(CapturedColumn("name", "string"), CapturedColumn("ward", "string")),
        rows=1,
        size=1,
        files=(file,),
        digest="0" * 64,
        folder=places.shown(LocalStorage(folder)),
        shows_personal=True,
        created_at=made,
        expires_at=made + timedelta(days=1),
    )
    return served.state.captures.publish(new, manifest).capture_id


def copied(folder: Path, target: Path) -> Path:
    """A copy of a workspace, to change it."""
    return Path(shutil.copytree(folder, target))


def leaked(content: bytes | str, *classes: str) -> list[str]:
    """The canaries of these classes that are in some bytes."""
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    return [canary for name in classes for canary in CANARIES[name] if canary in text]
