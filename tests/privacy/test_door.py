"""No reader can forget the policy: traces leave the door filtered, and answers have no field that it does not know."""

import dataclasses
import typing
from collections.abc import Iterator

import pytest

from clew.api import questions
from clew.api.capture import Capture
from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.explain import tree, why_not
from clew.privacy.seen_trace import SeenTrace
from clew.trace import records, results, trace_records
from clew.trace.reader import RunTrace
from tests.privacy.clinic import Clinic

JUDGED = {
    "Appended": {"inputs", "recomputed", "upstream"},
    "Contributor": {"label", "value", "share", "inputs"},
    "Decision": {"value", "values"},
    "Deleted": {"decisions", "kept"},
    "Elsewhere": {"label"},
    "Explanation": {"label", "value", "cause"},
    "InOutput": {"state", "not_written"},
    "Input": {"value", "explanation", "upstream"},
    "JoinedRow": {"row", "label"},
    "KeptRow": {"label", "values", "own", "recomputed"},
    "LeftOut": {"decisions"},
    "Loaded": {"upstream"},
    "NeverLoaded": {"elsewhere", "upstream"},
    "Parents": {"contributors"},
    "Recomputed": {"stored", "recomputed", "reason"},
    "Summarised": {"group", "parents", "recomputed"},
    "Updated": {"inputs", "joins", "recomputed", "windows"},
    "Whereabouts": {"label", "verdict"},
    "WindowRows": {"value", "group", "parents"},
    "WhyNot": {"rows", "never_loaded"},
    "Diff": {"old", "new"},
    "FoundRow": {"state"},
    "FoundRows": {"columns", "rows"},
    "RowHistory": {"columns", "entries"},
    "RowState": {"state"},
    "StepRecord": {"before", "after"},
    "StepRecords": {"columns", "records"},
    "TraceEntry": {"full_state", "diff"},
    "TraceRecords": {"records"},
}
"""The fields of answers that hold values of rows, or records that do: `privacy` looks at each of them."""

WITHOUT_VALUES = {
    "Appended": {"step", "expression", "source", "cut"},
    "CutOff": {"run_id", "row_id", "column", "at"},
    "Contributor": {"row_id", "source"},
    "Decision": {"condition"},
    "Deleted": {"step", "selector", "resolved"},
    "Elsewhere": {"period", "source", "run_id", "reason"},
    "Explanation": {"run_id", "row_id", "column", "at", "trace_id", "project", "period"},
    "Input": {"name", "cut"},
    "KeptRow": {"row_id", "rule"},
    "JoinedRow": {"alias", "dataset", "on", "source", "matches"},
    "LeftOut": {"selector", "resolved"},
    "Loaded": {"source", "cut"},
    "NeverLoaded": {"read", "rules", "not_looked_into"},
    "NotWritten": {"outcome"},
    "Parents": {"count"},
    "Recomputed": {"outcome", "by", "rows", "rows_in_python"},
    "RuleOutcome": {"rule", "reason"},
    "StepRef": {"seq", "name", "type", "place"},
    "Summarised": {"step", "expression", "of"},
    "Unset": {"reason"},
    "Updated": {"step", "expression"},
    "Whereabouts": {"row_id", "source", "created_by"},
    "WindowRows": {"call", "order"},
    "WhyNot": {"run_id", "where", "dataset", "period", "output", "has_more"},
    "FoundRow": {"row_id"},
    "FoundRows": {"at", "has_more", "table"},
    "RowHistory": {"row_id", "diagnostic", "trace_id"},
    "RowState": {"row_id", "at", "diagnostic"},
    "Source": {"dataset", "version", "file", "line", "description", "unit", "table_row_id"},
    "StepRecord": {"row_id", "operation_seq", "change_type", "kept"},
    "StepRecords": {"run_id", "operation_seq", "has_more"},
    "StepSummary": {"operation_seq", "step_name", "step_type", "updated", "created", "deleted", "columns", "outcome"},
    "TraceEntry": {"operation_seq", "step_name", "change_type", "source", "kept"},
    "TraceRecords": {"run_id", "next"},
}
"""The fields that hold none: ids, names, counts, places, and texts of the plan."""


def answer_types() -> Iterator[type]:
    for module in (tree, why_not, records, results, trace_records):
        for found in vars(module).values():
            if isinstance(found, type) and dataclasses.is_dataclass(found) and found.__module__ == module.__name__:
                yield found


@pytest.mark.parametrize("record", sorted(answer_types(), key=str), ids=repr)
def test_every_field_of_an_answer_is_known_to_the_policy(record: type) -> None:
    """A new field is filtered in `clew.privacy`, or it holds no values: decide, then list it above."""
    fields = {field.name for field in dataclasses.fields(record)}
    judged, plain = JUDGED.get(record.__name__, set()), WITHOUT_VALUES.get(record.__name__, set())
    assert judged & plain == set()
    assert fields == judged | plain


def test_no_method_of_the_door_gives_an_unfiltered_trace(clinic: Clinic) -> None:
    for door in (Workspace, Run, Capture):
        for name, member in vars(door).items():
            if not name.startswith("_") and callable(member):
                assert RunTrace.__name__ not in str(typing.cast("object", member.__annotations__.get("return"))), name
    run = clinic.served.workspace.find_run(clinic.care)
    assert isinstance(run.open_trace(), SeenTrace)
    assert RunTrace.__name__ not in {name for name in vars(questions) if not name.startswith("_")}
