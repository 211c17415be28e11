"""Looks at a large group at once: DuckDB computes its value again and finds the rows that brought in the most.

This is done only where DuckDB certainly computes what the evaluator does. The evaluator checks that on some rows, and
if it finds a difference, or the query fails, the group is looked at row by row as if there were no DuckDB.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from clew.deferred import dataclass
from clew.diagnostics import ClewError, EngineBug
from clew.explain.parents import Contribution, Group, Keys, Parent, contributing_call, in_group, share_of
from clew.explain.row_conditions import all_of, compared, is_not_deleted
from clew.lang.evaluation import Row, evaluator, group_evaluator, signature_of
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.functions.aggregates import mean_of
from clew.lang.typed import Apply, Expression, Value, columns_of, walk
from clew.lang.types import Kind
from clew.plan.names import RowName
from clew.plan.operations import CreatingStep
from clew.storage.parts import ORDINAL
from clew.trace.exact_sql import exact_value
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues
from clew.trace.row_sets import Cells, RowSet
from clew.trace.sql import Sql, quoted

SAMPLE = 500
"""So many rows of a group, the first ones, are evaluated in Python too."""

COMBINED = frozenset({"SUM", "AVG", "COUNT", "COUNT_ALL", "COUNT_DISTINCT", "MIN_AGG", "MAX_AGG"})
"""The aggregations whose values follow from what DuckDB computes."""
_COUNT, _FIRST, _TOP, _EMPTY = "count", "first", "top", "empty"


ReadStates = Callable[[Sequence[int]], Mapping[int, RowValues]]
"""Reads rows as the step saw them, by ordinal."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about a group."""

    trace: RunTrace
    rows: RowSet
    condition: Expression
    calls: tuple[Apply, ...]
    arguments: Mapping[Apply, Sql]
    expression: Expression
    columns: tuple[str, ...]
    """What the expression needs, and the names of rows."""


def look_at_once(
    trace: RunTrace,
    step: CreatingStep,
    keys: Keys,
    expression: Expression,
    stored: Value,
    *,
    shown: slice,
    states: ReadStates,
    sample: int = SAMPLE,
) -> Group | None:
    """A group with the rows that brought in the most; None where it has to be looked at row by row.

    `shown` are those of them, in order, that are wanted. `states` reads these few rows, which lie anywhere.
    """
    asked = _question(trace, step, keys, expression)
    if asked is None:
        return None
    try:
        found = asked.rows.computed(_selected(asked, shown.stop, sample), _needed(asked), asked.condition, trace.today)
    except EngineBug:
        return None  # a value that does not fit, which the evaluator reports in its own words
    if not found or not found[_COUNT]:
        return None
    return _looked(asked, found, stored, shown, states)


def _question(trace: RunTrace, step: CreatingStep, keys: Keys, expression: Expression) -> _Question | None:
    if step.made_from is not None:
        return None
    table, before = trace.plan.input.table, trace.run.before(step.seq)
    rows = trace.working(before)
    condition = all_of([*in_group(keys), is_not_deleted(table), step.condition.tree if step.condition else None])
    assert condition is not None  # noqa: S101 - deleted rows are never in a group
    calls = tuple(dict.fromkeys(aggregate_calls(expression)))
    if not {call.function for call in calls} <= COMBINED or not columns_of(expression) <= _of_table(table, rows):
        return None
    arguments = dict[Apply, Sql]()
    for call in calls:
        if call.arguments:
            value = exact_value(call.arguments[0], lambda column: Sql(quoted(column.column)), trace.today)
            if value is None:
                return None
            arguments[call] = value
    columns = {column for _, column in columns_of(expression)} | set(trace.names.columns(before))
    return _Question(trace, rows, condition, calls, arguments, expression, tuple(sorted(columns)))


def aggregate_calls(expression: Expression) -> Iterator[Apply]:
    """The calls of an expression that add up a group."""
    for node in walk(expression):
        if isinstance(node, Apply) and isinstance(FUNCTIONS[node.function], AggregateFunction):
            yield node


def _of_table(table: str, rows: RowSet) -> set[tuple[str, str]]:
    return {(table, name) for name in rows.names}


def _needed(asked: _Question) -> set[str]:
    return {name for call in asked.arguments for _, name in columns_of(call)}


def _selected(asked: _Question, top: int, sample: int) -> dict[str, Sql]:
    """What DuckDB computes: the count, what each aggregate is made of, and a few rows with their values."""
    values = [Sql(f"v{number} := ") + asked.arguments[call] for number, call in enumerate(asked.arguments)]
    selected = {_COUNT: Sql("count(*)")}
    for number, each in enumerate(asked.calls):
        selected |= {f"{number}:{name}": sql for name, sql in parts_of(each, asked.arguments.get(each)).items()}
    selected[_FIRST] = _least([Sql(f"o := {ORDINAL}"), *values], sample)
    call = contributing_call(asked.expression)
    order = None if call is None else _order(call, asked.arguments[call])
    if call is None or order is None:
        selected[_TOP] = _least([Sql(f"o := {ORDINAL}"), *values], top)
        return selected
    has_value = "(" + asked.arguments[call] + ")"
    most = [Sql("k := ") + order, Sql(f"o := {ORDINAL}"), *values]
    selected[_TOP] = _least(most, top) + " FILTER (WHERE " + has_value + " IS NOT NULL)"
    selected[_EMPTY] = _least([Sql(f"o := {ORDINAL}")], top) + " FILTER (WHERE " + has_value + " IS NULL)"
    return selected


def _least(fields: Sequence[Sql], number: int) -> Sql:
    packed = Sql("min(struct_pack(")
    for index, field in enumerate(fields):
        packed = packed + (", " if index else "") + field
    return packed + f"), {number})"


