"""Tables as tests make them with the formats' own connectors, and workspaces that read and write them."""

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.table_process import TableProcess

ORDERS = "id BIGINT, currency STRING, amount DECIMAL(12,2), _period STRING"


@dataclass(frozen=True)
class Table:
    """A table in a folder."""

    process: TableProcess = field(repr=False)
    format: str
    name: str
    """As SQL names it."""
    folder: Path

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements in which `{t}` stands for the table."""
        return self.process.sql(*(statement.replace("{t}", self.name) for statement in statements))

    def rows(self, columns: str = "*", at: str = "") -> list[tuple[Any, ...]]:
        """What the connector says is in it."""
        return sorted(self.sql(f"SELECT {columns} FROM {{t}} {at}"), key=repr)

    @property
    def version(self) -> int:
        """The newest version, as the connector says."""
        if self.format == "delta":
            return int(self.sql("DESCRIBE HISTORY {t} LIMIT 1")[0][0])
        return int(self.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at DESC LIMIT 1")[0][0])

    def travelled(self, version: int) -> str:
        """What goes behind the name of the table for a version."""
        return f"VERSION AS OF {version}"


@dataclass(frozen=True)
class Lake:
    """Where the tables of one test are."""

    process: TableProcess
    warehouse: Path
    format: str
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:12]}")

    @property
    def folder(self) -> Path:
        """The folder of its tables."""
        return self.warehouse / self.name

    def table(self, name: str) -> Table:
        """A table, whether it is there or not."""
        sql = f"lake.{self.name}.{name}" if self.format == "iceberg" else f"delta.`{self.folder / name}`"
        return Table(self.process, self.format, sql, self.folder / name)

    def create(
        self, name: str = "orders", columns: str = ORDERS, by: str = "", properties: dict[str, str] | None = None
    ) -> Table:
        """A new table without rows."""
        table = self.table(name)
        partitioned = f" PARTITIONED BY ({by})" if by else ""
        given = ", ".join(f"'{key}' = '{value}'" for key, value in (properties or {}).items())
        with_properties = f" TBLPROPERTIES ({given})" if given else ""
        table.sql(f"CREATE TABLE {{t}} ({columns}) USING {self.format}{partitioned}{with_properties}")
        return table

    def shop(self, root: Path, path: str = "{table}", **environment: Any) -> Shop:
        """A workspace whose orders are in a table."""
        strategy = {"type": "path", "datasource_id": "lake", "path": path, "format": self.format}
        settings = {**SHOP["clew.yaml"]["environments"]["dev"], **environment}
        return make_shop(root).write(
            {
                "clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": settings}},
                "datasources/lake.yaml": {"id": "lake", "type": "files", "options": {"root": str(self.folder)}},
                "datasets/orders.yaml": {**SHOP["datasets/orders.yaml"], "resolver_id": "lake"},
                "resolvers/lake.yaml": {"id": "lake", "rules": [{"name": "lake", "strategy": strategy}]},
            }
        )


def run_project(spark: SparkSession, root: str, project: str, period: str) -> str:
    """Run a project in the process of the session, and give the id of the run."""
    del spark
    return Shop(Path(root)).run(project, period).record.run_id


def ran(process: TableProcess, shop: Shop, project: str = "p", period: str = "2026-01") -> Run:
    """A run, as this process reads it, which has no Spark."""
    return Workspace(shop.root).get_run(process(run_project, str(shop.root), project, period))
