"""The row that stayed when a step deleted others with the same keys, found again in the trace."""

from clew.explain.row_conditions import all_of, compared, equals, is_not_deleted
from clew.explain.tree import KeptRow
from clew.lang.typed import ColumnValue
from clew.plan.keeping import Keeping, staying
from clew.plan.operations import ChangingStep
from clew.trace.reader import RunTrace
from clew.trace.records import RowValues, TraceEntry


def kept_row(trace: RunTrace, step: ChangingStep, before: RowValues, entry: TraceEntry) -> KeptRow | None:
    """The row that stayed in place of one that a step deleted; None where the step lets no row stay.

    `before` is the deleted row as the step found it. Which row stays is decided again, from all rows with these keys.
    """
    keeping = step.keeps
    if keeping is None or entry.kept is None:
        return None
    at = trace.run.before(step.seq)
    ordinal = trace.row_ids.ordinal(entry.kept)
    names = [name for name, _ in trace.run.columns(at)]
    state = dict(trace.working(at).values([] if ordinal is None else [ordinal], names)).get(ordinal or 0, {})
    return KeptRow(
        row_id=entry.kept,
        label=trace.name(entry.kept, state),
        rule=keeping.text,
        values={name: state.get(name) for name in keeping.columns},
        own={name: before[name] for name in keeping.columns},
        recomputed=compared(entry.kept, lambda: trace.row_ids.row_id(_again(trace, step, keeping, before))),
    )


def _again(trace: RunTrace, step: ChangingStep, keeping: Keeping, before: RowValues) -> int:
    table, at = trace.plan.input.table, trace.run.before(step.seq)
    types = dict(trace.run.columns(at))
    same = [
        equals(ColumnValue(table, name, types[name]), before[name])
        for name in keeping.keys
        if not isinstance(before[name], float)  # groups compare doubles in a way of their own
    ]
    condition = all_of([*same, is_not_deleted(table), step.selector.tree if step.selector else None])
    rows = trace.working(at).matching(condition, list(keeping.columns), trace.see)
    return staying(keeping, rows)(before)
