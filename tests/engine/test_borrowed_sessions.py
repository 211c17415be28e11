"""Sessions that belong to others: Clew works beside them, and leaves everything as it found it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_servers import connect_server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = """
import json, logging, os, signal, sys
from pyspark.sql import SparkSession
user = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").appName("notebook").getOrCreate()
context, jvm = user.sparkContext, user._jvm
user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
user.conf.set("spark.sql.ansi.enabled", "false")
user.range(3).createOrReplaceTempView("mine")
user.range(4).createOrReplaceGlobalTempView("everyones")
user.udf.register("twice", lambda number: number * 2, "int")
user.table("mine").cache().count()
context.setJobGroup("my-group", "my words")
context.setLocalProperty("spark.scheduler.pool", "mine")
user.addTag("my-tag")

BUS = "org.apache.spark.sql.util.ExecutionListenerBus"  # Spark itself gives one to every session, also to Clew's

def names(listeners):
    return sorted(each.getClass().getName() for each in listeners)

def state():
    hadoop = context._jsc.hadoopConfiguration().iterator()
    entries = {}
    while hadoop.hasNext():
        entry = hadoop.next()
        entries[entry.getKey()] = entry.getValue()
    return {
        "settings": {row.key: row.value for row in user.sql("SET").collect()},
        "context": dict(context.getConf().getAll()),
        "hadoop": entries,
        "views": sorted(table.name for table in user.catalog.listTables()),
        "shared views": sorted(table.name for table in user.catalog.listTables("global_temp")),
        "functions": sorted(each.name for each in user.catalog.listFunctions() if each.isTemporary),
        "catalog": [user.catalog.currentCatalog(), user.catalog.currentDatabase()],
        "cached": user.catalog.isCached("mine"),
        "context listeners": [name for name in names(context._jsc.sc().listenerBus().listeners()) if name != BUS],
        "query listeners": names(user._jsparkSession.listenerManager().listListeners()),
        "stream listeners": names(user._jsparkSession.streams().listListeners()),
        "properties": [context.getLocalProperty(name) for name in
            ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool", "spark.job.interruptOnCancel")],
        "tags": sorted(user.getTags()),
        "loggers": {name: logging.getLogger(name).level for name in
            ("", "DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j", "pyspark")},
        "log level": str(jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()),
        "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)],
        "active": [SparkSession.getActiveSession() is user, SparkSession.active() is user],
        "meaning": user.sql("SELECT 1/0").collect()[0][0],
    }

import clew
def sessions():
    return names(context._jsc.sc().listenerBus().listeners()).count(BUS)

found = {"before": sorted(state()), "sessions": [sessions()]}
with clew.open(sys.argv[1]) as workspace:
    def completed():
        workspace.test()
        return workspace.run("p", period="2026-01")

    def failed():
        return workspace.run("bad", period="2026-01")

    def interrupted():
        run = workspace.submit("p", "2026-02")
        # Control-C while the run is under way: the signal, not a stand-in for it.
        run.drive(watch=lambda event: os.kill(os.getpid(), signal.SIGINT) if event.body.NAME == "RunStarted" else None)
        return run.refreshed()

    for each in (completed, failed, interrupted):
        before = state()
        run = each()
        after = state()
        found["sessions"].append(sessions())
        found[each.__name__] = [run.status, [
            (what, before[what], after[what]) for what in before if before[what] != after[what]]]
found["rows"] = [user.table("mine").count(), user.table("global_temp.everyones").count(),
    user.sql("SELECT twice(2)").collect()[0][0], context.appName]
print(json.dumps(found, default=str))
user.stop()
"""
CONNECTED = """
import json, os, signal, sys
from pyspark.sql import SparkSession
user = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
user.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
user.conf.set("spark.sql.ansi.enabled", "false")
user.range(3).createOrReplaceTempView("mine")
user.addTag("my-tag")

def state():
    return {
        "settings": {row.key: row.value for row in user.sql("SET").collect()},
        "views": sorted(table.name for table in user.catalog.listTables()),
        "catalog": [user.catalog.currentCatalog(), user.catalog.currentDatabase()],
        "tags": sorted(user.getTags()),
        "active": [SparkSession.getActiveSession() is user, SparkSession.active() is user],
        "meaning": user.sql("SELECT 1/0").collect()[0][0],
    }

import clew
from clew.engine.session import session_of
found = {"before": sorted(state())}
with clew.open(sys.argv[1]) as workspace:
    for project in ("p", "bad", "p"):
        if found.get("runs"):
            # As the server does after an hour in which a session is not used.
            session_of(workspace.run_environment).client.release_session()
        before = state()
        run = workspace.run(project, period="2026-01")
        after = state()
        found.setdefault("runs", []).append([run.status, run.error and run.error.message, [
            (what, before[what], after[what]) for what in before if before[what] != after[what]]])
    own = session_of(workspace.run_environment)
names = ("spark.sql.catalog.ours.uri", "spark.sql.shuffle.partitions", "spark.sql.ansi.enabled")
found["settings"] = [[session.conf.get(name, None) for name in names] for session in (own, user)]
found["rows"] = user.table("mine").count()
print(json.dumps(found, default=str))
user.stop()
"""
"""A notebook that knows Spark through Connect only, as on serverless platforms. The address may say which session."""
IDLE = """
import sys, clew
from clew.engine.session import session_of
with clew.open(sys.argv[1]) as workspace:
    for _ in range(2):
        print(workspace.run("p", period="2026-01").status)
        session_of(workspace.run_environment).client.release_session()
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


def shop_in(folder: Path) -> Shop:
    return make_shop(folder).project("p", _update("amount * 2")).project("bad", _update("amount * 99999999999"))


def _update(expression: str) -> dict[str, object]:
    assigned = [{"column": "amount", "expression": expression}]
    return {"seq": 10, "name": "x", "type": "update", "arguments": {"assignments": assigned}}


def test_a_notebook_finds_its_session_as_it_was(tmp_path: Path) -> None:
    """After a run that completed, one that failed and one that was interrupted."""
    shop = shop_in(tmp_path / "shop")
    command = [sys.executable, "-c", NOTEBOOK, str(shop.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"settings", "hadoop", "views", "context listeners", "query listeners", "tags"} <= set(found.pop("before"))
    # Clew's own session is one more, and the same for every run.
    first, *rest = found.pop("sessions")
    assert set(rest) == {first + 1}
    assert found == {
        "completed": ["COMPLETED", []],
        "failed": ["FAILED", []],
        "interrupted": ["CANCELLED", []],
        "rows": [3, 4, 4, "notebook"],
    }


@pytest.mark.parametrize("further", ["", ";session_id=6a1b6f9c-3f57-4d0e-9d5e-0f4b8f8f9d11"])
def test_a_notebook_on_spark_connect_finds_its_session_as_it_was(further: str, server: str, tmp_path: Path) -> None:
    """Clew works beside it on the same server, whatever master clew.yaml names."""
    shop = shop_in(tmp_path / "shop")
    config = {"spark.sql.catalog.ours.uri": "x", "spark.sql.shuffle.partitions": 3, "spark.sql.extensions": "not.There"}
    environment = {**SHOP["clew.yaml"]["environments"]["dev"], "spark": {"config": config}}
    shop.write({"clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": environment}}})
    address = f"{server}/{further}" if further else server
    command = [sys.executable, "-c", CONNECTED, str(shop.root), address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"settings", "views", "tags", "active"} <= set(found["before"])
    first, second, third = found["runs"]
    assert (first, third, found["rows"]) == (["COMPLETED", None, []], ["COMPLETED", None, []], 3)
    assert (second[0], second[2]) == ("FAILED", [])
    assert "amount" in second[1]
    assert found["settings"] == [["x", "3", "true"], [None, "2", "false"]]


def test_a_worker_goes_on_where_the_server_has_ended_its_session(server: str, tmp_path: Path) -> None:
    shop = shop_in(tmp_path / "shop")
    environment = {**SHOP["clew.yaml"]["environments"]["dev"], "spark": {"master": server}}
    shop.write({"clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": environment}}})
    command = [sys.executable, "-c", IDLE, str(shop.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["COMPLETED", "COMPLETED"]), done.stderr[-3000:]


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
