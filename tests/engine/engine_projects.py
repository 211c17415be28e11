"""Random projects with everything that an engine can trip over, on top of those that the trace is tested with."""

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from tests.trace.random_projects import COLUMNS, DATASETS, tables
from tests.trace.random_projects import projects as traced_projects

RICH_DATASETS: dict[str, dict[str, Any]] = {
    **DATASETS,
    "bands": {
        "columns": {"low": "decimal(12,2)", "high": "decimal(12,2)", "band": "string", "code": "string"},
        "mode": "none",
        "table": "bands",
    },
    "grid": {"columns": {"share": "double", "cell": "string"}, "mode": "none", "table": "grid"},
}
_BANDS = {"alias": "bands", "dataset_id": "bands", "on": "t.amount >= bands.low AND t.amount < bands.high"}
_DIM = {"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}
_DIM_BY_BAND = {"alias": "dim", "dataset_id": "dim", "on": "dim.code = bands.code AND bands.band IS NOT NULL"}
_GRID = {"alias": "grid", "dataset_id": "grid", "on": "grid.share = t.share"}
_SELF = {"alias": "own", "dataset_id": "main", "on": "own.k = t.k"}
_KEYS = [0.0, -0.0, 0.5, 1.0, -1.5, math.nan, math.inf]
"""Doubles of a joined side: the first two are equal, so that rows with one of them match two."""
_SELECTORS = {"large": "t.amount > 20", "euro": 't.currency = "EUR"', "both": "{{large}} OR flag"}


@st.composite
def rich_projects(draw: st.DrawFn, most_steps: int = 18) -> dict[str, Any]:
    """A project of up to so many steps, some of which need more than one segment of state."""
    project = draw(traced_projects(most_steps))
    operations = list[dict[str, Any]]()
    for operation in project["operations"]:
        if operation["type"] != "append" and draw(st.integers(0, 4)) == 0:
            operation["selector"] = draw(st.sampled_from([f"{{{{{name}}}}}" for name in _SELECTORS]))
        if operation["type"] == "update" and draw(st.integers(0, 3)) == 0:
            operation["arguments"] = draw(_joining())
        operations.append(operation)
    seq = operations[-1]["seq"]
    operations.append(_output(seq + 1, draw(st.booleans())))
    return {**project, "selectors": _SELECTORS, "operations": operations}


@st.composite
def _joining(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {
                    "joins": [_BANDS],
                    "assignments": [
                        {"column": "note", "expression": "bands.band"},
                        {"column": "amount", "expression": "IF(bands.band IS NULL, amount, bands.high - 0.01)"},
                    ],
                },
                {
                    "joins": [_BANDS, _DIM_BY_BAND],
                    "assignments": [
                        {"column": "note", "expression": 'CONCAT(bands.band, "/", dim.label)'},
                        {"column": "rate", "expression": "dim.rate"},
                    ],
                },
                {
                    "joins": [_DIM, _BANDS],
                    "assignments": [{"column": "currency", "expression": "COALESCE(bands.code, dim.label, currency)"}],
                },
                {
                    "joins": [_GRID],
                    "assignments": [{"column": "note", "expression": 'COALESCE(grid.cell, "off")'}],
                },
                {
                    "joins": [_SELF],
                    "assignments": [{"column": "doubled", "expression": "COALESCE(own.amount, 0) * 2"}],
                },
            ]
        )
    )


def _output(seq: int, include_deleted: bool) -> dict[str, Any]:
    destination = {"location": {"format": "parquet", "path": "out"}}
    columns = [*COLUMNS, "_period", "_labels", "_deleted"]
    arguments = {"destination": destination, "columns": columns, "include_deleted": include_deleted}
    return {"seq": seq, "name": f"step {seq}", "type": "output", "arguments": arguments}


@st.composite
def rich_tables(draw: st.DrawFn) -> dict[str, list[dict[str, Any]]]:
    """Rows for all datasets. Keys of the main table are unique, so that it can be joined to itself."""
    data = draw(tables())
    keys = draw(st.permutations(range(-4, 30)))
    data["main"] = [{**row, "k": key} for row, key in zip(data["main"], keys, strict=False)]
    shares = st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.5, 1e300]) | st.floats(0, 1) | st.none()
    data["main"] = [{**row, "share": draw(shares)} for row in data["main"]]
    data["grid"] = [
        {"share": share, "cell": f"c{index}"}
        for index, share in enumerate(draw(st.lists(st.sampled_from(_KEYS), unique_by=repr, max_size=6)))
    ]
    edges = sorted(draw(st.sets(st.sampled_from(["-5.00", "0.00", "1.50", "50.00", "2000.00"]), max_size=5)), key=float)
    data["bands"] = [
        {"low": Decimal(low), "high": Decimal(high), "band": f"b{index}", "code": code}
        for index, (low, high) in enumerate(pairwise(edges))
        for code in [draw(st.sampled_from(["EUR", "x", None]))]
    ]
    return data
