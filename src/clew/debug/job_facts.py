"""What the `when` of a job sees of a run, and what it says."""

from collections.abc import Callable
from datetime import date

from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Value, columns_of
from clew.plan.postlude import PostludeJob

RUN = "run"


def wants_failed_runs(job: PostludeJob) -> bool:
    """Whether a job looks at the status of the run. Those that do not are only for runs that completed."""
    return job.when is not None and (RUN, "status") in columns_of(job.when.tree)


def is_due(job: PostludeJob, facts: dict[str, Value], count_rows: Callable[[], int], today: date) -> bool:
    """Whether a job is to be done. Rows are counted only where the condition asks for them."""
    if job.when is None:
        return True
    if (RUN, "rows") in columns_of(job.when.tree):
        facts = {**facts, "rows": count_rows()}
    return evaluator(job.when.tree)(Row({RUN: facts}, today)) is True
