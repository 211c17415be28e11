"""What a scenario expects of a plan, as far as it can be wrong before anything runs."""

from collections.abc import Iterator, Mapping

from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.model import Scenario
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.steps import OutputStep


def expectation_problems(scenario: Scenario, plan: Plan, datasets: Mapping[str, DatasetUse]) -> Iterator[Diagnostic]:
    """Outputs and steps that the plan does not have, and columns that the datasets of the scenario do not have."""
    outputs = [step for step in plan.steps if isinstance(step, OutputStep)]
    names = [*(str(step.seq) for step in outputs), *(step.name for step in outputs)]
    for name in scenario.expected_outputs or {}:
        if name not in names:
            hint = did_you_mean(name, names) or f"the outputs are {', '.join(names) or 'none'}"
            place = scenario.place("expected_outputs", name)
            yield INVALID_VALUE.at(place, problem=f'the project has no output "{name}"', hint=hint)
    seqs = [step.seq for step in plan.steps]
    for expected in scenario.expected_trace:
        if expected.operation_seq not in {0, *seqs}:
            problem = f"the project has no operation with the seq {expected.operation_seq}"
            hint = f"its operations are {', '.join(map(str, seqs)) or 'none'}, and 0 is loading"
            yield INVALID_VALUE.at(expected.place("operation_seq"), problem=problem, hint=hint)
    if scenario.expected_error is None:
        yield from _unknown_columns(scenario, datasets)


def _unknown_columns(scenario: Scenario, datasets: Mapping[str, DatasetUse]) -> Iterator[Diagnostic]:
    for dataset in scenario.datasets:
        use = datasets.get(dataset.id)
        known = {column.name for column in use.columns} if use is not None else set()
        for index, row in enumerate(dataset.rows or ()):
            for name in row:
                if use is not None and name not in known and name != "_period":
                    place = dataset.place("rows", index, name)
                    yield UNKNOWN_COLUMN.at(place, column=name, table=use.table, hint=did_you_mean(name, known))
