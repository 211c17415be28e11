"""Why a total changed: the causes add up exactly, and each is what running with that one thing exchanged gives."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.change.attribution import AttributionQuestion, AttributionSide, attribute
from clew.change.bridge import BridgeCause, ChangeBridge
from clew.change.shares import rounded, sequential_shares, shapley_shares
from clew.diagnostics import UserError
from clew.lang.evaluation import Row, evaluator
from clew.privacy.eyes import RunEyes
from tests.change.random_pairs import Data, Pair, all_clear, written_pair
from tests.trace.random_projects import compiled, interpreted, projects, tables
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import TODAY, Style

OUTPUT = {
    "seq": 1000,
    "name": "out",
    "type": "output",
    "arguments": {"destination": {"location": {"format": "parquet", "path": "out"}}, "columns": ["amount", "k"]},
}
WHERES = [None, 'currency = "EUR"', "amount > 1", "total IS NULL AND k > 1", "flag"]


GIVEN = {
    "seq": 900,
    "name": "given",
    "type": "update",
    "selector": "k > param.floor AND (day IS NULL OR day <= TODAY())",
    "arguments": {"assignments": [{"column": "amount", "expression": "ROUND(amount * param.factor, 2)"}]},
}
DAYS = [TODAY, date(2026, 1, 10)]


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    """Defaults are what runs are given that say nothing else."""
    return {
        "floor": {"type": "integer", "default": draw(st.sampled_from([-1, 2]))},
        "factor": {"type": "decimal(6,2)", "default": draw(st.sampled_from(["1.50", "2.00"]))},
    }


@st.composite
def _other_operations(draw: st.DrawFn, project: dict[str, Any]) -> dict[str, Any]:
    other, pool = copy.deepcopy(project), draw(projects(most_steps=4))["operations"]
    found = list[dict[str, Any]]()
    for operation in other["operations"]:
        fate = draw(st.sampled_from(["same", "same", "changed", "removed"]))
        alike = [each for each in pool if each["type"] == operation["type"]]
        if fate == "changed" and alike:
            body = copy.deepcopy(draw(st.sampled_from(alike)))
            found.append({**body, "seq": operation["seq"], "name": operation["name"]})
        elif fate != "removed":
            found.append(operation)
    if len(found) > 1 and draw(st.integers(0, 2)) == 0:
        one, two = draw(st.permutations(range(len(found))))[:2]
        found[one]["seq"], found[two]["seq"] = found[two]["seq"], found[one]["seq"]
    if draw(st.booleans()):
        extra = copy.deepcopy(draw(st.sampled_from(pool)))
        seq = max((each["seq"] for each in project["operations"]), default=0) + 1
        found.append({**extra, "seq": seq, "name": "added"})
    return {**other, "operations": sorted(found, key=lambda each: int(each["seq"]))}


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], Data, Data]:
    """A project and another version of it, and tables whose rows have keys, before and after."""
    project = draw(projects(most_steps=4))
    other = draw(_other_operations(project)) if draw(st.booleans()) else copy.deepcopy(project)
    uses_parameters = draw(st.booleans())
    for each in (project, other):
        if uses_parameters:
            each["parameters"] = draw(parameters())
            each["operations"].append(copy.deepcopy(GIVEN))
        each["operations"].append(copy.deepcopy(OUTPUT))
    before, fresh = draw(tables(most_rows=6)), draw(tables(most_rows=6))
    for number, row in enumerate(before["main"]):
        row["k"] = number
    after = copy.deepcopy(before)
    for row in after["main"]:
        if fresh["main"] and draw(st.integers(0, 3)) == 0:
            source = draw(st.sampled_from(fresh["main"]))
            row.update(
                {name: source[name] for name in draw(st.sampled_from([("amount",), ("currency", "amount"), ("flag",)]))}
            )
    after["main"] = [row for row in after["main"] if draw(st.integers(0, 4))]
    after["main"] += [{**row, "k": 100 + number} for number, row in enumerate(fresh["main"][:2])]
    for row in after["dim"]:
        if draw(st.booleans()):
            row["rate"] = draw(st.sampled_from([Decimal("2.000000"), Decimal("0.250000")]))
    if draw(st.booleans()):
        after["extra"] = fresh["extra"]
    return project, other, before, after


def asked(pair: Pair, **question: Any) -> ChangeBridge:
    sides = [
        AttributionSide(each.trace, RunEyes(all_clear().policy, each.plan, all_clear())) for each in (pair.a, pair.b)
    ]
    return attribute(sides[0], sides[1], AttributionQuestion(**question))


class Totals:
    """What plain runs give."""

    def __init__(self, folder: Path, column: str, where: str | None, condition: Any) -> None:
        self.folder, self.column, self.where, self.condition = folder, column, where, condition
        self.number = 0

    def of(self, project: dict[str, Any], data: Data, today: date) -> Decimal:
        self.number += 1
        plan = compiled(self.folder / str(self.number), project)
        assert plan is not None
        recorded = interpreted(plan, data, today)
        rows = [row for row in recorded.states[1000] if not row["_deleted"]]
        if self.condition is not None:
            judge = evaluator(self.condition)
            rows = [row for row in rows if judge(Row({plan.input.table: row}, today)) is True]
        values = [row[self.column] for row in rows]
        return sum((Decimal(value) for value in values if isinstance(value, int | Decimal)), Decimal(0))


def exchanged(case: Any, cause: BridgeCause) -> tuple[dict[str, Any], Data] | None:
    """The first project and its tables with nothing but one cause exchanged; None where a title does not say which."""
    project, other, before, after = case
    keys = {row["k"] for row in before["main"]}, {row["k"] for row in after["main"]}
    old, new = ({row["k"]: row for row in side["main"]} for side in (before, after))
    if cause.kind == "input":
        what = cause.title.rsplit(" ", 1)[1]
        if what == "added":
            rows = before["main"] + [row for row in after["main"] if row["k"] not in keys[0]]
        elif what == "removed":
            rows = [row for row in before["main"] if row["k"] in keys[1]]
        else:
            rows = [new.get(key, row) for key, row in old.items()]
        return project, {**before, "main": rows}
    if cause.kind == "reference":
        assert len(cause.rows) == cause.row_count
        codes = {row.key["code"] for row in cause.rows}
        rates = {row["code"]: row for row in after["dim"]}
        return project, {
            **before,
            "dim": [rates[row["code"]] if row["code"] in codes else row for row in before["dim"]],
        }
    if cause.kind == "appended":
        return project, {**before, "extra": after["extra"]}
    given = re.fullmatch(r"parameter (\w+) .* -> .*", cause.title)
    if given is not None:
        return {**project, "parameters": {**project["parameters"], given[1]: other["parameters"][given[1]]}}, before
    told = re.fullmatch(r'operation \d+ "([^"]*)" (added|removed|changed)(:.*)?', cause.title, flags=re.DOTALL)
    if told is None:
        return None
    mine, theirs = ({each["name"]: each for each in side["operations"]} for side in (project, other))
    if told[2] == "removed":
        del mine[told[1]]
    else:
        mine[told[1]] = {**theirs[told[1]], "seq": mine.get(told[1], theirs[told[1]])["seq"]}
    return {**project, "operations": sorted(mine.values(), key=lambda each: int(each["seq"]))}, before


@settings(max_examples=20)
@given(changes(), STYLES, STYLES, st.sampled_from(["amount", "k"]), st.sampled_from(WHERES), st.sampled_from(DAYS))
def test_causes_add_up_and_each_is_what_a_run_with_it_alone_gives(
    tmp_path_factory: pytest.TempPathFactory,
    case: Any,
    one: Any,
    other: Any,
    column: str,
    where: str | None,
    today: date,
) -> None:
    with written_pair(case, (one, other), (TODAY, today)) as pair:
        columns = [{name for name, _ in each.trace.run.columns(1000)} for each in (pair.a, pair.b)]
        assume(where is None or "total" not in where or all("total" in each for each in columns))
        found = asked(pair, column=column, where=where)
        condition = None if where is None else pair.a.trace.condition(where, 1000)
        totals = Totals(tmp_path_factory.mktemp("oracle"), column, where, condition)
        project, second, before, after = case
        first, last = totals.of(project, before, TODAY), totals.of(second, after, today)
        assert (found.value_a, found.value_b) == (first, last)
        assert sum((cause.amount for cause in found.causes), Decimal(0)) == last - first
        for cause in found.causes:
            mixture = (project, before) if cause.kind == "today" else exchanged(case, cause)
            day = today if cause.kind == "today" else TODAY
            if mixture is not None:
                assert cause.alone == totals.of(mixture[0], mixture[1], day) - first, cause.title
        sequential = asked(pair, column=column, where=where, mode="sequential")
        assert sum((cause.amount for cause in sequential.causes), Decimal(0)) == last - first
        if sequential.causes and len(found.causes) == 1:
            assert found.causes[0].amount == found.causes[0].alone == last - first


@given(st.lists(st.fractions(max_denominator=50), max_size=6), st.integers(0, 4))
def test_rounded_shares_keep_their_sum(shares: list[Fraction], scale: int) -> None:
    whole = Fraction(round(sum(shares, Fraction(0)) * 10**scale), 10**scale)
    given_shares = [*shares, whole - sum(shares, Fraction(0))]
    found = rounded(given_shares, scale)
    assert sum(map(Fraction, found), Fraction(0)) == whole
    assert all(
        abs(Fraction(each) - share) < Fraction(1, 10**scale) for each, share in zip(found, given_shares, strict=True)
    )


@given(st.lists(st.integers(-9, 9), min_size=4, max_size=4), st.integers(-9, 9))
def test_what_two_causes_do_together_is_shared_between_them(alone: list[int], together: int) -> None:
    """Every cause has a worth of its own, and the first two have one more together."""

    def worth(made: frozenset[int]) -> Decimal:
        return Decimal(sum(alone[each] for each in made) + (together if made >= {0, 1} else 0))

    half = Fraction(together, 2)
    assert shapley_shares(4, worth) == [alone[0] + half, alone[1] + half, alone[2], alone[3]]
    assert sequential_shares(4, worth) == [alone[0], alone[1] + together, alone[2], alone[3]]


def test_values_that_runs_are_given_are_causes_by_themselves() -> None:
    """Three changes at once: a parameter, another one that nothing reads, and what TODAY() means."""
    row = {**dict.fromkeys(("currency", "flag", "at", "share")), "_period": "2026-01", "amount": Decimal("2.00")}
    rows = [{**row, "k": 1, "day": date(2026, 1, 5)}, {**row, "k": 2, "day": date(2026, 1, 20)}]
    data: Data = {"main": rows, "dim": [], "extra": [], "finer": []}
    given = [
        {"floor": {"type": "integer", "default": 0}, "factor": {"type": "decimal(6,2)", "default": factor}}
        | {"unused": {"type": "string", "default": factor}}
        for factor in ("1.50", "2.00")
    ]
    plain: dict[str, Any] = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main"}
    projects = [{**plain, "operations": [GIVEN, OUTPUT], "parameters": each} for each in given]
    with written_pair((projects[0], projects[1], data, data), (Style(), Style()), (DAYS[1], TODAY)) as pair:
        found = asked(pair, column="amount")
    assert (found.value_a, found.value_b) == (Decimal("5.00"), Decimal("8.00"))
    assert [(each.kind, each.title, each.amount, each.alone) for each in found.causes] == [
        ("parameter", "parameter factor 1.50 -> 2.00", Decimal("1.50"), Decimal("1.00")),
        ("today", "TODAY() 2026-01-10 -> 2026-01-31", Decimal("1.50"), Decimal("1.00")),
    ]


@contextmanager
def small_pair(other: dict[str, Any] | None = None) -> Iterator[Pair]:
    project: dict[str, Any] = {
        "id": "p",
        "name": "p",
        "version": 1,
        "status": "active",
        "input_dataset": "main",
        "operations": [
            {
                "seq": 1,
                "name": "Twice",
                "type": "update",
                "arguments": {"assignments": [{"column": "doubled", "expression": "amount * 2"}]},
            },
            OUTPUT,
        ],
    }
    row = {"k": 1, "amount": Decimal("1.50"), "currency": "EUR", "share": 0.5, "_period": "2026-01"}
    data: Data = {"main": [row], "dim": [], "extra": [], "finer": []}
    more: Data = {**data, "main": [row, {**row, "k": 2}]}
    with written_pair((project, {**project, **(other or {})}, data, more), (Style(), Style())) as pair:
        yield pair


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"column": "nothing"}, "UnknownColumn"),
        ({"column": "currency"}, "InvalidComparison"),
        ({"column": "share"}, "InvalidComparison"),
        ({"column": "amount", "where": "nothing = 1"}, "UnknownColumn"),
        ({"column": "amount", "output": 1}, "NotAnOutput"),
        ({"column": "amount", "at": 7}, "StepOutOfRange"),
        ({"column": "amount", "where": '_row_id = "x"'}, "NotRecomputable"),
    ],
)
def test_wrong_questions_are_refused(question: dict[str, Any], code: str) -> None:
    with small_pair() as pair, pytest.raises(UserError) as refused:
        asked(pair, **question)
    assert [each.code for each in refused.value.diagnostics] == [code]


def _update(seq: int, name: str, expression: str) -> dict[str, Any]:
    assignments = [{"column": "amount", "expression": expression}]
    return {"seq": seq, "name": name, "type": "update", "arguments": {"assignments": assignments}}


def test_operations_in_another_order_are_named_apart_from_those_that_changed() -> None:
    twice, plus = (1, "Twice", "amount * 2"), (2, "Plus", "amount + 1")
    project: dict[str, Any] = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "main"}
    row = {**dict.fromkeys(("currency", "flag", "at", "share", "day")), "_period": "2026-01"}
    data: Data = {"main": [{**row, "k": 1, "amount": Decimal("1.50")}], "dim": [], "extra": [], "finer": []}

    def bridge(*operations: tuple[int, str, str]) -> ChangeBridge:
        listed = [
            [_update(*each) for each in side] + [OUTPUT]
            for side in ((twice, plus, (3, "Less", "amount - 1")), operations)
        ]
        both = [{**project, "operations": each} for each in listed]
        with written_pair((both[0], both[1], data, data), (Style(), Style())) as pair:
            return asked(pair, column="amount")

    moved = 'operation 2 "Twice" moved: first -> after "Plus"'
    found = bridge((1, "Plus", "amount + 1"), (2, "Twice", "amount * 2"), (3, "Less", "amount - 1"))
    assert [(each.title, each.amount) for each in found.causes] == [(moved, Decimal("1.00"))]
    found = bridge((1, "Plus", "amount + 1"), (2, "Twice", "amount * 2"), (3, "Less", "amount - 2"))
    assert found.notes == ()
    assert {each.title: each.alone for each in found.causes} == {
        moved: Decimal("1.00"),
        'operation 3 "Less" changed: amount: amount - 1 -> amount - 2': Decimal("-1.00"),
    }
    found = bridge((1, "Plus", "amount + 2"), (2, "Twice", "amount * 3"), (3, "Less", "amount - 1"))
    assert {each.title: each.alone for each in found.causes} == {
        f"{moved}; amount: amount * 2 -> amount * 3": Decimal("3.50"),
        'operation 1 "Plus" changed: amount: amount + 1 -> amount + 2': Decimal("1.00"),
    }
    assert sum(each.amount for each in found.causes) == found.difference == Decimal("6.50")


def test_operations_that_need_each_other_are_one_cause() -> None:
    listed = [
        {
            "seq": seq,
            "name": name,
            "type": "update",
            "arguments": {"assignments": [{"column": column, "expression": text}]},
        }
        for seq, name, column, text in (
            (1, "Plus", "plus", "TO_DECIMAL(1, 4, 2)"),
            (2, "Twice", "amount", "amount + plus"),
        )
    ]
    with small_pair({"operations": [*listed, OUTPUT]}) as pair:
        found = asked(pair, column="amount")
    [code] = [cause for cause in found.causes if cause.kind == "code"]
    assert len(code.details) == 2
    assert any("need each other" in note for note in found.notes)
    assert sum(cause.amount for cause in found.causes) == found.difference


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "delete", "arguments": {"keep": "last", "keys": ["flag"], "order": ["amount"]}},
        {
            "type": "update",
            "arguments": {"assignments": [{"column": "amount", "expression": "LAG(amount) OVER (ORDER BY amount)"}]},
        },
    ],
    ids=["keep", "window"],
)
def test_rows_outside_of_the_condition_count_where_steps_compare_them_with_those_inside(
    operation: dict[str, Any],
) -> None:
    """The row in EUR is as it was in both runs: what became of it hangs on the one in USD."""
    project = {
        "id": "p",
        "name": "p",
        "version": 1,
        "status": "active",
        "input_dataset": "main",
        "operations": [{"seq": 1, "name": "step", **operation}, copy.deepcopy(OUTPUT)],
    }

    def data(usd: str) -> Data:
        empty = dict.fromkeys(("day", "at", "share"))
        rows = [
            {**empty, "k": k, "amount": Decimal(amount), "currency": currency, "flag": True, "_period": "2026-01"}
            for k, amount, currency in ((1, "5.00", "EUR"), (2, usd, "USD"))
        ]
        return {"main": rows, "dim": [], "extra": [], "finer": []}

    with written_pair((project, project, data("9.00"), data("1.00")), (Style(), Style())) as pair:
        found = asked(pair, column="amount", where='currency = "EUR"')
    assert found.value_a != found.value_b
    assert sum((cause.amount for cause in found.causes), Decimal(0)) == found.difference
