"""Captures and postlude jobs of a run as one role sees them: the results of jobs show values of columns."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clew.captures.queue import CaptureRecord
from clew.plan.plan import Plan
from clew.privacy.eyes import ColumnEyes, RunEyes
from clew.privacy.policy import PrivacyPolicy

WITHHELD = "withheld"
"""In place of what a job found in a column: why the role does not see it."""


def seen_by(policy: PrivacyPolicy, plan: Plan | None, records: Iterable[CaptureRecord]) -> tuple[CaptureRecord, ...]:
    """The records of a run, with the results of its jobs as a role sees them; without results where no plan tells."""
    listed = tuple(records)
    if not any(record.outcome.job is not None and record.outcome.job.results for record in listed):
        return listed
    columns = RunEyes.of(policy, plan).working if plan is not None else None
    return tuple(_seen(record, columns) for record in listed)


def _seen(record: CaptureRecord, columns: ColumnEyes | None) -> CaptureRecord:
    report = record.outcome.job
    if report is None or not report.results:
        return record
    results = () if columns is None else tuple(_result(each, columns) for each in report.results)
    return replace(record, outcome=replace(record.outcome, job=replace(report, results=results)))


def _result(result: Mapping[str, object], columns: ColumnEyes) -> Mapping[str, object]:
    """What a task found. Numbers about a column give its values away as much as the values themselves.

    The columns that a result speaks of are its `column`, and the `name` of each of its `columns`. Anything else that
    a task might find one day is withheld until this function knows how to read it.
    """
    match result:
        case {"column": str(column), "task": task}:
            return result if columns.is_clear(column) else {"task": task, **_withheld(column, columns, "column")}
        case {"columns": list(listed) | tuple(listed), "task": _}:
            seen = [_statistics(each, columns) for each in listed]
            return {**result, "columns": seen}
        case _:
            return {"task": result.get("task"), WITHHELD: "unknown result"}


def _statistics(found: Mapping[str, object], columns: ColumnEyes) -> Mapping[str, object]:
    name = str(found["name"])
    return found if columns.is_clear(name) else _withheld(name, columns, "name")


def _withheld(column: str, columns: ColumnEyes, key: str) -> Mapping[str, object]:
    return {key: column, WITHHELD: columns.classes.get(column, "public")}
