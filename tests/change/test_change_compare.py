"""Comparing two runs, against a comparison of both in plain Python."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.change.comparing import CompareQuestion, CompareSide, compare_runs
from clew.change.comparison import RunComparison
from clew.diagnostics import UserError
from clew.lang.evaluation import Row, evaluator
from clew.plan.operations import AggregateStep, AppendStep
from tests.change.random_pairs import Pair, Written, all_clear, cases, written_pair
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import TODAY, Style

STYLE = Style()
NUMBERS = {"integer", "decimal", "double"}


def compared(pair: Pair, **question: Any) -> RunComparison:
    sides = [CompareSide(each.trace, all_clear()) for each in (pair.a, pair.b)]
    return compare_runs(sides[0], sides[1], CompareQuestion(**{"limit": None, **question}))


@dataclass
class Oracle:
    """Both sides as lists of rows, matched by hand."""

    pair: Pair
    seqs: tuple[int, int]
    columns: list[str]
    selectors: tuple[Any, Any] = (None, None)
    include_deleted: tuple[bool, bool] = (False, False)

    def rows(self, side: int) -> list[tuple[int, Any, dict[str, Any]]]:
        """Index, kind with key, and values of every row that counts."""
        run: Written = (self.pair.a, self.pair.b)[side]
        found = list[tuple[int, Any, dict[str, Any]]]()
        for index, row in enumerate(run.recorded.states[self.seqs[side]]):
            if row["_deleted"] and not self.include_deleted[side]:
                continue
            if self.selectors[side] is not None:
                seen = Row({run.plan.input.table: {**row, "_row_id": run.row_ids[index]}}, TODAY)
                if evaluator(self.selectors[side].tree)(seen) is not True:
                    continue
            found.append((index, self.key(side, run, index, row), {name: row[name] for name in self.columns}))
        return found

    def key(self, side: int, run: Written, index: int, row: dict[str, Any]) -> Any:
        start = 0
        for seq, states in run.recorded.states.items():
            if index < len(states):
                if seq == 0:
                    return ("rows", row["k"])
                step = next(each for each in run.plan.steps if each.seq == seq)
                assert isinstance(step, AggregateStep | AppendStep)
                if isinstance(step, AppendStep) and step.group_by is None:
                    return ("rows", row["k"])
                keys = step.group_by or ()
                return (self.same_step(side, step), keys, tuple(row[name] for name in keys))
            start = len(states)
        raise AssertionError(start)

    def same_step(self, side: int, step: Any) -> Any:
        if side == 0:
            return step.seq
        mine = [each for each in self.pair.a.plan.steps if each.type == step.type]
        named = [each for each in mine if each.name == step.name] or [each for each in mine if each.seq == step.seq]
        return named[0].seq if named else -step.seq

    def matched(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Changed pairs, rows only in the first, rows only in the second: by index and values."""
        left, right = self.rows(0), self.rows(1)
        rest_a, rest_b = list(left), list(right)
        for row in left:
            equal = next((each for each in rest_b if each[1] == row[1] and same(each[2], row[2])), None)
            if equal is not None:
                rest_b.remove(equal)
                rest_a.remove(row)
        changed = list[Any]()
        for row in list(rest_a):
            other = next((each for each in rest_b if each[1] == row[1]), None)
            if other is not None:
                rest_b.remove(other)
                rest_a.remove(row)
                changed.append((row, other))
        return changed, rest_a, rest_b


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(value == other[name] and (value is None) == (other[name] is None) for name, value in one.items())


def check(pair: Pair, found: RunComparison, oracle: Oracle) -> None:
    changed, only_a, only_b = oracle.matched()
    ids = pair.a.row_ids, pair.b.row_ids
    expected = Counter(
        [("changed", ids[0][one[0]], ids[1][other[0]], differing(one[2], other[2])) for one, other in changed]
        + [("only_in_a", ids[0][row[0]], None, shown(row[2], 0)) for row in only_a]
        + [("only_in_b", None, ids[1][row[0]], shown(row[2], 1)) for row in only_b]
    )
    told = Counter(
        (
            row.change,
            row.row_a,
            row.row_b,
            tuple((name, each.old, each.new) for name, each in row.columns.items()),
        )
        for row in found.rows
    )
    assert told == expected
    counts, rows = found.counts, (oracle.rows(0), oracle.rows(1))
    assert (counts.changed, counts.only_in_a, counts.only_in_b) == (len(changed), len(only_a), len(only_b))
    assert (counts.rows_a, counts.rows_b) == (len(rows[0]), len(rows[1]))
    assert counts.same == len(rows[0]) - len(only_a) - len(changed) == len(rows[1]) - len(only_b) - len(changed)
    for column in found.columns:
        assert column.changed == sum(one[2][column.name] != other[2][column.name] for one, other in changed)
        totals = column.total_a, column.total_b
        if column.type_a.kind not in NUMBERS or column.name == "k":
            assert totals == (None, None)
            continue
        for total, side in zip(totals, rows, strict=True):
            values = [row[2][column.name] for row in side if row[2][column.name] is not None]
            if column.type_a.kind == "double":
                assert isinstance(total, float)
                assert math.isclose(total, math.fsum(values), abs_tol=1e-9)
            else:
                assert total == sum(map(Decimal, values), Decimal(0))
        if column.type_a.kind != "double":
            assert column.difference == Decimal(str(totals[1])) - Decimal(str(totals[0]))


