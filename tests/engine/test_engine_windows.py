"""Calls with OVER on Spark: what they give is what the interpreter, which works out each row by itself, gives."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from clew.diagnostics import UserError
from clew.evidence.reevaluation import reevaluate
from tests.engine.engine_runs import PERIOD, TODAY, run_plan
from tests.engine.test_engine_random_projects import check_counts, check_histories, check_states
from tests.trace.random_projects import WINDOWS, compiled, tables
from tests.trace.recorded_interpretation import Recorded

_ORDERS = ["", "ORDER BY day desc, k", "ORDER BY amount", "ORDER BY share desc, currency desc", "ORDER BY flag, at"]
_KEYS = ["", "PARTITION BY currency", "PARTITION BY share", "PARTITION BY flag, day", "PARTITION BY _labels, k"]
_FRAMES = [
    "",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
]
_AGGREGATES = [
    *("SUM(amount)", "SUM(k)", "AVG(amount)", "AVG(k)", "COUNT(day)", "COUNT_ALL()", "MIN_AGG(at)", "MAX_AGG(share)"),
    *("MIN_AGG(currency)", "FIRST(amount, day, k)", "LAST(flag, share)", "SUM_IF(amount, flag)", "COUNT_IF(k > 1)"),
    *("WEIGHTED_AVG(amount, k)", "SUM(amount * 1.5)", "MAX_AGG(LEN(currency))"),
]
_PLACES = [
    *("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG(amount)", "LEAD(currency, 2)", "LAG(at, 3)", "LEAD(share)"),
    *("LAG(flag)", "LEAD(amount + k)"),
]


@st.composite
def _calls(draw: st.DrawFn) -> str:
    """A call with any window that it may have."""
    keys, is_place = draw(st.sampled_from(_KEYS)), draw(st.booleans())
    if is_place:
        order = draw(st.sampled_from(_ORDERS[1:]))
        return f"{draw(st.sampled_from(_PLACES))} OVER ({keys} {order})"
    order, frame = draw(st.sampled_from(_ORDERS)), draw(st.sampled_from(_FRAMES))
    return f"{draw(st.sampled_from(_AGGREGATES))} OVER ({keys} {order} {frame})"


@st.composite
def _projects(draw: st.DrawFn) -> dict[str, Any]:
    """Two updates, the second of which looks at what the first one has set."""
    texts = draw(st.lists(_calls(), min_size=6, max_size=6))
    first = [{"column": f"c{number}", "expression": text} for number, text in enumerate(texts)]
    second = [
        {"column": column, "expression": text}
        for column, text in draw(st.lists(st.sampled_from(WINDOWS), min_size=2, max_size=3, unique_by=lambda x: x[0]))
    ]
    selector = draw(st.sampled_from([{}, {"selector": "amount > 1"}, {"selector": "NOT flag OR k < 3"}]))
    operations = [
        {"seq": 1, "name": "some", "type": "delete", "selector": "k = 4"},
        {"seq": 2, "name": "first", "type": "update", **selector, "arguments": {"assignments": first}},
        {"seq": 3, "name": "second", "type": "update", "arguments": {"assignments": second}},
    ]
    return {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main", "operations": operations}


@settings(max_examples=4, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(project=_projects(), data=tables(most_rows=14), files=st.integers(1, 2))
def test_spark_gives_what_the_interpreter_gives(
    spark: SparkSession, project: dict[str, Any], data: dict[str, list[dict[str, Any]]], files: int
) -> None:
    with TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assert plan is not None
        expected = Recorded(plan, data, PERIOD, TODAY).run()
        ran = run_plan(spark, Path(folder, "storage"), plan, data, files=files)
        check_counts(ran, expected)
        check_histories(ran, expected, check_states(ran, expected))
        assert reevaluate(ran.trace(), {}).problems == []


def test_a_value_in_a_window_that_does_not_fit_is_named_with_its_call(spark: SparkSession, tmp_path: Path) -> None:
    text = "SUM(TO_INTEGER(currency)) OVER (PARTITION BY flag)"
    project: dict[str, Any] = {
        "id": "p",
        "name": "p",
        "version": 1,
        "status": "active",
        "input_dataset": "main",
        "operations": [
            {
                "seq": 1,
                "name": "s",
                "type": "update",
                "arguments": {"assignments": [{"column": "n", "expression": text}]},
            }
        ],
    }
    plan = compiled(tmp_path / "workspace", project)
    assert plan is not None
    row = {"k": 1, "amount": None, "currency": "x", "flag": True, "day": None, "at": None, "share": None}
    data = {"main": [{**row, "_period": PERIOD}], "dim": [], "extra": [], "finer": []}
    with pytest.raises(UserError) as failed:
        run_plan(spark, tmp_path / "storage", plan, data)
    assert "OVER (PARTITION BY flag)" in str(failed.value)
