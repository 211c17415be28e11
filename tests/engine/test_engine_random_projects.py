"""Random projects over random tables: Spark against the interpreter, and the trace against every state it held."""

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from clew.diagnostics import ClewError
from clew.evidence.reevaluation import reevaluate
from clew.storage.row_identity import RowIds, ordinal_of
from tests.engine.engine_projects import RICH_DATASETS, rich_projects, rich_tables
from tests.engine.engine_runs import PERIOD, TODAY, Ran, in_any_order, run_plan
from tests.plan.plan_interpreter import Cells, JoinNotUnique
from tests.trace.random_projects import compiled
from tests.trace.recorded_interpretation import Recorded

EXAMPLES = settings(max_examples=12, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(project=rich_projects(), data=rich_tables(), files=st.integers(1, 3))
def test_outputs_counts_and_every_state_are_those_of_the_interpreter(
    spark: SparkSession, project: dict[str, Any], data: dict[str, list[dict[str, Any]]], files: int
) -> None:
    """Some parts have more than three rows, so that they are scanned, and some have not."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.engine.parts.FEW_ROWS", 3)
        plan = compiled(Path(folder, "workspace"), project, RICH_DATASETS)
        assume(plan is not None)
        assert plan is not None
        expected: Recorded | str
        try:
            expected = Recorded(plan, data, PERIOD, TODAY).run()
        except JoinNotUnique:
            expected = "JoinNotUnique"
        except ClewError as error:
            expected = error.code
        if isinstance(expected, str):
            with pytest.raises(ClewError) as failed:
                run_plan(spark, Path(folder, "storage"), plan, data, files=files)
            assert failed.value.code == expected
            return
        ran = run_plan(spark, Path(folder, "storage"), plan, data, files=files)
        check_outputs(ran, expected)
        check_counts(ran, expected)
        check_histories(ran, expected, check_states(ran, expected))
        assert reevaluate(ran.trace(), {seq: len(rows) for seq, rows in ran.outputs.items()}).problems == []


def check_outputs(ran: Ran, expected: Recorded) -> None:
    for seq, rows in ran.outputs.items():
        written = [{name: value for name, value in row.items() if name != "_row_id"} for row in rows]
        assert in_any_order(written) == in_any_order(expected.outputs[str(seq)])
        if rows and "_row_id" in rows[0]:
            assert len({row["_row_id"] for row in rows}) == len(rows)


def check_counts(ran: Ran, expected: Recorded) -> None:
    found = {
        (seq, kind): count
        for seq, counts in ran.counts.items()
        for kind, count in (("updated", counts.updated), ("created", counts.created), ("deleted", counts.deleted))
        if count
    }
    wanted = defaultdict[tuple[int, str], int](int)
    for change in expected.changes:
        wanted[change.seq, change.change_type] += 1
    assert found == wanted


def check_states(ran: Ran, expected: Recorded) -> list[str]:
    """The ids of the rows, in the order of the expected ones.

    Loaded rows are identified by their place in the input, created ones by their first values.
    """
    trace = ran.trace()
    ordinals = [ordinal_of(file.ordinal or 0, index) for file in ran.inputs[0].files for index in range(file.rows)]
    ids = [RowIds(trace.run_id).row_id(ordinal) for ordinal in ordinals]
    assert len(ids) == len(expected.states[0])
    for seq, states in expected.states.items():
        held = {row.row_id: dict(row.state) for row in trace.search(None, at=seq, limit=10_000).rows}
        if len(held) > len(ids):
            born = {row_id: state for row_id, state in held.items() if row_id not in ids}
            ids += [pop_equal(born, state) for state in states[len(ids) :]]
            assert not born
        assert held == dict(zip(ids, states, strict=True)), f"after step {seq}"
    trace.close()
    return ids


def check_histories(ran: Ran, expected: Recorded, ids: list[str]) -> None:
    """Each step has records, and each row has a history, exactly where two successive states differ."""
    trace = ran.trace()
    histories = defaultdict[str, list[tuple[int, str, Cells]]](list)
    before = expected.states[0]
    for row_id, state in zip(ids, before, strict=False):
        histories[row_id].append((0, "created", state))
    for seq, states in list(expected.states.items())[1:]:
        records = dict[str, tuple[str, Cells | None, Cells | None]]()
        for index, state in enumerate(states):
            record = difference(before[index] if index < len(before) else None, state)
            if record is not None:
                records[ids[index]] = record
                histories[ids[index]].append((seq, record[0], state))
        found = trace.step_rows(seq, limit=10_000).records
        assert {each.row_id: (each.change_type, each.before, each.after) for each in found} == records, f"step {seq}"
        kept = {ids[index]: ids[other] for index, other in expected.kept.get(seq, {}).items()}
        assert {each.row_id: each.kept for each in found if each.kept} == kept, f"step {seq}"
        assert all(trace.history(row_id).entries[-1].kept == other for row_id, other in kept.items())
        before = states
    for row_id in ids:
        entries = trace.history(row_id).entries
        told = [(each.operation_seq, each.change_type, dict(each.full_state)) for each in entries]
        assert told == histories[row_id]
    trace.close()


def difference(old: Cells | None, new: Cells) -> tuple[str, Cells | None, Cells | None] | None:
    """The record of a row that was one and is the other; None if nothing changed."""
    if old is None:
        return "created", None, new
    if new["_deleted"] and not old["_deleted"]:
        return "deleted", {"_deleted": False}, None
    changed = [name for name in new if old.get(name) != new[name]]
    if not changed:
        return None
    return "updated", {name: old.get(name) for name in changed}, {name: new[name] for name in changed}


def pop_equal(born: dict[str, Cells], state: Cells) -> str:
    found = next((row_id for row_id, other in born.items() if other == state), None)
    assert found is not None, f"no row was created as {state}"
    del born[found]
    return found
