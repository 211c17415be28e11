"""Whether a scenario did what it expects, whoever ran it."""

import time
from collections.abc import Callable, Mapping, Sequence

from clew.deferred import dataclass
from clew.definitions import Scenario
from clew.diagnostics import ClewError, Diagnostic, did_you_mean
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from clew.plan import Plan
from clew.scenarios.matching import Changes, Mismatch, ScenarioRow, compare, trace_mismatches
from clew.scenarios.scenario_results import ScenarioResult, ScenarioStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scenario's project did."""

    plan: Plan
    outputs: Mapping[int, tuple[Sequence[str], Sequence[ScenarioRow]]]
    """Columns and rows of each output, by seq."""
    changes: Changes


def judged(scenario: Scenario, run: Callable[[], Outcome], tell: Callable[[Exception], str] = str) -> ScenarioResult:
    """How a scenario goes. `tell` says what went wrong where that is a defect, in a result of its own."""
    started = time.perf_counter()
    expected = scenario.expected_error.code if scenario.expected_error else None
    mismatches, error = list[Mismatch](), None
    try:
        outcome = run()
        if expected is not None:
            mismatches = [Mismatch("error", "run", message=f"expected the error {expected}, but it completed")]
        else:
            mismatches = [*_output_mismatches(scenario, outcome)]
            if scenario.expected_trace:
                mismatches += trace_mismatches(scenario, outcome.plan, outcome.changes)
    except ClewError as raised:
        mismatches, error = _after_error(raised, expected)
    except Exception as broken:  # noqa: BLE001 - the scenarios behind this one still want to be run
        error = INTERNAL_ERROR.anywhere(problem=f"{type(broken).__name__}: {tell(broken)}")
    status: ScenarioStatus = "error" if error else "fail" if mismatches else "pass"
    seconds = time.perf_counter() - started
    return ScenarioResult(scenario.name, scenario.file, status, seconds, tuple(mismatches), error)


def _after_error(raised: ClewError, expected: str | None) -> tuple[list[Mismatch], Diagnostic | None]:
    codes = [diagnostic.code for diagnostic in raised.diagnostics]
    if expected is None:
        return [], raised.diagnostic
    if expected in codes:
        return [], None
    message = f"expected the error {expected}, got {raised.code}: {raised.diagnostic.message}"
    return [Mismatch("error", "run", message=message)], None


def _output_mismatches(scenario: Scenario, outcome: Outcome) -> list[Mismatch]:
    names = {str(step.seq): step.seq for step in outcome.plan.outputs}
    names |= {step.name: step.seq for step in outcome.plan.outputs}
    if scenario.expected_output is not None:
        seqs = sorted(outcome.outputs)
        if len(seqs) != 1:
            last = f"the project has {len(seqs)} outputs; name them with expected_outputs"
            return [Mismatch("error", "expected_output", message=last)]
        columns, rows = outcome.outputs[seqs[0]]
        return compare(f"output {seqs[0]}", scenario.expected_output, rows, columns)
    found = list[Mismatch]()
    for name, expected in (scenario.expected_outputs or {}).items():
        if name not in names:
            hint = did_you_mean(name, names) or f"the outputs are {', '.join(names)}"
            found.append(Mismatch("error", f'expected_outputs "{name}"', message=f"there is no such output; {hint}"))
            continue
        columns, rows = outcome.outputs[names[name]]
        found += compare(f"output {name}", expected, rows, columns)
    return found
