"""One rate that one row in eight uses, supposed to be another, and a run again after an edit, against a full run.

The job is the typical one on the ledger: six steps that change rows, totals of a thousand groups, an output.
CLEW_BENCH_WHAT_IF sets the number of rows (5,000,000). What-if evaluates the rows that it reaches all at once, in
DuckDB, and is asked for its totals with ten rows. The run again follows an edit of the step that adds up; all before it
is taken over. FaDE, which keeps everything in memory, tells of a million hypothetical updates a second.
"""

import os

from benchmarks.figure import Figure
from benchmarks.ledger_runs import LedgerRuns, ledger_runs
from benchmarks.timing import seconds

import clew
from clew.api.run import Run

ROWS = int(os.environ.get("CLEW_BENCH_WHAT_IF", "5000000"))
_SETTING = 'rates where currency = "EUR": rate = 1.10'


def measure() -> list[Figure]:
    with ledger_runs(ROWS) as runs:
        runs.run("typical")
        ids = list[str]()
        full = seconds(lambda: ids.append(runs.run("typical")))
        with clew.open(runs.environment.root) as workspace:
            run = workspace.get_run(ids[0])
            supposed = seconds(lambda: _suppose(run))
        again = seconds(lambda: _run_again(runs, ids[0]))
    return [
        Figure(f"a full run over {ROWS:,} rows, in a warm session", full, "s"),
        Figure(
            f"what if one rate were another, for {ROWS // 8:,} rows, until totals are known", supposed, "s", at_most=2
        ),
        Figure("rows supposed to look up another rate, for each second", ROWS // 8 / supposed, "rows/s"),
        Figure("the full run against what-if", full / supposed, "x", at_least=5),
        Figure("a rerun after an edit of the last step that computes", again, "s"),
        Figure("the rerun against the full run", again / full, "x", at_most=1),
    ]


def _suppose(run: Run) -> None:
    found = run.what_if(sets=[_SETTING], limit=10)
    assert found.changed, "the rate changes no row"


def _run_again(runs: LedgerRuns, run_id: str) -> None:
    """The version that is active by then sums up something else."""
    path = runs.environment.root / "projects" / "typical.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("SUM(amount)", "SUM(amount) + 1"), encoding="utf-8")
    workspace = clew.open(runs.environment.root)
    workspace.projects.activate("typical")
    made = workspace.get_run(run_id).rerun()
    assert made.status == "COMPLETED", made.error
    taken = [step.seq for step in made.steps if step.reuse is not None and step.reuse.run_id is not None]
    assert taken, "nothing was taken over"
