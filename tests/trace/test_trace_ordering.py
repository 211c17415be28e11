"""Sorted rows of random projects: a permutation of what a search gives, in order, NULL last."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import UserError
from clew.trace.reader import RunTrace
from clew.trace.row_sets import Order
from tests.trace.random_projects import projects, tables
from tests.trace.test_trace_reading import STYLES, written
from tests.trace.trace_writer import Style


def sorted_pages(trace: RunTrace, order: Order, at: int, where: str | None, limit: int) -> list[tuple[str, Any]]:
    found = list[tuple[str, Any]]()
    while True:
        page = trace.ordered(where, order, at, limit=limit, offset=len(found))
        found += [(row.row_id, row.state) for row in page.rows]
        if not page.has_more:
            return found


@settings(max_examples=6)
@given(projects(), tables(), STYLES, st.booleans(), st.integers(1, 4))
def test_sorted_pages_together_are_all_rows_in_order(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style, descending: bool, limit: int
) -> None:
    with written(project, data, style) as (_, _, trace):
        last = trace.run.last
        for column, _ in trace.run.columns(last):
            found = sorted_pages(trace, Order(column, descending=descending), last, None, limit)
            assert dict(found) == {row.row_id: row.state for row in trace.search(None, limit=1_000).rows}
            values = [state[column] for _, state in found]
            known = [value for value in values if value is not None]
            assert values == sorted(known, reverse=descending) + [None] * (len(values) - len(known))


@settings(max_examples=4)
@given(projects(), tables(), STYLES)
def test_a_sorted_search_has_the_rows_of_the_search(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with written(project, data, style) as (_, _, trace):
        where = "_deleted = FALSE"
        found = sorted_pages(trace, Order("_period"), trace.run.last, where, 3)
        assert dict(found) == {row.row_id: row.state for row in trace.search(where, limit=1_000).rows}


@settings(max_examples=1)
@given(projects(), tables(), STYLES)
def test_an_unknown_column_and_an_impossible_page_are_refused(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with written(project, data, style) as (_, _, trace):
        with pytest.raises(UserError) as unknown:
            trace.ordered(None, Order("no such column"))
        assert unknown.value.code == "UnknownColumn"
        with pytest.raises(UserError) as impossible:
            trace.ordered(None, Order("_period"), limit=0)
        assert impossible.value.code == "InvalidPage"