def _order(call: Apply, value: Sql) -> Sql | None:
    """What is least for the rows that are shown first: `clew.explain.parents` has the same order."""
    if not call.arguments[0].type.is_numeric:
        return None
    exact = "CAST(" + value + " AS HUGEINT)" if call.arguments[0].type.kind is Kind.INTEGER else "(" + value + ")"
    match call.function:
        case "SUM" | "AVG":
            return "-abs(" + exact + ")"
        case "MIN_AGG":
            return exact
        case "MAX_AGG":
            return "-" + exact
        case _:
            return None


def parts_of(call: Apply, value: Sql | None) -> dict[str, Sql]:
    """The aggregates of DuckDB that the value of a call follows from."""
    if value is None:
        return {"count": Sql("count(*)")}
    match call.function:
        case "SUM" | "AVG":
            scale = call.arguments[0].type.scale if call.arguments[0].type.kind is Kind.DECIMAL else 0
            total = "CAST(sum(" + value + f") AS DECIMAL(38, {scale}))"
            return {"total": total, "count": "count(" + value + ")"}
        case "COUNT_DISTINCT":
            return {"count": "count(DISTINCT " + value + ")"}
        case "MIN_AGG":
            return {"value": "min(" + value + ")"}
        case "MAX_AGG":
            return {"value": "max(" + value + ")"}
        case _:
            return {"count": "count(" + value + ")"}


def combined(call: Apply, parts: Mapping[str, Any]) -> Value:
    """The value of a call, from what DuckDB computed."""
    function, signature = FUNCTIONS[call.function], signature_of(call)
    assert isinstance(function, AggregateFunction)  # noqa: S101 - `_question` gives no other
    if call.function in {"SUM", "AVG"}:
        if not parts["count"]:
            return None
        if call.function == "AVG":
            return mean_of(parts["total"], parts["count"], signature)
        is_integer = signature.result.kind is Kind.INTEGER
        return function.combine([int(parts["total"]) if is_integer else parts["total"]], signature)
    found: Value = parts["value"] if "value" in parts else int(parts["count"])
    return found


def _looked(
    asked: _Question, found: Mapping[str, Any], stored: Value, wanted: slice, states: ReadStates
) -> Group | None:
    count = int(found[_COUNT])
    most = (found[_TOP] or ())[wanted]
    sample: dict[int, Mapping[str, Any]] = {each["o"]: each for each in (*found[_FIRST], *most)}
    shown = [each["o"] for each in (*(found[_TOP] or ()), *(found.get(_EMPTY) or ()))][wanted]
    first_rows = [each["o"] for each in found[_FIRST]]
    elsewhere = [ordinal for ordinal in shown if ordinal not in set(first_rows)]
    seen = _seen(asked, [*_first_states(asked, first_rows), *(states(elsewhere).items() if elsewhere else ())])
    if not _agrees(asked, seen, sample):
        return None
    first = [seen[each["o"]].seen for each in found[_FIRST]]
    if len(first) == count:
        recomputed = compared(stored, lambda: group_evaluator(asked.expression)(first)).of_many("python", count, count)
    else:
        recomputed = compared(stored, lambda: _again(asked, found, first[0])).of_many("duckdb", count, len(sample))
    call = contributing_call(asked.expression)
    bring = None if call is None else evaluator(call.arguments[0])
    largest = list[Contribution]()
    for ordinal in shown:
        value = None if bring is None else bring(seen[ordinal].seen)
        largest.append(Contribution(seen[ordinal], value, share_of(call, value, stored)))
    return Group(count, tuple(largest), recomputed)


def _again(asked: _Question, found: Mapping[str, Any], first: Row) -> Value:
    """The value of the expression, with the aggregates that DuckDB computed."""
    values = dict[Apply, Value]()
    for number, call in enumerate(asked.calls):
        begin = f"{number}:"
        parts = {name.removeprefix(begin): value for name, value in found.items() if name.startswith(begin)}
        values[call] = combined(call, parts)
    return evaluator(asked.expression)(Row(first.tables, first.today, values))


def _first_states(asked: _Question, ordinals: Sequence[int]) -> list[tuple[int, Cells]]:
    """The values of the first rows, which lie close together."""
    columns = {*asked.columns, *(name for _, name in columns_of(asked.condition) if name in asked.rows.names)}
    return asked.rows.values(ordinals, sorted(columns))


def _seen(asked: _Question, rows: Iterable[tuple[int, RowValues]]) -> dict[int, Parent]:
    """Rows as the evaluator sees them."""
    trace, found = asked.trace, dict[int, Parent]()
    for ordinal, cells in rows:
        label = trace.names.name(ordinal, cells) or RowName(trace.row_ids.row_id(ordinal))
        found[ordinal] = Parent(ordinal, label, trace.see(ordinal, dict(cells)))
    return found


def _agrees(asked: _Question, seen: Mapping[int, Parent], sample: Mapping[int, Mapping[str, Any]]) -> bool:
    """Whether the evaluator judges and computes the rows of the sample as DuckDB did."""
    decide = evaluator(asked.condition)
    evaluators = [evaluator(call.arguments[0]) for call in asked.arguments]
    try:
        for ordinal, computed in sample.items():
            row = seen[ordinal].seen
            if decide(row) is not True:
                return False
            if any(_differs(computed[f"v{n}"], evaluate(row)) for n, evaluate in enumerate(evaluators)):
                return False
    except ClewError:
        return False
    return True


def _differs(computed: Value, value: Value) -> bool:
    is_number = isinstance(computed, int | Decimal) and isinstance(value, int | Decimal)
    return computed != value or (not is_number and type(computed) is not type(value))
