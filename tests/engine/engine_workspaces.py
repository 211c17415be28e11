"""Workspaces with data in files, whose projects run as users run them: through the state store and the run loop."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from clew.api.run_view import RunReader, RunView
from clew.api.signalling import send_signal
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.runs.signals import SignalType
from clew.storage.root import StorageRoot

SHOP: dict[str, Any] = {
    "clew.yaml": {
        "name": "shop",
        "default_environment": "dev",
        "environments": {"dev": {"mode": "dev", "retry": {"max_attempts": 1}}},
    },
    "calendars/c.yaml": {
        "id": "c",
        "levels": ["year", "quarter", "month"],
        "generate": {"first_year": 2026, "last_year": 2026},
    },
    "datasources/data.yaml": {"id": "data", "type": "files", "options": {"root": "data"}},
    "datasources/reports.yaml": {"id": "reports", "type": "files", "options": {"root": "reports"}},
    "resolvers/r.yaml": {
        "id": "r",
        "is_default": True,
        "rules": [
            {"name": "a", "strategy": {"type": "path", "datasource_id": "data", "path": "{table}.csv", "format": "csv"}}
        ],
    },
    "datasets/orders.yaml": {
        "id": "orders",
        "natural_key": ["id"],
        "main_table": {
            "name": "orders",
            "temporal_mode": "period",
            "columns": [
                {"name": "id", "type": "integer", "nullable": False},
                {"name": "currency", "type": "string"},
                {"name": "amount", "type": "decimal(12,2)"},
            ],
        },
    },
    "datasets/rates.yaml": {
        "id": "rates",
        "main_table": {
            "name": "rates",
            "temporal_mode": "bitemporal",
            "columns": [{"name": "currency", "type": "string"}, {"name": "rate", "type": "decimal(9,4)"}],
        },
    },
    "datasets/targets.yaml": {
        "id": "targets",
        "main_table": {
            "name": "targets",
            "temporal_mode": "period",
            "columns": [{"name": "currency", "type": "string"}, {"name": "goal", "type": "integer"}],
        },
    },
}
DATA = {
    "data/orders.csv": "id,currency,amount,_period\n1,EUR,10.00,2026-01\n2,USD,20.00,2026-01\n3,EUR,30.00,2026-02\n",
    "data/rates.csv": (
        "currency,rate,_period_from,_period_to\nEUR,1.1000,2025-01-01,2026-02-01\nEUR,1.2000,2026-02-01,\nUSD,1,2025-01-01,\n"
    ),
    "data/targets.csv": "currency,goal,_period\nEUR,1,2026-01\nEUR,2,2026-02\nUSD,3,2026-01\n",
}

EXAMPLE = Path(__file__).parent.parent / "plan" / "example"
"""The worked example of the specification of operations."""
EXAMPLE_DATA = {
    "calendars/c.yaml": SHOP["calendars/c.yaml"],
    "data/orders.csv": (
        "order_id,customer_id,region,status,amount,_period\n"
        "1,7,EMEA,active,100.00,2026-01\n2,8,EMEA,active,0.00,2026-01\n"
        "3,7,APAC,closed,30.00,2026-01\n4,9,APAC,active,50.00,2026-01\n5,7,EMEA,active,1.00,2026-02\n"
    ),
    "data/customers.csv": "id,tier\n7,gold\n8,silver\n",
}


@dataclass(frozen=True)
class Shop:
    """A workspace of a test."""

    root: Path

    def write(self, files: Mapping[str, Any]) -> "Shop":
        for name, content in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            (self.root / name).write_text(text, encoding="utf-8")
        return self

    def project(self, name: str, *operations: Any, dataset: Any = "orders", **more: Any) -> "Shop":
        project = {"id": name, "status": "active", "input_dataset": dataset, "operations": list(operations), **more}
        return self.write({f"projects/{name}.yaml": project})

    @property
    def storage_root(self) -> StorageRoot:
        return Workspace(self.root).run_environment.storage_root

    @property
    def storage(self) -> Path:
        return Path(self.storage_root.address)

    @contextmanager
    def starter(self) -> Iterator[RunStarter]:
        workspace = Workspace(self.root)
        with open_state(workspace.run_environment) as state:
            yield RunStarter(workspace.files, workspace.run_environment, state)

    def submit(self, project: str, period: str = "2026-01") -> str:
        with self.starter() as starter:
            return starter.submit(project, period).run_id

    def drive(self, run_id: str) -> RunView:
        with self.starter() as starter:
            starter.drive(run_id, threading.Event())
            return RunReader(starter.state, starter.environment).view(run_id)

    def run(self, project: str, period: str = "2026-01") -> RunView:
        return self.drive(self.submit(project, period))

    def retry(self, view: RunView, step: int | str) -> RunView:
        run_id = view.record.run_id
        with self.starter() as starter:
            sent = send_signal(starter.state, starter.environment, run_id, SignalType.RETRY_STEP, step=str(step))
            assert sent.is_accepted, sent
        return self.drive(run_id)

    def read(self, path: str, format_: str = "parquet") -> list[dict[str, Any]]:
        """The rows of an output."""
        return list(ds.dataset(self.root / path, format=format_).to_table().to_pylist())

    def published(self) -> set[str]:
        """Every file that anybody can see outside the workspace's own folder, staging included."""
        folder = self.root / "reports"
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def make_shop(root: Path) -> Shop:
    return Shop(root).write({**SHOP, **DATA})
