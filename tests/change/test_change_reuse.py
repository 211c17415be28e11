"""What a run may take over from another, for random projects and random changes of them and of their data."""

import copy
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.plan.operations import OutputStep
from clew.runs.reuse import Circumstances, EarlierRun, Reusable, reusable
from tests.change.random_pairs import Data, Pair, Written, cases, written_pair
from tests.tiers import examples
from tests.trace.random_projects import projects, tables
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import Style

Case = tuple[dict[str, Any], dict[str, Any], Data, Data]
EXAMPLES = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), deadline=None)


def earlier(run: Written) -> EarlierRun:
    """A run that has completed."""
    steps = tuple(StepSnapshot(str(step.seq), step.seq, status=StepStatus.SUCCESS) for step in run.plan.steps)
    return EarlierRun("a", RunSnapshot("a", steps=steps), run.plan, run.trace.parts, frozenset())


def decided(pair: Pair, case: Case) -> Reusable:
    """With inputs taken over as far as their tables are the same."""
    _, _, before, after = case
    same = {use.key for use in pair.b.plan.datasets_read if before[use.table] == after[use.table]}
    return reusable(earlier(pair.a), pair.b.plan, Circumstances(inputs=same))


def records(run: Written, seq: int) -> Counter[str]:
    found = run.trace.step_rows(seq, limit=10_000).records
    return Counter(repr((each.change_type, each.before, each.after)) for each in found)


@EXAMPLES
@given(case=cases(), style=st.tuples(STYLES, STYLES))
def test_what_is_taken_over_is_what_a_full_run_does(case: Case, style: tuple[Style, Style]) -> None:
    with written_pair(case, style) as pair:
        found = decided(pair, case)
        taken = [seq for each in found.parts.values() for seq in each.seqs]
        for seq in taken:
            assert records(pair.a, seq) == records(pair.b, seq), f"step {seq}"
        steps = {step.seq for step in pair.b.plan.steps if not isinstance(step, OutputStep)}
        assert steps == {*taken, *found.reasons}
        assert not set(taken) & set(found.reasons)


@EXAMPLES
@given(project=projects(), data=tables(), style=st.tuples(STYLES, STYLES), at=st.integers(0, 100))
def test_all_steps_before_a_change_are_taken_over(
    project: dict[str, Any], data: Data, style: tuple[Style, Style], at: int
) -> None:
    """And the rest of the working dataset is not, whatever the parts of the earlier run are."""
    other = copy.deepcopy(project)
    narrow = [each for each in other["operations"] if each["type"] == "update"]
    if narrow:
        changed = narrow[at % len(narrow)]
        changed["arguments"]["assignments"].append({"column": "brand_new", "expression": "1"})
    with written_pair((project, other, data, data), style) as pair:
        found = decided(pair, (project, other, data, data))
        first = changed["seq"] if narrow else 10_000
        taken = {seq for each in found.parts.values() for seq in each.seqs}
        looked = [step for step in pair.b.plan.steps if not isinstance(step, OutputStep)]
        own = {step.seq for step in looked if "_row_id" in repr(step) or "TODAY" in repr(step)}
        assert {step.seq for step in looked if step.seq < min({first, *own})} <= taken
        assert first not in taken
