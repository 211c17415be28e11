"""What a small run costs: `clew run gl-close` of the sample, cold, against a bare PySpark script with the same outputs.

Both are new processes, take turns, and do everything from the start of Python to its end. The script starts a session,
reads the same CSV files, does the same joins and sums and writes the same two outputs; it pins, records and explains
nothing, and does not take the capture that the project asks for. Outputs are compared. Once the archive of Spark's
classes is there, Clew's JVM starts from it; the script's does not. What is counted (jobs, calls, files) does not
depend on the machine. CLEW_BENCH_ROUNDS sets how many rounds there are.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from benchmarks.figure import Figure
from benchmarks.timing import medians

from clew.engine.java import java_of_spark
from clew.engine.jvm_archive import archive_for, archive_options
from clew.sample import write_sample

ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))
PERIOD = "2026-01"
_PATIENCE_S = 180
_SCRIPT = """
import sys
from pyspark.sql import SparkSession
data, out = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC").getOrCreate())
TABLES = {
    "journal_lines": ("journal/journal_2026-01.csv", "journal_id STRING, line_number BIGINT, posting_date DATE, "
        "account_code STRING, cost_center STRING, description STRING, currency STRING, amount_local DECIMAL(18, 2), "
        "category STRING, entered_by STRING, _period STRING"),
    "accounts": ("accounts.csv", "account_code STRING, account_name STRING, account_type STRING"),
    "fx_rates": ("fx_rates.csv", "from_currency STRING, to_currency STRING, rate_type STRING, rate DECIMAL(18, 6), "
        "published_on DATE, remark STRING, _period_from DATE, _period_to DATE"),
    "budgets": ("budgets.csv", "account_code STRING, cost_center STRING, status STRING, kind STRING, "
        "amount_usd DECIMAL(18, 2), _period STRING"),
}
for name, (file, schema) in TABLES.items():
    spark.read.csv(f"{data}/{file}", header=True, schema=schema).createOrReplaceTempView(name)
lines = spark.sql('''
    SELECT j._period, 'line' AS row_kind, j.journal_id, j.line_number, j.posting_date,
        CASE WHEN j.account_code = '5210' AND startswith(j.cost_center, 'P') THEN '5290' ELSE j.account_code END
            AS account_code,
        a.account_type, j.cost_center, j.description, j.currency, j.amount_local,
        CASE WHEN j.account_code = '5210' AND startswith(j.cost_center, 'P') THEN 'projects' ELSE j.category END
            AS category,
        CASE WHEN j.currency = 'USD' THEN j.amount_local
            ELSE CAST(round(j.amount_local * r.rate, 2) AS DECIMAL(18, 2)) END AS amount_usd,
        coalesce(contains(j.description, 'TEST'), FALSE) AS _deleted
    FROM journal_lines j
    LEFT JOIN accounts a ON a.account_code = j.account_code
    LEFT JOIN (SELECT from_currency, rate FROM fx_rates WHERE to_currency = 'USD' AND rate_type = 'closing'
        AND _period_from <= DATE'2026-01-01' AND (_period_to IS NULL OR DATE'2026-01-01' < _period_to)) r
        ON r.from_currency = j.currency
    WHERE j._period = '2026-01' ''')
review = ["journal_id", "line_number", "account_code", "cost_center", "currency", "amount_local", "amount_usd",
    "_deleted"]
lines.select(*review).write.csv(f"{out}/review", header=True)
kept = lines.where("NOT _deleted").drop("_deleted")
kept.createOrReplaceTempView("kept")
totals = spark.sql("SELECT _period, 'total' AS row_kind, account_type, sum(amount_usd) AS total_usd, "
    "count(journal_id) AS line_count FROM kept GROUP BY _period, account_type")
budgets = spark.sql("SELECT b._period, 'budget' AS row_kind, b.account_code, a.account_type, b.cost_center, "
    "sum(b.amount_usd) AS amount_usd FROM budgets b LEFT JOIN accounts a ON a.account_code = b.account_code "
    "WHERE b._period = '2026-01' AND b.status = 'approved' "
    "GROUP BY b._period, b.account_code, a.account_type, b.cost_center")
