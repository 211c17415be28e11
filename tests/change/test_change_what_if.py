"""What would be different: the same as a run with the change made, row by row."""

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from clew.change.comparing import CompareQuestion
from clew.change.sensitivity import sensitivity
from clew.change.suppositions import suppositions_of
from clew.change.what_if import WhatIf, what_if
from clew.diagnostics import UserError
from clew.plan import Plan
from clew.plan.binding import bound
from clew.privacy.eyes import RunEyes
from clew.trace.reader import RunTrace
from tests.change.random_pairs import Data, all_clear
from tests.plan.plan_interpreter import JoinNotUnique
from tests.trace.random_projects import compiled, interpreted, projects, tables
from tests.trace.test_trace_reading import STYLES
from tests.trace.trace_writer import TODAY, Style, Writer

OUTPUT = {
    "seq": 1000,
    "name": "out",
    "type": "output",
    "selector": 'amount > 1 OR currency <> "EUR" OR flag',
    "arguments": {
        "destination": {"location": {"format": "parquet", "path": "out"}},
        "columns": ["k", "amount", "currency", "_labels"],
    },
}
Rows = list[dict[str, Any]]
Change = Callable[[Rows], Rows]
Answer = TypeVar("Answer")


def setting(test: Callable[[Any], bool], column: str, value: Callable[[Any], Any]) -> Change:
    return lambda rows: [{**row, column: value(row)} if test(row) else row for row in rows]


def without(test: Callable[[Any], bool]) -> Change:
    return lambda rows: [row for row in rows if not test(row)]


def times(row: Any) -> Any:
    return None if row["amount"] is None else row["amount"] * 2


EUR = "currency"
SETS: list[tuple[str, str, str, Change]] = [
    ("set", "main", "main: amount = 0", setting(lambda _: True, "amount", lambda _: Decimal("0.00"))),
    (
        "set",
        "main",
        'main where currency = "EUR": amount = amount * 2',
        setting(lambda r: r[EUR] == "EUR", "amount", times),
    ),
    (
        "set",
        "main",
        't where k < 3: currency = "x:"',
        setting(lambda r: r["k"] is not None and r["k"] < 3, EUR, lambda _: "x:"),
    ),
    ("set", "main", "main where flag: flag = FALSE", setting(lambda r: r["flag"] is True, "flag", lambda _: False)),
    ("drop", "main", 'main where currency = "USD"', without(lambda r: r[EUR] == "USD")),
    (
        "set",
        "dim",
        'dim where code = "EUR": rate = 2',
        setting(lambda r: r["code"] == "EUR", "rate", lambda _: Decimal("2.000000")),
    ),
    (
        "set",
        "dim",
        "dim: rate = rate + 1",
        setting(lambda _: True, "rate", lambda r: None if r["rate"] is None else r["rate"] + 1),
    ),
    ("set", "dim", 'dim where code = "x": code = "EUR"', setting(lambda r: r["code"] == "x", "code", lambda _: "EUR")),
    ("drop", "dim", 'dim where code IN ("EUR", "USD")', without(lambda r: r["code"] in {"EUR", "USD"})),
    (
        "set",
        "extra",
        'x where currency = "EUR": amount = 7',
        setting(lambda r: r[EUR] == "EUR", "amount", lambda _: Decimal("7.00")),
    ),
    ("set", "extra", 'extra: currency = "EUR"', setting(lambda _: True, EUR, lambda _: "EUR")),
    ("drop", "extra", "extra where amount > 1", without(lambda r: r["amount"] is not None and r["amount"] > 1)),
    ("set", "finer", "finer: amount = 2", setting(lambda _: True, "amount", lambda _: Decimal("2.000000"))),
    ("drop", "finer", "finer where k IS NOT NULL", without(lambda r: r["k"] is not None)),
]


def supposed(trace: RunTrace, plan: Plan, question: CompareQuestion, **texts: Any) -> WhatIf:
    eyes = RunEyes(all_clear().policy, plan, all_clear())
    return what_if(trace, (eyes.working,), suppositions_of(plan, eyes, **texts), question)


def updated_columns(project: dict[str, Any]) -> list[tuple[int, str]]:
    return [
        (operation["seq"], each["column"])
        for operation in project["operations"]
        if operation["type"] == "update"
        for each in operation["arguments"].get("assignments", ())
        if each["column"] == "amount"
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], Data, list[tuple[str, str, str, Change]], list[tuple[int, str]]]:
    project = draw(projects(most_steps=5))
    project["operations"].append(copy.deepcopy(OUTPUT))
    data = draw(tables())
    chosen = draw(st.lists(st.sampled_from(SETS), max_size=2, unique_by=lambda each: each[2]))
    places = updated_columns(project)
    return project, data, chosen, draw(st.lists(st.sampled_from(places), max_size=1)) if places else []


