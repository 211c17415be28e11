"""A workspace in which every text that a user can write tries to be markup."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import open_workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef
from clew.plan import Plan
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.request import RunRecord
from clew.server.application import create_app
from clew.storage.parts import Part, part_to_json
from clew.storage.plans import kept_plan
from clew.storage.roots import storage_at
from tests.cli.cli_fake_engine import COUNTS, FakeEngine, FakeExecutor
from tests.server.server_fixtures import Served
from tests.trace.random_projects import PERIOD, compiled, interpreted
from tests.trace.trace_writer import TODAY, Writer

HOSTILE = """'"><script>window.hacked=1</script><img src=x onerror=window.hacked=1>&lt;{{7919*7907}}"""
FROM_RIGHT_TO_LEFT = f"إقفال الشهر {HOSTILE} إقفال"
"""A name after which a period must not be turned around."""
COLUMN = HOSTILE.replace("`", "")
DATASETS = {
    "main": {
        "columns": {"k": "integer", COLUMN: "string", "amount": "decimal(12,2)"},
        "mode": "period",
        "table": "t",
        "key": [COLUMN],
    },
    "dim": {"columns": {"code": "string", "label": "string"}, "mode": "none", "table": "dim"},
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "main": [
        {"k": number, COLUMN: f"{HOSTILE} {number}", "amount": Decimal("1.50"), "_period": PERIOD}
        for number in range(3)
    ],
    "dim": [{"code": f"{HOSTILE} 1", "label": HOSTILE}],
}
PROJECT = {
    "id": "p",
    "name": FROM_RIGHT_TO_LEFT,
    "description": HOSTILE,
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "operations": [
        {
            "seq": 10,
            "id": "step-10",
            "name": HOSTILE,
            "type": "update",
            "arguments": {
                "joins": [{"alias": "dim", "dataset_id": "dim", "on": f"dim.code = t.`{COLUMN}`"}],
                "assignments": [
                    {"column": "note", "expression": f'CONCAT(`{COLUMN}`, "{HOSTILE.replace(chr(34), chr(34) * 2)}")'},
                    {"column": "_labels", "expression": "dim.label"},
                ],
            },
        },
        {
            "seq": 20,
            "id": "step-20",
            "name": HOSTILE,
            "type": "aggregate",
            "arguments": {"group_by": ["_period"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]},
        },
        {
            "seq": 30,
            "id": "step-30",
            "name": HOSTILE,
            "type": "delete",
            "selector": f'`{COLUMN}` = "{HOSTILE.replace(chr(34), chr(34) * 2)} 2"',
        },
        {
            "seq": 40,
            "id": "step-40",
            "name": HOSTILE,
            "type": "output",
            "arguments": {
                "destination": {"datasource_id": "f", "path": "out/x", "format": "csv"},
                "columns": ["k", "note"],
            },
        },
    ],
}


@dataclass
class HostileEngine(FakeEngine):
    def open(self, run: RunRecord, snapshot: RunSnapshot) -> FakeExecutor:
        opened = super().open(run, snapshot)
        plan = kept_plan(storage_at(self.storage_root), run.request.plan.digest or "")
        return HostileExecutor(self, opened.steps, plan=plan, run_id=run.run_id)


@dataclass(kw_only=True)
class HostileExecutor(FakeExecutor):
    plan: Plan
    run_id: str

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id != "load":
            return super().execute(attempts, context)
        root = self.engine.storage_root
        writer = Writer(root, interpreted(self.plan, ROWS, TODAY), run_id=self.run_id)
        writer.write()
        return [StepOutput.success(*(self._described(root, part) for part in writer.parts), **COUNTS["load"])]

    def _described(self, root: Path, part: Part) -> ArtifactRef:
        path = root / "runs" / self.run_id / part.kind / part.name / "part.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(part_to_json(part)), encoding="utf-8")
        return ArtifactRef(f"storage:{path.relative_to(root)}", "trace-part")


@contextmanager
def hostile_site(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[Served, str]]:
    """A site with a completed run and, second, the id of one that has failed with a hostile message."""
    assert compiled(folder, PROJECT, DATASETS) is not None
    engine = HostileEngine(folder / ".clew" / "storage")
    patch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: engine)
    patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    with open_workspace(folder).following_files() as workspace:
        served = Served(workspace, create_app(workspace), "", engine)  # type: ignore[arg-type]
        run_id = served.starter.submit("p", PERIOD).run_id
        served.finish(run_id)
        engine.failing["20"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem=HOSTILE, hint=HOSTILE))
        failed = served.starter.submit("p", PERIOD, HOSTILE).run_id
        served.starter.drive(failed, threading.Event())
        yield Served(workspace, served.app, run_id, engine), failed  # type: ignore[arg-type]


class Inert(HTMLParser):
    """Finds what a page would run: scripts that are not files of this server, handlers, styles, unknown images."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "script" and not (named.get("src") or "").startswith("/static/"):
            self.alive.append(self.get_starttag_text() or tag)
        if tag in {"img", "iframe", "object", "embed", "base", "style"}:
            self.alive.append(self.get_starttag_text() or tag)
        for name, value in attrs:
            address = (value or "").strip().lower()
            if name.startswith("on") or name == "style" or address.startswith(("javascript:", "data:")):
                self.alive.append(f"{tag} {name}={value}")


def alive_in(page: str) -> list[str]:
    """What a page would run."""
    parser = Inert()
    parser.feed(page)
    return parser.alive
