"""Scenarios twice: on Spark, which has the word, and quick. Tells what the two do not agree on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clew.definitions import Scenario, WorkspaceDefinitions
from clew.diagnostics import ClewError
from clew.diagnostics.codes.scenarios import NOT_QUICK
from clew.scenarios.judging import Outcome
from clew.scenarios.matching import LOADING, Mismatch, ScenarioChange, ScenarioRow, same_value
from clew.scenarios.quick import QuickRunner
from clew.scenarios.scenario_results import ScenarioResult

_MADE_UP = frozenset({"_row_id", "_trace_id"})

Did = Outcome | ClewError
"""What a scenario did, or the error that it ended with."""


class QuickBeside:
    """Does what Spark has done once more without it, and compares all outputs, all changes, and errors."""

    def __init__(self, workspace: WorkspaceDefinitions) -> None:
        self._quick = QuickRunner(workspace)

    def compared(self, scenario: Scenario, result: ScenarioResult, on_spark: Did) -> ScenarioResult:
        """The result of Spark; a scenario for which quick gives something else has failed."""
        quick: Did
        try:
            quick = self._quick.outcome(scenario)
        except ClewError as error:
            quick = error
        if isinstance(quick, ClewError) and quick.code == NOT_QUICK.name:
            return replace(result, quick=quick.diagnostic.message)
        found = tuple(differences(on_spark, quick))
        if not found:
            return replace(result, quick="same")
        status = "fail" if result.status == "pass" else result.status
        return replace(result, quick="differs", status=status, mismatches=(*result.mismatches, *found))


def differences(on_spark: Did, quick: Did) -> Iterator[Mismatch]:
    """What is not the same: errors by their codes, rows and changes by their values, in any order."""
    if isinstance(on_spark, ClewError) or isinstance(quick, ClewError):
        ends = [each.code if isinstance(each, ClewError) else "completes" for each in (on_spark, quick)]
        if ends[0] != ends[1]:
            yield Mismatch("quick differs", "run", message=f"Spark: {ends[0]}; quick: {ends[1]}")
        return
    for seq, (columns, rows) in on_spark.outputs.items():
        names = [name for name in columns if name not in _MADE_UP]
        others = quick.outputs[seq][1]
        yield from _unlike(f"output {seq}", _cut_down(rows, names), _cut_down(others, names))
    for seq in (LOADING, *(step.seq for step in on_spark.plan.steps)):
        yield from _unlike(f"trace of step {seq}", _told(on_spark.changes(seq)), _told(quick.changes(seq)))


def _cut_down(rows: Sequence[ScenarioRow], names: Sequence[str]) -> list[ScenarioRow]:
    return [{name: row[name] for name in names} for row in rows]


def _told(changes: Sequence[ScenarioChange]) -> list[ScenarioRow]:
    return [
        {
            "change": change.change_type,
            **{name: value for name, value in change.after.items() if name not in _MADE_UP},
            **{f"{name} before": diff.old for name, diff in change.diff.items() if change.change_type == "updated"},
        }
        for change in changes
    ]


def _unlike(where: str, on_spark: Sequence[ScenarioRow], quick: Sequence[ScenarioRow]) -> Iterator[Mismatch]:
    left = list(quick)
    for row in on_spark:
        place = next((number for number, other in enumerate(left) if _is_same(row, other)), None)
        if place is None:
            yield Mismatch("quick differs", where, expected=row, message="only Spark has this row")
        else:
            left.pop(place)
    yield from (Mismatch("quick differs", where, actual=row, message="only quick has this row") for row in left)


def _is_same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return one.keys() == other.keys() and all(same_value(other[name], value) for name, value in one.items())