def differing(one: dict[str, Any], other: dict[str, Any]) -> tuple[Any, ...]:
    return tuple((name, one[name], other[name]) for name in one if one[name] != other[name])


def shown(row: dict[str, Any], side: int) -> tuple[Any, ...]:
    return tuple((name, *((value, None) if side == 0 else (None, value))) for name, value in row.items())


def shared(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return [name for name in one if name in other and name != "_row_id"]


@settings(max_examples=12)
@given(cases(), STYLES, STYLES, st.data())
def test_after_a_step_it_is_what_a_comparison_in_python_gives(
    case: Any, one: Any, other: Any, data: st.DataObject
) -> None:
    with written_pair(case, (one, other)) as pair:
        common = [0, *(step.seq for step in pair.a.plan.steps if _counterpart(pair, step) is not None)]
        seq = data.draw(st.sampled_from(common))
        second = 0 if seq == 0 else _counterpart(pair, next(each for each in pair.a.plan.steps if each.seq == seq))
        assert second is not None
        names = [
            [name for name, _ in run.trace.run.columns(at) if name != "_deleted"]
            for run, at in ((pair.a, seq), (pair.b, second))
        ]
        found = compared(pair, at=seq)
        check(pair, found, Oracle(pair, (seq, second), shared(names[0], names[1])))


def _counterpart(pair: Pair, step: Any) -> int | None:
    named = [each.seq for each in pair.b.plan.steps if (each.name, each.type) == (step.name, step.type)]
    return named[0] if named else next((each.seq for each in pair.b.plan.steps if each.seq == step.seq), None)


@settings(max_examples=12)
@given(cases(), STYLES, STYLES)
def test_at_an_output_it_is_what_a_comparison_in_python_gives(case: Any, one: Any, other: Any) -> None:
    output = {
        "seq": 1000,
        "name": "out",
        "type": "output",
        "selector": 'amount > 1 OR currency = "EUR"',
        "arguments": {
            "destination": {"location": {"format": "parquet", "path": "out"}},
            "columns": ["amount", "currency", "share", "_labels"],
        },
    }
    for project in case[:2]:
        project["operations"].append(dict(output))
    with written_pair(case, (one, other)) as pair:
        outputs = pair.a.plan.outputs[-1], pair.b.plan.outputs[-1]
        found = compared(pair)
        oracle = Oracle(
            pair,
            (1000, 1000),
            shared(outputs[0].columns, outputs[1].columns),
            (outputs[0].selector, outputs[1].selector),
        )
        check(pair, found, oracle)
        table = found.to_arrow()
        assert table.num_rows == len(found.rows)
        assert table["change"].to_pylist() == [row.change for row in found.rows]


@settings(max_examples=6)
@given(cases(), STYLES, st.integers(1, 3))
def test_pages_hold_all_rows_once_and_the_largest_differences_first(case: Any, style: Any, limit: int) -> None:
    with written_pair(case, (style, style)) as pair:
        whole = compared(pair, at=0, sort="amount").rows
        sizes = [size(row) for row in whole]
        assert sizes == sorted(sizes, reverse=True)
        pages, offset = list[Any](), 0
        while True:
            page = compared(pair, at=0, sort="amount", limit=limit, offset=offset)
            pages += page.rows
            if page.next_offset is None:
                break
            offset = page.next_offset
        assert pages == list(whole)


def size(row: Any) -> Decimal:
    each = row.columns.get("amount")
    return Decimal(0) if each is None else abs((each.new or Decimal(0)) - (each.old or Decimal(0)))


@settings(max_examples=6)
@given(
    cases(), STYLES, st.sampled_from(["amount > 1", "MOD(k, 2) = 0", 'currency = "EUR" AND flag', 'TO_STRING(k) = "1"'])
)
def test_a_condition_is_asked_in_each_run_by_itself(case: Any, style: Any, where: str) -> None:
    with written_pair(case, (style, style)) as pair:
        names = [name for name, _ in pair.a.trace.run.columns(0) if name != "_deleted"]

        class Condition:
            tree = pair.a.trace.condition(where, 0)

        found = compared(pair, at=0, where=where)
        check(pair, found, Oracle(pair, (0, 0), names, (Condition, Condition)))


@settings(max_examples=6)
@given(cases(), STYLES, STYLES)
def test_rows_without_a_key_are_multisets(case: Any, one: Any, other: Any) -> None:
    """A row that changed is one row less and one row more, and the answer says so."""
    with written_pair(case, (one, other), keys=((), ())) as pair:
        found = compared(pair, at=0)
        names = [column.name for column in found.columns]
        assert {"k", "amount", "currency", "share"} <= set(names)
        a, b = (
            Counter(tuple(row[name] for name in names) for row in run.recorded.states[0]) for run in (pair.a, pair.b)
        )
        assert (found.counts.changed, found.counts.only_in_a, found.counts.only_in_b) == (
            0,
            (a - b).total(),
            (b - a).total(),
        )
        told = [Counter[Any](), Counter[Any]()]
        for row in found.rows:
            side = 0 if row.change == "only_in_a" else 1
            told[side][tuple((row.columns[name].old, row.columns[name].new)[side] for name in names)] += 1
        assert told == [a - b, b - a]
        assert [kind.to_json()["matched_by"] for kind in found.kinds] == ["all values"]
        assert any("no key" in note or "all their values" in note for note in found.notes), found.notes


def test_runs_whose_rows_have_other_keys_are_compared_by_columns_that_are_named() -> None:
    project = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main", "operations": []}
    row = {**dict.fromkeys(("flag", "day", "at", "share")), "k": 1, "amount": Decimal(2), "currency": "EUR"}
    data: dict[str, list[dict[str, Any]]] = {
        "main": [{**row, "_period": "2026-01"}],
        "dim": [],
        "extra": [],
        "finer": [],
    }
    with written_pair((project, project, data, data), (STYLE, STYLE), keys=(("k",), ("currency",))) as pair:
        with pytest.raises(UserError) as refused:
            compared(pair, at=0)
        [problem] = refused.value.diagnostics
        assert problem.code == "DifferentKeys"
        assert "are identified by k in" in problem.message
        assert "by currency in" in problem.message
        assert compared(pair, at=0, key=("amount",)).is_same


@settings(max_examples=4)
@given(cases(), STYLES)
def test_a_run_does_not_differ_from_itself(case: Any, style: Any) -> None:
    with written_pair(case, (style, style)) as pair:
        found = compared(Pair(pair.a, pair.a), at=pair.a.trace.run.last)
        assert found.is_same
        assert found.rows == ()


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"at": 999}, "StepOutOfRange"),
        ({"output": 1}, "NotAnOutput"),
        ({"at": 0, "output": 1}, "InvalidComparison"),
        ({"at": 0, "where": "nothing = 1"}, "UnknownColumn"),
        ({"at": 0, "where": "amount +"}, "SyntaxError"),
        ({"at": 0, "where": "amount"}, "TypeMismatch"),
        ({"at": 0, "sort": "currency"}, "InvalidComparison"),
        ({"at": 0, "sort": "nothing"}, "InvalidComparison"),
        ({"at": 0, "key": ("nothing",)}, "DifferentKeys"),
        ({"at": 0, "limit": 0}, "InvalidPage"),
        ({"at": 0, "offset": -1}, "InvalidPage"),
        ({}, "NotAnOutput"),
    ],
)
def test_wrong_questions_are_refused(question: dict[str, Any], code: str) -> None:
    project = {
        "id": "p",
        "name": "p",
        "version": 1,
        "status": "active",
        "input_dataset": "main",
        "operations": [
            {
                "seq": 1,
                "name": "one",
                "type": "update",
                "arguments": {"assignments": [{"column": "k", "expression": "k"}]},
            }
        ],
    }
    data: dict[str, list[dict[str, Any]]] = {"main": [], "dim": [], "extra": [], "finer": []}
    with written_pair((project, project, data, data), (STYLE, STYLE)) as pair:
        with pytest.raises(UserError) as refused:
            compared(pair, **question)
        assert [each.code for each in refused.value.diagnostics] == [code]
