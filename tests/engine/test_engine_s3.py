"""The sample with storage, data and outputs on S3: Spark runs it, and a process without Spark explains it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.definitions.storage_addresses import RemoteAddress
from clew.storage.object_store import ObjectStorage
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_jars import s3_jars
from tests.engine.spark_servers import needs_namespaces, standalone_cluster
from tests.storage.moved_to_s3 import settings_on_s3
from tests.storage.s3_server import KEYS, S3Server
from tests.storage.sample_on_a_store import sample_on_a_store
from tests.store.store_postgres import postgres_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RUN_ONE = """
import json, sys, clew
print(json.dumps(clew.open(sys.argv[1]).run("p", period="2026-01").to_json()))
"""

RUN = """
import json, sys, clew
ws = clew.open(sys.argv[1])
print(json.dumps([ws.run(project, period="2026-01").to_json() for project in ("gl-close", "group-report")]))
"""


@pytest.fixture
def jars() -> list[str]:
    return s3_jars()


def in_process(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LEDGER_KEYS": KEYS, "LEDGER_SEAL": "5e" * 32},
        cwd=folder,
    )


LOCAL = {"master": "local[2]", "config": {"spark.driver.memory": "1g"}}


def on_s3(
    folder: Path,
    root: ObjectStorage,
    endpoint: str,
    jars: list[str],
    spark: Mapping[str, Any] = LOCAL,
    **more: Any,
) -> None:
    """The sample, with everything but definitions and state in a bucket."""
    access = {
        "endpoint": endpoint,
        "region": "us-east-1",
        "path_style": True,
        "credential_ref": "secret://env/LEDGER_KEYS",
    }
    sample_on_a_store(folder, root, object_store=access, spark={**spark, "jars": jars}, **more)


def test_the_sample_runs_on_s3_and_is_explained_from_the_bucket_and_the_state_store_alone(
    tmp_path: Path, s3: S3Server, jars: list[str]
) -> None:
    root = ObjectStorage(RemoteAddress("s3", s3.new_bucket(), "clew"), s3.access)
    workspace = tmp_path / "workspace"
    on_s3(workspace, root, s3.endpoint, jars)
    ran = in_process("-c", RUN, str(workspace), folder=workspace)
    assert ran.returncode == 0, ran.stderr[-3000:]
    close, report = json.loads(ran.stdout.splitlines()[-1])
    assert (close["status"], report["status"]) == ("COMPLETED", "COMPLETED"), (close, report)
    assert not (workspace / "s3:").exists()
    assert not (workspace / "out").exists()
    assert not (workspace / ".clew" / "storage").exists()
    written = [file.key for file in root.files("out")]
    assert any(key.endswith("_SUCCESS") for key in written), written
    assert any(key.endswith(".parquet") for key in written), written
    for text in (ran.stdout, ran.stderr, *(file.read_text(errors="replace") for file in workspace.rglob("*.db"))):
        assert not any(part in text for part in KEYS.split(":"))

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(workspace, elsewhere)
    shutil.rmtree(workspace)
    asked = ("explain", close["run_id"], "--where", 'row_kind = "total" AND account_type = "expense"', "total_usd")
    told = in_process("-m", "clew.cli", *asked, folder=elsewhere)
    assert told.returncode == 0, told.stderr[-3000:]
    assert "journal_2026-01.csv" in told.stdout
    found = in_process(
        "-m", "clew.cli", "trace", close["run_id"], "--where", 'journal_id = "JE-00001"', folder=elsewhere
    )
    assert found.returncode == 0, found.stderr[-3000:]
    # A row of another month: it is found in the bucket, in a file that this run did not read.
    other = root.read_bytes("data/journal/journal_2026-02.csv").decode().splitlines()[1].split(",")[0]
    missing = in_process(
        "-m", "clew.cli", "explain", close["run_id"], "--why-not", f'journal_id = "{other}"', folder=elsewhere
    )
    assert "journal_2026-02.csv" in missing.stdout, missing.stdout + missing.stderr


@dataclass(frozen=True)
class Cluster:
    """A cluster whose workers see nothing but a bucket, and a database for state."""

    folder: Path
    """For workspaces; workers find it empty."""
    spark: Mapping[str, Any]
    database: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("workspaces")
    hidden = standalone_cluster(tmp_path_factory.mktemp("cluster"), hidden=[folder])
    with postgres_server() as database, hidden as master:
        config = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "700m",
            "spark.driver.host": "127.0.0.1",
        }
        yield Cluster(folder, {"master": master, "config": config}, database.url)


@pytest.mark.postgres
@needs_namespaces
def test_the_sample_runs_on_a_cluster_whose_workers_see_nothing_but_the_bucket(
    cluster: Cluster, s3: S3Server, jars: list[str], tmp_path: Path
) -> None:
    """Storage, data and outputs on S3, state in PostgreSQL, and an empty folder in the place of the workspace.

    The explanation comes from a folder that has neither: only the addresses of bucket and database.
    """
    root = ObjectStorage(RemoteAddress("s3", s3.new_bucket(), "clew"), s3.access)
    workspace = cluster.folder / "sample"
    sealed = {"key_ref": "secret://env/LEDGER_SEAL"}
    on_s3(workspace, root, s3.endpoint, jars, cluster.spark, state_store=cluster.database, evidence=sealed)
    ran = in_process("-c", RUN, str(workspace), folder=workspace)
    assert ran.returncode == 0, ran.stderr[-3000:]
    close, report = json.loads(ran.stdout.splitlines()[-1])
    assert (close["status"], report["status"]) == ("COMPLETED", "COMPLETED"), (close, report)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(workspace / "clew.yaml", elsewhere)
    shutil.rmtree(workspace)
    asked = ("explain", close["run_id"], "--where", 'row_kind = "total" AND account_type = "expense"', "total_usd")
    told = in_process("-m", "clew.cli", *asked, folder=elsewhere)
    assert told.returncode == 0, told.stderr[-3000:]
    assert "total_usd = 737,127.41" in told.stdout
    assert "journal_2026-01.csv line" in told.stdout


ORDERS_PER_FILE = 40
LOCAL_FILES = 11
"""More than are compared by content: the others are told apart by their state."""


def shop_with_local_sources(folder: Path, root: ObjectStorage, endpoint: str, spark: Mapping[str, Any]) -> Shop:
    """Orders in many CSV files and rates in Parquet, on the disk of the driver alone; storage and outputs on S3."""
    rule = {"type": "path", "datasource_id": "data"}
    many = {"name": "many", "strategy": {**rule, "path": "orders", "format": "csv"}}
    one = {"name": "one", "strategy": {**rule, "path": "rates 100%.parquet", "format": "parquet"}}
    settings = {"name": "shop", "environments": {"dev": {**settings_on_s3(root, endpoint), "spark": spark}}}
    shop = make_shop(folder).write(
        {
            "clew.yaml": settings,
            "resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [many]},
            "resolvers/one.yaml": {"id": "one", "rules": [one]},
            "datasets/rates.yaml": {**SHOP["datasets/rates.yaml"], "resolver_id": "one"},
            "datasources/reports.yaml": {
                "id": "reports",
                "type": "files",
                "options": {"root": f"s3://{root.place.store}/reports"},
            },
            **{f"data/orders/o {number:02}.csv": orders_of(number) for number in range(LOCAL_FILES)},
        }
    )
    rates = {"currency": ["EUR", "USD"], "rate": [Decimal("1.1000"), Decimal("1.0000")]}
    rates |= {"_period_from": [date(2025, 1, 1)] * 2, "_period_to": pa.nulls(2, pa.date32())}
    pq.write_table(pa.table(rates), folder / "data" / "rates 100%.parquet")
    join = {"alias": "r", "dataset_id": "rates", "on": "r.currency = orders.currency"}
    totals = {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(usd)"}]}
    update = {"joins": [join], "assignments": [{"column": "usd", "expression": "ROUND(amount * r.rate, 2)"}]}
    destination = {"datasource_id": "reports", "path": "out", "format": "parquet"}
    return shop.project(
        "p",
        {"seq": 10, "name": "Convert", "type": "update", "arguments": update},
        {"seq": 20, "name": "Totals", "type": "aggregate", "arguments": totals},
        {"seq": 30, "name": "Out", "type": "output", "arguments": {"destination": destination}},
    )


def orders_of(number: int) -> str:
    first = number * ORDERS_PER_FILE
    lines = (f"{order},{'EUR' if order % 2 else 'USD'},{order}.50,2026-01" for order in range(first, first + 40))
    return "id,currency,amount,_period\n" + "\n".join(lines) + "\n"


@pytest.mark.postgres
@needs_namespaces
def test_sources_that_only_the_driver_sees_are_uploaded_and_explained_by_their_own_names(
    cluster: Cluster, s3: S3Server, jars: list[str]
) -> None:
    root = s3.storage()
    spark = {**cluster.spark, "jars": jars}
    shop = shop_with_local_sources(cluster.folder / "shop", root, s3.endpoint, spark)
    ran = in_process("-c", RUN_ONE, str(shop.root), folder=shop.root)
    assert ran.returncode == 0, ran.stderr[-3000:]
    run = json.loads(ran.stdout.splitlines()[-1])
    assert run["status"] == "COMPLETED", run
    told = in_process("-m", "clew.cli", "explain", run["run_id"], "--where", "id = 401", "usd", folder=shop.root)
    assert told.returncode == 0, told.stderr[-3000:]
    assert "usd = 441.65" in told.stdout  # 401.50 EUR at 1.1
    assert "orders/o 10.csv line 3" in told.stdout, told.stdout
    assert "rates 100%.parquet" in told.stdout, told.stdout
    descriptions = [
        json.loads(root.read_bytes(file.key))
        for file in root.files("runs")
        if "/input/" in file.key and file.name == "part.json"
    ]
    sources = {source["name"]: source for each in descriptions for source in each["sources"]}
    assert len(sources) == LOCAL_FILES + 1
    for name, source in sources.items():
        content = (shop.root / "data" / name).read_bytes()
        assert (source["size"], source["digest"]) == (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
    assert not [file.key for file in root.files("runs") if "/scratch/" in file.key]
