"""Random small projects over random tables, right and wrong ones, as Python data."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from clew.lang.types import parse_type
from clew.plan.datasets import DatasetColumn, DatasetUse

Data = Mapping[str, Any]

NAMES = ("a", "b", "c", "d", "Größe", "_period", "_labels")
TYPES = ("string", "integer", "decimal(12,2)", "double", "boolean", "date", "timestamp")


@st.composite
def tables(draw: st.DrawFn, name: str) -> DatasetUse:
    """A dataset that a scenario would bring along."""
    chosen = draw(st.lists(st.sampled_from(NAMES[:5]), min_size=1, max_size=5, unique=True))
    columns = tuple(DatasetColumn(column, parse_type(draw(st.sampled_from(TYPES)))) for column in chosen)
    return DatasetUse(name, name, name, "none", columns, resolver_source="inline")


_COLUMNS = st.sampled_from([*NAMES, *(f"work.{name}" for name in NAMES), "other.a", "j.a", "j.b"])
_LITERALS = st.sampled_from(["1", "2.50", '"x"', "TRUE", "NULL", 'DATE("2026-01-31")', "{{s}}"])
_VALUES = st.recursive(
    _COLUMNS | _LITERALS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "=", "<", "AND", "OR"]), inner),
        st.builds("{}({})".format, st.sampled_from(["NOT", "ISNULL", "UPPER", "SUM", "COUNT", "MAX_AGG"]), inner),
        st.builds("IF({}, {}, {})".format, inner, inner, inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
    ),
    max_leaves=6,
)
EXPRESSIONS = st.one_of(_VALUES, _VALUES, st.sampled_from(["a >", '"unclosed', "NOPE(a)", "a = 1 AND b IS NULL"]))
_COLUMN_NAMES = st.sampled_from([*NAMES, "new", "New", "total"])
_ASSIGNMENTS = st.lists(
    st.fixed_dictionaries({"column": _COLUMN_NAMES, "expression": EXPRESSIONS}), min_size=1, max_size=3
)
_JOINS = st.lists(
    st.fixed_dictionaries({"alias": st.sampled_from(["j", "work"]), "dataset_id": st.just("other"), "on": EXPRESSIONS}),
    max_size=1,
)
_KEYS = st.lists(st.sampled_from([*NAMES, "work.a", "other.a"]), max_size=2)
_GROUPS = st.fixed_dictionaries({"group_by": _KEYS, "aggregations": _ASSIGNMENTS})
_OUTPUTS = st.fixed_dictionaries(
    {"destination": st.just({"location": {"path": "out.csv"}})},
    optional={
        "columns": st.lists(st.sampled_from([*NAMES, "new"]), min_size=1, max_size=3),
        "include_deleted": st.booleans(),
    },
)
_TYPES_WITH_ARGUMENTS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("update"), st.fixed_dictionaries({"assignments": _ASSIGNMENTS, "joins": _JOINS})),
    st.tuples(st.just("aggregate"), _GROUPS),
    st.tuples(
        st.just("append"),
        st.fixed_dictionaries(
            {"source": st.just({"dataset_id": "other"})},
            optional={"source_selector": EXPRESSIONS, "aggregation": _GROUPS},
        ),
    ),
    st.tuples(st.just("delete"), st.just({})),
    st.tuples(st.just("output"), _OUTPUTS),
)


@st.composite
def _operations(draw: st.DrawFn, seq: int) -> Data:
    type_, arguments = draw(_TYPES_WITH_ARGUMENTS)
    operation = {"seq": seq, "name": f"step {seq}", "type": type_, "arguments": arguments}
    if type_ != "append" and draw(st.booleans()):
        operation["selector"] = draw(EXPRESSIONS)
    if draw(st.integers(0, 4)) == 0:
        operation["assign"] = draw(st.sampled_from(["here", "there"]))
    if draw(st.integers(0, 4)) == 0:
        operation["after_request"] = [{"filter": draw(EXPRESSIONS)}, {"describe": {}}]
    return operation


@st.composite
def projects(draw: st.DrawFn) -> Data:
    """The data of a project on `work`, beside which there is `other`."""
    seqs = draw(st.lists(st.integers(1, 9), max_size=5, unique=True))
    return {
        "id": draw(st.sampled_from([None, "p"])),
        "input_dataset": "work",
        "selectors": {"s": draw(EXPRESSIONS)},
        "operations": [draw(_operations(seq)) for seq in seqs],
    }


@st.composite
def right_projects(draw: st.DrawFn) -> tuple[Data, DatasetUse]:
    """A project without mistakes: every column that it uses is one that is there by then."""
    work = draw(tables("work"))
    known = [column.name for column in work.columns]
    operations = list[Data]()
    for seq in draw(st.lists(st.integers(1, 99), max_size=8, unique=True).map(sorted)):
        column, new = draw(st.sampled_from(known)), f"n{seq}"
        kind = draw(st.sampled_from(["update", "aggregate", "delete", "output", "append"]))
        operation: dict[str, Any] = {"seq": seq, "name": f"{kind} {seq}", "type": kind}
        if kind == "update":
            operation["selector"] = f"{column} IS NOT NULL"
            operation["arguments"] = {
                "assignments": [{"column": new, "expression": f"COALESCE({column}, work.{column})"}]
            }
            known.append(new)
        elif kind == "aggregate":
            groups = {"group_by": [column], "aggregations": [{"column": new, "expression": "COUNT_ALL()"}]}
            operation["arguments"] = groups
            known.append(new)
        elif kind == "delete":
            operation["selector"] = f"work.{column} IS NULL"
        elif kind == "output":
            operation["arguments"] = {"destination": {"location": {"path": "out"}}, "columns": [column, "_period"]}
        else:
            operation["arguments"] = {
                "source": {"dataset_id": "work"},
                "source_selector": f"{work.columns[0].name} IS NULL",
            }
        operations.append(operation)
    return {"input_dataset": "work", "operations": draw(st.permutations(operations))}, work
