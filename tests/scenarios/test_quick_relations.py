"""What may be changed about a project or its data without effect, and that it has none. Each project is random."""

import re
from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.scenarios.related_projects import (
    RELATED_DATASETS,
    Data,
    Done,
    Operation,
    Project,
    does,
    hangs_on_an_order,
    may_be_split,
    operations_of,
    related_projects,
    related_tables,
    with_operations,
    words,
)
from tests.tiers import examples
from tests.trace.random_projects import _ASSIGNMENTS, _CONDITIONS, _JOINED_ASSIGNMENTS

FEW = settings(max_examples=examples(8))

_KEY_CONDITIONS = {
    "currency": 'currency > "EUR"',
    "flag": "flag",
    "_period": "_period IS NULL",
    "day": "MONTH(day) = 1",
}
_SOURCE_CONDITIONS = {"extra": ["x.amount > 1", 'x.currency = "EUR"', "x.k > x.amount"], "finer": ["f.k > f.amount"]}


@FEW
@given(related_projects(), related_tables(), st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order(project: Project, data: Data, chance: Any) -> None:
    shuffled = {name: chance.sample(rows, len(rows)) for name, rows in data.items()}
    assert does(project, shuffled) == does(project, data)


@FEW
@given(related_projects(), related_tables(), st.data())
def test_a_column_that_nobody_reads_changes_nothing_but_itself(
    project: Project, data: Data, draw: st.DataObject
) -> None:
    more = {
        name: {**dataset, "columns": {"spare": "string", **dataset["columns"]}}
        for name, dataset in RELATED_DATASETS.items()
    }
    spare = st.sampled_from(["", "x", None, "ß"])
    wider = {name: [{**row, "spare": draw.draw(spare)} for row in rows] for name, rows in data.items()}
    with_it = does(project, wider, datasets=more, names=lambda name: None if name == "spare" else name)
    assert with_it == does(project, data)


_NAMES = {
    "k": "when",
    "amount": "größe",
    "currency": "Select",
    "flag": "NOT_",
    "day": "day_",
    "at": "名前",
    "share": "amount",
    "code": "k",
    "rate": "ORDER",
    "label": "_label",
    "total": "null_",
    "rows": "desc_",
    "doubled": "over",
    "note": "t",
    "serial": "partition",
}


@FEW
@given(related_projects(), related_tables())
def test_columns_may_have_other_names(project: Project, data: Data) -> None:
    datasets = {
        name: {
            **dataset,
            "columns": {_NAMES.get(column, column): type_ for column, type_ in dataset["columns"].items()},
            "key": [_NAMES.get(column, column) for column in dataset.get("key", [])],
        }
        for name, dataset in RELATED_DATASETS.items()
    }
    renamed = {
        name: [{_NAMES.get(column, column): value for column, value in row.items()} for row in rows]
        for name, rows in data.items()
    }
    old = {new: name for name, new in _NAMES.items()}
    found = does(_renamed(project), renamed, datasets=datasets, names=lambda name: old.get(name, name))
    assert found == does(project, data)


_EXPRESSIONS = {"selector", "expression", "having", "on", "source_selector"}


def _renamed(part: Any, key: str = "") -> Any:
    """A part of a project with the new names; the table `t` keeps its name."""
    if isinstance(part, dict):
        return {name: _renamed(value, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_renamed(value, key) for value in part]
    if key in _EXPRESSIONS:
        return re.sub(r'"[^"]*"|\b[a-z]+\b', lambda found: _in_expression(found[0]), part)
    if key in {"column", "columns", "group_by", "keys", "order"}:
        return re.sub(r"\b[a-z]+\b", lambda found: _NAMES.get(found[0], found[0]), part)
    return part


def _in_expression(word: str) -> str:
    return f"`{_NAMES[word]}`" if word in _NAMES else word


@FEW
@given(related_projects(), related_tables(), st.data())
def test_a_step_that_selects_nothing_or_sets_what_is_there_does_nothing(
    project: Project, data: Data, draw: st.DataObject
) -> None:
    idle: list[Operation] = [
        {"type": "delete", "selector": "k <> k"},
        {"type": "delete", "selector": "NULL AND flag"},
        {"type": "update", "arguments": {"assignments": [{"column": "amount", "expression": "amount"}]}},
        {
            "type": "update",
            "selector": "serial < 0",
            "arguments": {"assignments": [{"column": "k", "expression": "SUM(k) OVER (PARTITION BY flag)"}]},
        },
        {
            "type": "aggregate",
            "selector": "FALSE",
            "arguments": {
                "group_by": ["currency"],
                "aggregations": [{"column": "amount", "expression": "SUM(amount)"}],
            },
        },
    ]
    operations = operations_of(project)
    operations.insert(draw.draw(st.integers(0, len(operations))), {**draw.draw(st.sampled_from(idle)), "origin": 0})
    assert does(with_operations(project, operations), data) == does(project, data)


@FEW
@given(related_projects(), related_tables(), st.sampled_from(["NOT NOT ({})", "({}) AND TRUE", "IFNULL({}, FALSE)"]))
def test_a_selector_may_say_the_same_in_other_words(project: Project, data: Data, form: str) -> None:
    reworded = [
        {**each, "selector": form.format(each["selector"])} if "selector" in each else each
        for each in operations_of(project)
    ]
    assert does(with_operations(project, reworded), data) == does(project, data)


@settings(max_examples=examples(24))
@given(related_projects(), related_tables(), st.data())
def test_a_step_is_three_steps_where_a_condition_is_true_false_and_null(
    project: Project, data: Data, draw: st.DataObject
) -> None:
    operations = operations_of(project)
    number = draw.draw(st.sampled_from([at for at, each in enumerate(operations) if may_be_split(each)]))
    operations[number : number + 1] = _parts(operations[number], draw)
    assert does(with_operations(project, operations), data) == does(project, data)


def _parts(operation: Operation, draw: st.DataObject) -> list[Operation]:
    arguments, where = operation.get("arguments", {}), "selector"
    condition = draw.draw(st.sampled_from(_CONDITIONS))
    match operation["type"]:
        case "update":
            changed = {each["column"] for each in arguments["assignments"]}
            assume(not changed & words(condition, operation.get("selector")))
        case "aggregate":
            condition = _KEY_CONDITIONS[arguments["group_by"][0]]
        case "append":
            where = "source_selector"
            condition = draw.draw(st.sampled_from(_SOURCE_CONDITIONS[arguments["source"]["dataset_id"]]))
        case _:
            pass
    holder = arguments if where == "source_selector" else operation
    given_one = holder.get(where, "TRUE")
    parts = list[Operation]()
    for part in (f"({condition})", f"NOT ({condition})", f"({condition}) IS NULL"):
        selector = f"({given_one}) AND {part}"
        changed_part = {**operation, where: selector}
        parts.append(
            changed_part if holder is operation else {**operation, "arguments": {**arguments, where: selector}}
        )
    return parts


_ALL_ASSIGNMENTS = [*((each, False) for each in _ASSIGNMENTS), *((each, True) for each in _JOINED_ASSIGNMENTS)]


def _reads(assignment: tuple[str, str], *, joins: bool) -> set[str]:
    return words(assignment[1], *(("currency",) if joins else ()))


_INDEPENDENT = [
    (one, other)
    for one, other in combinations(_ALL_ASSIGNMENTS, 2)
    if one[0][0] != other[0][0]
    and one[0][0] not in _reads(other[0], joins=other[1])
    and other[0][0] not in _reads(one[0], joins=one[1])
]
"""Assignments, and whether they need a join, of which neither reads what the other sets."""


def _update(assignments: Sequence[tuple[str, str]], selector: str, *, joins: bool) -> Operation:
    join = {"joins": [{"alias": "dim", "dataset_id": "dim", "on": "dim.code = t.currency"}]} if joins else {}
    listed = [{"column": column, "expression": expression} for column, expression in assignments]
    return {"type": "update", "selector": selector, "arguments": {**join, "assignments": listed}, "origin": -1}


def _conditions_without(*columns: str) -> st.SearchStrategy[str]:
    return st.sampled_from([each for each in _CONDITIONS if not words(each) & set(columns)])


def _ends(done: Done | str) -> object:
    """What was done, without the two steps themselves: what a row was between them is not the same."""
    if isinstance(done, str):
        return done
    return done.outputs, {origin: found for origin, found in done.changes.items() if origin >= 0}


@settings(max_examples=examples(16))
@given(related_projects(), related_tables(), st.sampled_from(_INDEPENDENT), st.integers(0, 9), st.data())
def test_steps_that_do_not_read_what_the_other_sets_may_change_places(
    project: Project, data: Data, pair: Any, place: int, draw: st.DataObject
) -> None:
    (one, joins), (other, other_joins) = pair
    first = _update([one], draw.draw(_conditions_without(other[0])), joins=joins)
    second = _update([other], draw.draw(_conditions_without(one[0])), joins=other_joins)
    rest = operations_of(project)
    orders = [[*rest[:place], *steps, *rest[place:]] for steps in ((first, second), (second, first))]
    found = [does(with_operations(project, order), data) for order in orders]
    assert _ends(found[0]) == _ends(found[1])


@FEW
@given(related_projects(), related_tables(), st.sampled_from(_INDEPENDENT), st.data())
def test_one_step_may_set_what_two_steps_set(project: Project, data: Data, pair: Any, draw: st.DataObject) -> None:
    (one, joins), (other, other_joins) = pair
    condition = draw.draw(_conditions_without(one[0], other[0]))
    both = _update([one, other], condition, joins=joins or other_joins)
    two = [_update([one], condition, joins=joins), _update([other], condition, joins=other_joins)]
    rest = operations_of(project)
    found = [does(with_operations(project, [*steps, *rest]), data) for steps in ([both], two)]
    assert _ends(found[0]) == _ends(found[1])


@FEW
@given(related_projects(), related_tables(), st.integers(0, 8))
def test_steps_that_look_at_rows_one_by_one_do_to_all_what_they_do_to_each_part(
    project: Project, data: Data, place: int
) -> None:
    alone = [
        each
        for each in operations_of(project)
        if each["type"] in {"update", "delete", "output"} and not hangs_on_an_order(each)
    ]
    project = with_operations(project, alone)
    whole, first, second = (
        does(project, {**data, "main": rows}) for rows in (data["main"], data["main"][:place], data["main"][place:])
    )
    if isinstance(first, str) or isinstance(second, str):
        assert isinstance(whole, str)
    else:
        assert whole == first + second


@FEW
@given(related_projects(), related_tables())
def test_deletes_may_come_in_any_order(project: Project, data: Data) -> None:
    deletes = [{"type": "delete", "selector": condition, "origin": -1} for condition in _CONDITIONS[::3]]
    rest = operations_of(project)
    found = [does(with_operations(project, [*each, *rest]), data) for each in (deletes, deletes[::-1])]
    assert found[0] == found[1]


def test_every_kind_of_step_is_among_the_projects() -> None:
    seen = set[str]()

    @settings(max_examples=40)
    @given(related_projects())
    def collect(project: Project) -> None:
        seen.update(chain.from_iterable((each["type"], str("keep" in str(each))) for each in project["operations"]))

    collect()
    assert seen >= {"update", "delete", "aggregate", "append", "output", "True"}
