"""What is supposed to be different in a run: values of rows, rows that are gone, another expression or parameter."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.diagnostics import PlainText, UserError, did_you_mean
from clew.diagnostics.codes.changes import INVALID_SUPPOSITION
from clew.diagnostics.codes.language import TYPE_MISMATCH
from clew.lang import Scalar, Scope, Table, check, check_condition, parse
from clew.lang.conversion import assignable
from clew.lang.typed import Expression
from clew.lang.types import Type
from clew.plan.binding import bound
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import converted
from clew.plan.operations import Step, UpdateStep
from clew.plan.plan import Plan
from clew.plan.steps import PlannedExpression
from clew.privacy.eyes import RunEyes

_ROWS = re.compile(r"\s*(?P<dataset>\S+?)(?:\s+where\s+(?P<where>.+))?\s*", re.IGNORECASE | re.DOTALL)
_ASSIGNMENT = re.compile(r"\s*(?P<column>[^=\s]+)\s*=(?P<value>.+)", re.DOTALL)
_EXPRESSION = re.compile(r"\s*(?P<seq>\d+)\.(?P<column>[^=\s]+)\s*=(?P<value>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RowSupposition:
    """Rows of a dataset that get another value, or are not there."""

    text: str
    dataset: str
    """The id of the dataset."""
    where: Expression | None
    column: str | None = None
    """None if the rows are not there."""
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Suppositions:
    """Everything that is supposed."""

    rows: tuple[RowSupposition, ...]
    plan: Plan
    """The plan of the run, or what would have been run in its place."""
    texts: tuple[str, ...]

    def of_dataset(self, use: DatasetUse) -> list[RowSupposition]:
        """What is supposed of the rows of a dataset."""
        return [each for each in self.rows if each.dataset == use.dataset_id]


def suppositions_of(
    plan: Plan,
    eyes: RunEyes,
    *,
    sets: Sequence[str] = (),
    drops: Sequence[str] = (),
    expressions: Sequence[str] = (),
    parameters: Mapping[str, object] | None = None,
) -> Suppositions:
    """Read what is supposed, and check it against a plan and what the caller may see. UserError if it is wrong."""
    rows = [_set(plan, eyes, text) for text in sets] + [_drop(plan, eyes, text) for text in drops]
    other = plan
    for text in expressions:
        other = _with_expression(other, *_expression(plan, eyes, text))
    given = parameters or {}
    other = bound(other, given, None) if given else other
    if not rows and not expressions and not given:
        problem = "nothing is supposed to be different"
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem))
    named = [f"parameter {name} = {value}" for name, value in given.items()]
    texts = (*sets, *(f"without {text}" for text in drops), *expressions, *named)
    return Suppositions(tuple(rows), other, texts)


def _with_expression(plan: Plan, seq: int, column: str, value: PlannedExpression) -> Plan:
    """The plan with another value for a column that an update sets."""

    def edited(step: Step) -> Step:
        if step.seq != seq or not isinstance(step, UpdateStep):
            return step
        given = [replace(each, value=value) if each.column == column else each for each in step.assignments]
        return replace(step, assignments=tuple(given))

    return replace(plan, steps=tuple(map(edited, plan.steps)))


def _set(plan: Plan, eyes: RunEyes, text: str) -> RowSupposition:
    head, _, tail = _split(text)
    assigned = _ASSIGNMENT.fullmatch(tail)
    if assigned is None:
        problem = f'"{text}" does not say what a column is set to'
        hint = "write DATASET where CONDITION: COLUMN = EXPRESSION"
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint=hint))
    use, where = _rows(plan, eyes, head, text)
    types = {column.name: column.type for column in use.columns}
    column = assigned["column"]
    if column not in types or column in SYSTEM_COLUMNS:
        problem = f'{use.name} has no column "{column}" that could be set'
        hint = did_you_mean(column, list(types)) or f"its columns are {', '.join(types)}"
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint=hint))
    seen = eyes.dataset(use)
    seen.require(column, "set")
    seen.require_condition(assigned["value"], "read")
    value = _value(assigned["value"], Scope((Table(use.table, types),)), types[column])
    return RowSupposition(text, use.dataset_id, where, column, value)


def _drop(plan: Plan, eyes: RunEyes, text: str) -> RowSupposition:
    use, where = _rows(plan, eyes, text, text)
    return RowSupposition(text, use.dataset_id, where)


def _rows(plan: Plan, eyes: RunEyes, head: str, text: str) -> tuple[DatasetUse, Expression | None]:
    told = _ROWS.fullmatch(head)
    if told is None:
        problem = f'"{text}" does not name rows of a dataset'
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint="write DATASET where CONDITION"))
    use = _dataset(plan, told["dataset"])
    if told["where"] is None:
        return use, None
    eyes.dataset(use).require_condition(told["where"])
    types = {column.name: column.type for column in use.columns}
    scope = Scope((Table(use.table, types),))
    checked = check_condition(parse(PlainText(told["where"], "<where>")), scope, "in a supposition")
    if checked.expression is None:
        raise UserError(*checked.diagnostics)
    return use, checked.expression


def _dataset(plan: Plan, name: str) -> DatasetUse:
    uses = plan.datasets_read
    for use in uses:
        if name in {use.dataset_id, use.name, use.table}:
            return use
    names = list(dict.fromkeys(use.name for use in uses))
    problem = f'the run read no dataset "{name}"'
    hint = did_you_mean(name, names) or f"it read {', '.join(names)}"
    raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint=hint))


def _expression(plan: Plan, eyes: RunEyes, text: str) -> tuple[int, str, PlannedExpression]:
    told = _EXPRESSION.fullmatch(text)
    if told is None:
        problem = f'"{text}" does not name a column of a step'
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint="write SEQ.COLUMN = EXPRESSION"))
    step = next((each for each in plan.steps if each.seq == int(told["seq"])), None)
    if not isinstance(step, UpdateStep):
        problem = f"step {told['seq']} is not an update"
        listed = [each.seq for each in plan.steps if isinstance(each, UpdateStep)]
        updates = ", ".join(map(str, listed)) or "none"
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint=f"the updates are {updates}"))
    assigned = {each.column: each for each in step.assignments}
    if told["column"] not in assigned:
        problem = f'step {step.seq} does not set "{told["column"]}"'
        hint = did_you_mean(told["column"], list(assigned)) or f"it sets {', '.join(assigned)}"
        raise UserError(INVALID_SUPPOSITION.anywhere(problem=problem, hint=hint))
    for seen in (eyes.working, *(eyes.dataset(join.dataset) for join in step.lookups)):
        seen.require_condition(told["value"], "read")
    before = max((each.seq for each in plan.steps if each.seq < step.seq), default=0)
    types = {column.name: column.type for column in plan.columns_after(before)} | dict(SYSTEM_COLUMNS)
    tables = [Table(plan.input.table, types)]
    tables += [Table(j.alias, {column.name: column.type for column in j.dataset.columns}) for j in step.lookups]
    target = assigned[told["column"]].value.tree.type
    value = _value(told["value"], Scope(tuple(tables)), target)
    return step.seq, told["column"], PlannedExpression(told["value"].strip(), value)


def _value(text: str, scope: Scope, target: Type) -> Expression:
    node = parse(PlainText(text, "<set>"))
    checked = check(node, scope, Scalar("in a supposition"))
    if checked.expression is None:
        raise UserError(*checked.diagnostics)
    if not assignable(checked.expression.type, target):
        problem = f"a {checked.expression.type} cannot be assigned to a column of type {target}"
        raise UserError(TYPE_MISMATCH.at(node.region.span, problem=problem))
    return converted(checked.expression, target)


def _split(text: str) -> tuple[str, str, str]:
    """A text before and after the first colon that is in no string and no quoted name."""
    for place, character in _outside_quotes(text):
        if character == ":":
            return text[:place], ":", text[place + 1 :]
    return text, "", ""


def _outside_quotes(text: str) -> Iterator[tuple[int, str]]:
    quote = ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in {'"', "`"}:
            quote = character
        else:
            yield place, character


def recorded_supposition(plan: Plan, eyes: RunEyes, text: str) -> str:
    """A supposition for records that others read: without literals, if it names a column that is not public."""
    seen = [eyes.working, *(eyes.dataset(use) for use in plan.datasets_read)]
    return next((told for each in seen if (told := each.recorded(text)) != text), text)