closed = kept.unionByName(totals, True).unionByName(budgets, True)
closed.write.parquet(f"{out}/closed")
spark.stop()
"""
_CLOSED = (
    "_period, row_kind, journal_id, line_number, posting_date, account_code, account_type, cost_center, description, "
    "currency, amount_local, category, CAST(amount_usd AS DECIMAL(28, 2)), CAST(total_usd AS DECIMAL(28, 2)), "
    "line_count"
)


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample = folder / "sample"
        write_sample(sample)
        turns = iter(range(10_000))

        def ours() -> Path:
            place = folder / f"ours-{next(turns)}"
            shutil.copytree(sample, place)
            run([sys.executable, "-m", "clew.cli", "run", "gl-close", "--period", PERIOD], place)
            return place

        def bare() -> Path:
            place = folder / f"bare-{next(turns)}"
            run([sys.executable, "-c", _SCRIPT, str(sample / "data"), str(place)], folder)
            return place

        without = {**os.environ, "CLEW_JVM_ARCHIVE": "off"}

        def unarchived() -> None:
            place = folder / f"without-{next(turns)}"
            shutil.copytree(sample, place)
            run([sys.executable, "-m", "clew.cli", "run", "gl-close", "--period", PERIOD], place, without)

        compare(ours(), bare())
        wait_for_archive()
        sides: list[Callable[[], object]] = [ours, unarchived, bare]
        taken, cold, by_hand = medians(*([side] * ROUNDS for side in sides))
        return [
            Figure("`clew run gl-close`, cold", taken, "s"),
            Figure("the same without the archive of Spark's classes", cold, "s"),
            Figure("the bare PySpark script, cold", by_hand, "s"),
            Figure("`clew run gl-close` against the bare script", taken / by_hand, "times", at_most=1.5),
            Figure("the same without the archive", cold / by_hand, "times"),
            *counted(sample, folder / "counted"),
        ]


def counted(sample: Path, place: Path) -> list[Figure]:
    """What a run asks of Spark and of the disk, and how long it takes where Spark is warm."""
    shutil.copytree(sample, place)
    command = [sys.executable, "-m", "benchmarks.run_counts", str(place), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    counts = json.loads(done.stdout.splitlines()[-1])
    return [
        Figure("`gl-close` in a process that has run it before", counts["warm"], "s", at_most=2),
        Figure("Spark jobs of the steps of a run", counts["jobs"], "jobs"),
        Figure("calls to the JVM, with its capture", counts["calls"], "calls"),
        Figure("files that it leaves behind", counts["files"], "files"),
        Figure("files that Clew waits for to be on the disk", counts["fsyncs"], "fsyncs"),
    ]


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def wait_for_archive() -> None:
    """The JVM of the first run writes it after the command has ended; nothing is waited for where there is one."""
    java = java_of_spark()
    path = archive_for(java)
    end = time.monotonic() + _PATIENCE_S
    while path is not None and not path.is_file():
        if time.monotonic() > end:
            raise SystemExit(f"no JVM has written {path}")
        time.sleep(1)
        archive_options(java, ())  # takes one that is complete


def compare(ours: Path, bare: Path) -> None:
    """Both outputs have the same rows on either side."""
    pairs = {
        "closed": (
            f"SELECT {_CLOSED} FROM read_parquet('{ours}/out/gl-closed/{PERIOD}/*.parquet')",
            f"SELECT {_CLOSED} FROM read_parquet('{bare}/closed/*.parquet')",
        ),
        "review": (
            f"FROM read_csv('{ours}/out/review/{PERIOD}/*.csv', header = true, all_varchar = true)",
            f"FROM read_csv('{bare}/review/*.csv', header = true, all_varchar = true)",
        ),
    }
    for name, (left, right) in pairs.items():
        for one, other in ((left, right), (right, left)):
            found = duckdb.execute(f"({one}) EXCEPT ALL ({other})").fetchall()
            if found:
                raise SystemExit(f"{name} differs: {found[:3]}")
