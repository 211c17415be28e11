"""The sample with storage, data and outputs on HDFS: Spark runs it, and processes without Spark explain it.

`make stores` fetches the servers and runs it; elsewhere there is no HDFS to run it on.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.hdfs_server import MINICLUSTER, hdfs_server
from tests.storage.sample_on_a_store import sample_on_a_store

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not MINICLUSTER, reason="`make stores` has the servers of HDFS"),
]


def clew(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "clew.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_sample_runs_on_hdfs_and_is_explained_from_there(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with hdfs_server(tmp_path / "server") as server:
        root, workspace = server.storage(), tmp_path / "workspace"
        spark = {"master": "local[2]", "config": {"spark.driver.memory": "1g"}}
        sample_on_a_store(workspace, root, object_store={"endpoint": server.endpoint}, spark=spark)
        clew(workspace, "run", "gl-close", "--period", "2026-01")
        clew(workspace, "run", "group-report", "--period", "2026-01")
        assert not (workspace / "out").exists()
        assert not (workspace / ".clew" / "storage").exists()
        written = [file.key for file in root.files("out")]
        assert any(key.endswith("_SUCCESS") for key in written), written
        assert any(key.endswith(".parquet") for key in written), written

        elsewhere = tmp_path / "elsewhere"
        shutil.copytree(workspace, elsewhere)
        shutil.rmtree(workspace)
        of_total = ("--where", 'row_kind = "total" AND account_type = "expense"', "total_usd")
        run_id = (
            clew(elsewhere, "runs", "--project", "gl-close", "--json").partition('"run_id": "')[2].partition('"')[0]
        )
        told = clew(elsewhere, "explain", run_id, *of_total)
        assert "total_usd = 737,127.41" in told
        assert "journal_2026-01.csv line" in told
        clew(elsewhere, "verify", run_id)