def rewritten(project: dict[str, Any], places: list[tuple[int, str]]) -> dict[str, Any]:
    found = copy.deepcopy(project)
    for operation in found["operations"]:
        for each in operation.get("arguments", {}).get("assignments", ()):
            if (operation["seq"], each["column"]) in places:
                each["expression"] = "COALESCE(amount, 0) + 1"
    return found


def written_rows(plan: Plan, data: Data) -> Counter[tuple[Any, ...]] | None:
    """What the output gets; None if a join is ambiguous."""
    try:
        return Counter(tuple(row.values()) for row in interpreted(plan, data, TODAY).outputs["1000"])
    except JoinNotUnique:
        return None


def answered(ask: Callable[[], Answer]) -> Answer | None:
    """The answer; None if a join would be ambiguous."""
    try:
        return ask()
    except UserError as error:
        [problem] = error.diagnostics
        assume(problem.code != "InvalidSupposition")  # a setting that matches nothing
        if problem.code != "JoinNotUnique":
            raise
        return None


def without_work(found: WhatIf | None) -> dict[str, object]:
    """An answer without how much had to be evaluated for it, and without the last digits of sums of doubles."""
    if found is None:
        return {}
    columns = [
        replace(each, total_a=round(each.total_a, 9), total_b=round(each.total_b, 9))
        if isinstance(each.total_a, float) and isinstance(each.total_b, float)
        else each
        for each in found.columns
    ]
    return {**replace(found, columns=tuple(columns)).to_json(), "evaluated": 0}


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(cases(), STYLES)
def test_it_is_what_a_run_with_the_change_made_gives(
    tmp_path_factory: pytest.TempPathFactory, case: Any, style: Style
) -> None:
    project, data, chosen, places = case
    folder: Path = tmp_path_factory.mktemp("what")
    plan, other = compiled(folder / "a", project), compiled(folder / "b", rewritten(project, places))
    assume(plan is not None and other is not None)
    assert plan is not None
    assert other is not None
    read = {use.dataset_id for use in plan.datasets_read}
    chosen = [each for each in chosen if each[1] in read]
    assume(chosen or places)
    recorded = interpreted(plan, data, TODAY)
    writer = Writer(folder / "storage", recorded, style)
    trace = writer.write()
    after = dict(data)
    for _, dataset, _, change in chosen:  # each is asked about rows as they were, so that the second sees no first
        assume(sum(each[1] == dataset for each in chosen) == 1)
        after[dataset] = change(after[dataset])
    texts = {
        "sets": [text for kind, _, text, _ in chosen if kind == "set"],
        "drops": [text for kind, _, text, _ in chosen if kind == "drop"],
        "expressions": [f"{seq}.{column} = COALESCE(amount, 0) + 1" for seq, column in places],
    }
    expected = written_rows(other, after)
    found = answered(lambda: supposed(trace, plan, CompareQuestion(limit=None), **texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("clew.change.what_if.MOST_SINGLE", 0)
        at_once = answered(lambda: supposed(trace, plan, CompareQuestion(limit=None), **texts))
    trace.close()
    assert without_work(at_once) == without_work(found)
    assert (expected is None) == (found is None)
    if expected is None or found is None:
        return
    columns = OUTPUT["arguments"]["columns"]  # type: ignore[index]
    rows = Counter(tuple(row.values()) for row in recorded.outputs["1000"])
    states = dict(zip((trace.row_ids.row_id(each) for each in writer.ordinals), recorded.states[1000], strict=True))
    for row in found.rows:
        old = states[row.row_a] if row.row_a is not None else {}
        if row.change != "only_in_b":
            rows[tuple(old[name] for name in columns)] -= 1
        if row.change != "only_in_a":
            rows[tuple(row.columns[name].new if name in row.columns else old[name] for name in columns)] += 1
    assert {row: count for row, count in rows.items() if count} == dict(expected)
    assert found.rows_after == sum(expected.values())
    assert found.rows_before == len(recorded.outputs["1000"])
    totals = {column.name: column for column in found.columns if column.has_totals}
    assert set(totals) == {"amount"}  # sums of keys mean nothing
    for name, column in totals.items():
        place = columns.index(name)
        sums = [
            sum((Decimal(row[place]) * times for row, times in side.items() if row[place] is not None), Decimal(0))
            for side in (Counter(tuple(row.values()) for row in recorded.outputs["1000"]), expected)
        ]
        assert [column.total_a, column.total_b] == sums


PROJECT: dict[str, Any] = {
    "id": "p",
    "name": "p",
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "operations": [
        {
            "seq": 1,
            "name": "Convert",
            "type": "update",
            "arguments": {
                "joins": [{"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}],
                "assignments": [{"column": "amount", "expression": "ROUND(amount * dim.rate, 2)"}],
            },
        },
        {**OUTPUT, "selector": "TRUE"},
    ],
}


@pytest.fixture
def small(tmp_path: Path) -> tuple[RunTrace, Plan]:
    plan = compiled(tmp_path / "w", PROJECT)
    assert plan is not None
    rows = [
        {"k": number, "amount": Decimal(number), "currency": ("EUR", "USD")[number % 2], "_period": "2026-01"}
        for number in range(6)
    ]
    dim = [
        {"code": code, "rate": Decimal(rate), "label": code}
        for code, rate in (("EUR", "1.5"), ("USD", "1"), ("x", "3"))
    ]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    return Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write(), plan


def test_only_rows_that_look_up_the_rate_are_evaluated(small: tuple[RunTrace, Plan]) -> None:
    found = supposed(*small, CompareQuestion(sort="amount", limit=2), sets=['dim where code = "EUR": rate = 2'])
    assert (found.changed, found.gone, found.new) == (2, 0, 0)
    assert found.evaluated == 3
    assert [row.key for row in found.rows] == [{"k": 4}, {"k": 2}]
    [amount] = [column for column in found.columns if column.name == "amount"]
    assert (amount.total_a, amount.total_b, amount.difference) == (Decimal("18.00"), Decimal("21.00"), Decimal("3.00"))


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ({}, "InvalidSupposition"),
        ({"sets": ['dim where code = "nowhere": rate = 2']}, "InvalidSupposition"),
        ({"sets": ["nothing: rate = 2"]}, "InvalidSupposition"),
        ({"sets": ["dim: nothing = 2"]}, "InvalidSupposition"),
        ({"sets": ['dim where code = "EUR"']}, "InvalidSupposition"),
        ({"sets": ['dim: rate = "high"']}, "TypeMismatch"),
        ({"sets": ["dim: rate = amount"]}, "UnknownColumn"),
        ({"sets": ["dim where nothing = 1: rate = 2"]}, "UnknownColumn"),
        ({"sets": ["dim: rate = 2 +"]}, "SyntaxError"),
        ({"sets": ['dim where code = "EUR": code = "USD"']}, "JoinNotUnique"),
        ({"drops": ["main where k = 99"]}, "InvalidSupposition"),
        ({"expressions": ["2.amount = 1"]}, "InvalidSupposition"),
        ({"expressions": ["1000.amount = 1"]}, "InvalidSupposition"),
        ({"expressions": ["1.k = 1"]}, "InvalidSupposition"),
        ({"expressions": ["amount = 1"]}, "InvalidSupposition"),
        ({"expressions": ["1.amount = nothing"]}, "UnknownColumn"),
        ({"expressions": ['1.amount = "x"']}, "TypeMismatch"),
    ],
)
def test_wrong_suppositions_are_refused(small: tuple[RunTrace, Plan], texts: dict[str, list[str]], code: str) -> None:
    with pytest.raises(UserError) as refused:
        supposed(small[0], small[1], CompareQuestion(), **texts)
    assert [each.code for each in refused.value.diagnostics] == [code]


def test_a_selector_may_read_what_is_looked_up(tmp_path: Path) -> None:
    project = copy.deepcopy(PROJECT)
    project["operations"][0]["selector"] = "k > 1 AND dim.rate < 2"
    plan = compiled(tmp_path / "w", project)
    assert plan is not None
    rows = [
        {"k": number, "amount": Decimal(number), "currency": ("EUR", "USD")[number % 2], "_period": "2026-01"}
        for number in range(6)
    ]
    dim = [{"code": code, "rate": Decimal(rate), "label": code} for code, rate in (("EUR", "1.5"), ("USD", "3"))]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    trace = Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write()
    after = {**data, "dim": [{**row, "rate": Decimal("1.9")} if row["code"] == "USD" else row for row in dim]}
    expected = sum((Decimal(str(row["amount"])) for row in interpreted(plan, after, TODAY).outputs["1000"]), Decimal(0))
    found = supposed(trace, plan, CompareQuestion(), sets=['dim where code = "USD": rate = 1.9'])
    [amount] = [column for column in found.columns if column.name == "amount"]
    assert amount.total_b == expected == Decimal("25.2")
    edited = supposed(trace, plan, CompareQuestion(), expressions=["1.amount = amount + 9"])
    assert edited.changed == 2
    trace.close()


def test_a_total_hangs_on_the_rates_that_its_rows_looked_up(small: tuple[RunTrace, Plan]) -> None:
    eyes = RunEyes(all_clear().policy, small[1], all_clear())
    found = sensitivity(small[0], eyes, "amount", None, None)
    assert [(each.key, each.column, each.rows) for each in found.effects] == [
        ({"code": "EUR", "label": "EUR", "rate": Decimal("1.500000")}, "rate", 2),
        ({"code": "USD", "label": "USD", "rate": Decimal("1.000000")}, "rate", 3),
    ]
    for each in found.effects:  # the same as to suppose it by hand
        text = f'dim where code = "{each.key["code"]}": rate = {each.moved_to}'
        by_hand = supposed(*small, CompareQuestion(), sets=[text])
        [amount] = [column for column in by_hand.columns if column.name == "amount"]
        assert amount.difference == each.difference
    assert [(each.moved_to, each.slope) for each in found.effects] == [
        (Decimal("1.515000"), Decimal(6)),
        (Decimal("1.010000"), Decimal(9)),
    ]
    assert (found.tried, found.not_tried, found.not_looked_up) == (2, 0, 1)


def test_a_total_of_some_rows_hangs_on_what_these_have_looked_up(small: tuple[RunTrace, Plan]) -> None:
    eyes = RunEyes(all_clear().policy, small[1], all_clear())
    found = sensitivity(small[0], eyes, "amount", None, None, "k = 3 OR k = 5")
    [effect] = found.effects
    assert (effect.key["code"], effect.difference, effect.rows) == ("USD", Decimal("0.08"), 2)
    assert (found.tried, found.not_looked_up) == (1, 2)
    by_hand = supposed(*small, CompareQuestion(where="k = 3 OR k = 5"), sets=['dim where code = "USD": rate = 1.01'])
    [amount] = [column for column in by_hand.columns if column.name == "amount"]
    assert (by_hand.rows_before, by_hand.changed, amount.total_a, amount.total_b) == (
        2,
        2,
        Decimal("8.00"),
        Decimal("8.08"),
    )


def test_of_many_values_those_that_most_rows_have_looked_up_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the dataset, the ones that count come last."""
    plan = compiled(tmp_path / "w", PROJECT)
    assert plan is not None
    codes = [f"unused {number}" for number in range(5)] + ["USD", "EUR", "GBP"]
    looked_up = ["EUR", "EUR", "EUR", "GBP", "GBP", "USD"]
    rows = [
        {"k": number, "amount": Decimal(10), "currency": code, "_period": "2026-01"}
        for number, code in enumerate(looked_up)
    ]
    dim = [{"code": code, "rate": Decimal(1), "label": code} for code in codes]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    trace = Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write()
    monkeypatch.setattr("clew.change.sensitivity.MOST_VALUES", 2)
    found = sensitivity(trace, RunEyes(all_clear().policy, plan, all_clear()), "amount", None, None)
    assert [(each.key["code"], each.difference) for each in found.effects] == [
        ("EUR", Decimal("0.30")),
        ("GBP", Decimal("0.20")),
    ]
    assert (found.tried, found.not_tried, found.not_looked_up) == (2, 1, 5)
    trace.close()


@pytest.mark.parametrize("column", ["currency", "nothing", "flag"])
def test_only_a_total_hangs_on_anything(small: tuple[RunTrace, Plan], column: str) -> None:
    eyes = RunEyes(all_clear().policy, small[1], all_clear())
    with pytest.raises(UserError) as refused:
        sensitivity(small[0], eyes, column, None, None)
    assert [each.code for each in refused.value.diagnostics] == ["InvalidComparison"]


def test_another_value_of_a_parameter_is_what_a_run_with_it_gives(tmp_path: Path) -> None:
    project = copy.deepcopy(PROJECT)
    project["parameters"] = {"factor": {"type": "decimal(5,2)", "default": 1}}
    project["operations"][0]["selector"] = "amount * param.factor > 2"
    declared = compiled(tmp_path / "w", project)
    assert declared is not None
    rows = [
        {"k": number, "amount": Decimal(number), "currency": ("EUR", "USD")[number % 2], "_period": "2026-01"}
        for number in range(6)
    ]
    dim = [{"code": "EUR", "rate": Decimal("1.5"), "label": "e"}, {"code": "USD", "rate": Decimal(3), "label": "u"}]
    data: Data = {"main": rows, "dim": dim, "extra": [], "finer": []}
    plan, other = bound(declared, {}, None), bound(declared, {"factor": "2.5"}, None)
    trace = Writer(tmp_path / "s", interpreted(plan, data, TODAY), Style()).write()
    found = supposed(trace, plan, CompareQuestion(limit=None), parameters={"factor": "2.5"})
    sums = [
        sum((Decimal(str(row["amount"])) for row in interpreted(each, data, TODAY).outputs["1000"]), Decimal(0))
        for each in (plan, other)
    ]
    [amount] = [column for column in found.columns if column.name == "amount"]
    assert [amount.total_a, amount.total_b] == sums
    assert sums[0] != sums[1]
    assert found.supposed == ("parameter factor = 2.5",)
    trace.close()
