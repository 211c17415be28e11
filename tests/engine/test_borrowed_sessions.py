"""Sessions that belong to others: Clew works beside them, and leaves everything as it found it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = """
import json, logging, sys
from pyspark.sql import SparkSession
user = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").appName("notebook").getOrCreate()
user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
user.conf.set("spark.sql.ansi.enabled", "false")
user.range(3).createOrReplaceTempView("mine")

def state():
    settings = {row.key: row.value for row in user.sql("SET").collect()}
    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j")
    loggers = {name: logging.getLogger(name).level for name in names}
    views = sorted(table.name for table in user.catalog.listTables())
    active = SparkSession.getActiveSession() is user
    return settings, loggers, views, active, user.sql("SELECT 1/0").collect()[0][0]

before = state()
import clew
with clew.open(sys.argv[1]) as workspace:
    run = workspace.run("p", period="2026-01")
    tested = workspace.test()
after = state()
print(json.dumps({"status": run.status, "same": before == after, "differ": [
    (left, right) for left, right in zip(before, after) if left != right],
    "rows": user.table("mine").count(), "app": user.sparkContext.appName}, default=str))
user.stop()
"""
SUBMITTED = """
import json, sys
from pathlib import Path
from clew.api.workspace import Workspace
from clew.engine.session import session_of
spark = session_of(Workspace(Path(sys.argv[1])).run_environment)
context = spark.sparkContext
print("FOUND " + json.dumps([context.master, context.appName, spark.conf.get("spark.sql.ansi.enabled")]))
"""


def shop_in(folder: Path) -> Shop:
    update = {"seq": 10, "name": "x", "type": "update"}
    update["arguments"] = {"assignments": [{"column": "amount", "expression": "amount * 2"}]}
    return make_shop(folder).project("p", update)


def test_a_notebook_finds_its_session_as_it_was(tmp_path: Path) -> None:
    shop = shop_in(tmp_path / "shop")
    command = [sys.executable, "-c", NOTEBOOK, str(shop.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"status": "COMPLETED", "same": True, "differ": [], "rows": 3, "app": "notebook"}


def test_a_master_and_a_name_given_to_spark_submit_win(tmp_path: Path) -> None:
    shop = shop_in(tmp_path / "shop")
    script = tmp_path / "main.py"
    script.write_text(SUBMITTED, encoding="utf-8")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [str(submit), "--master", "local[1]", "--name", "nightly", "--conf", "spark.sql.ansi.enabled=false"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command += [str(script), str(shop.root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert json.loads(line.removeprefix("FOUND ")) == ["local[1]", "nightly", "true"]
