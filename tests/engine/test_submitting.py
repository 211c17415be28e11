"""`spark-submit` of a command: on a standalone cluster, with the file that comes with Clew."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import clew
from clew.cli import submit
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.spark_servers import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SMALL = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.memory": "600m"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=1) as address:
        yield address


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A project whose workspace says that Spark is local."""
    arguments = {"assignments": [{"column": "amount", "expression": "amount * 2"}]}
    return make_shop(tmp_path / "shop").project("p", {"seq": 10, "name": "x", "type": "update", "arguments": arguments})


def submitted(shop: Shop, master: str, *options: str, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    program = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master, *options]
    for name, value in SMALL.items():
        program += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    program += [str(submit.__file__), *command, "-w", str(shop.root)]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)


def test_a_run_is_submitted_to_a_cluster(master: str, shop: Shop) -> None:
    done = submitted(shop, master, "--name", "nightly", command=("run", "p", "--period", "2026-01", "--json"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    run = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert run["status"] == "COMPLETED"
    assert [step["rows_updated"] for step in run["steps"]][-1] > 0
    assert clew.open(shop.root).get_run(run["run_id"]).status == "COMPLETED"


def test_the_exit_code_of_the_command_is_that_of_spark_submit(master: str, shop: Shop) -> None:
    done = submitted(shop, master, command=("run", "nothing", "--period", "2026-01"))
    assert done.returncode == 3
    assert "UnknownProject" in done.stdout  # spark-submit puts both streams of a program there


def test_a_standalone_cluster_takes_no_python_in_cluster_mode(master: str, shop: Shop) -> None:
    """As docs/platforms.md says: Spark itself refuses it."""
    done = submitted(shop, master, "--deploy-mode", "cluster", command=("run", "p", "--period", "2026-01"))
    assert done.returncode != 0
    assert "not supported for python applications on standalone clusters" in done.stderr
