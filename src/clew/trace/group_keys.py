"""The keys of groups: where summary rows have them, and how the rows behind them give them.

A key of rows that are summed up from another dataset is converted to the type of the column it goes to, and two keys
can become one by that: 1.231 and 1.234 in a column with two decimal places. Each group has its own summary row all the
same, so for such keys the files hold the values as the groups had them, beside those that the working dataset shows.
"""

from dataclasses import dataclass

from clew.lang.typed import ColumnValue, Convert, Expression
from clew.plan.steps import AggregateStep, AppendStep
from clew.trace.files import TraceFiles
from clew.trace.layout import Part, group_key_column
from clew.trace.run_parts import RunParts


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One key of the groups of a step."""

    name: str
    """The column of the working dataset that it went to."""
    column: str
    """The column in the files of the summary rows that has it as the groups had it."""
    value: Expression
    """Gives it for a row behind a summary."""


def group_keys(run: RunParts, files: TraceFiles, step: AggregateStep | AppendStep, part: Part) -> tuple[GroupKey, ...]:
    """The keys of a step that sums up, whose rows are in a part."""
    if isinstance(step, AggregateStep):
        table, types = run.plan.input.table, dict(run.columns(run.before(step.seq)))
        return tuple(GroupKey(name, name, ColumnValue(table, name, types[name])) for name in step.group_by)
    stored = files.columns(part.files[0]) if part.files else frozenset()
    values = {each.column: each.value.tree for each in step.columns}
    found = list[GroupKey]()
    for position, name in enumerate(step.group_by or ()):
        own, value = group_key_column(position), values[name]
        if own in stored and isinstance(value, Convert):
            found.append(GroupKey(name, own, value.operand))
        else:
            found.append(GroupKey(name, name, value))
    return tuple(found)
