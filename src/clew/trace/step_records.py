"""What a step did: its records, page by page, and how many there are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.lang.types import Type
from clew.plan.operations import ChangingStep, OutputStep, Step
from clew.plan.steps import ChangingStepBase, CreatingStepBase
from clew.storage.parts import MASK_BITS, ORDINAL, Part, TracedStep, after_column, in_mask, mask_column, mask_columns
from clew.trace.json_values import values_of
from clew.trace.records import RowValues, StepRecord, StepSummary
from clew.trace.results import StepRecords
from clew.trace.row_sets import created_rows, working_rows
from clew.trace.run_parts import RunParts
from clew.trace.sql import Sql, is_set, is_touched, parquet, quoted, typed_column
from clew.trace.trace_database import Reading

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

_BATCH = 2_000
"""Records that a condition is tried on at once."""


@dataclass(frozen=True, slots=True)
class Page:
    """A number of rows after one that was seen."""

    limit: int
    after: int = -1


def read_records(reading: Reading, step: Step, page: Page) -> StepRecords:
    """The records of a step."""
    match step:
        case OutputStep():
            return StepRecords(step.seq, (), (), has_more=False, run_id=reading.row_ids.run_id)
        case CreatingStepBase():
            return _created(reading, step, page)
        case ChangingStepBase():
            return _changed(reading, step, page)


def count_records(reading: Reading, step: Step) -> int:
    """How many records a step has."""
    match step:
        case OutputStep():
            return 0
        case CreatingStepBase():
            return sum(file.rows for part in reading.run.created if part.seq == step.seq for file in part.files)
        case ChangingStepBase():
            part, traced = _traced(reading.run, step.seq)
            if part is None or traced is None or not part.files:
                return 0
            files = parquet([reading.files.source(file) for file in part.files])
            sql = "SELECT count(*) AS n FROM " + files + f" WHERE {is_touched(traced)}"
            return int(reading.database.query(sql, part.files)["n"][0].as_py())


def read_matching(reading: Reading, step: Step, page: Page, matching: Callable[[list[int]], set[int]]) -> StepRecords:
    """The records of a step for rows that match, looked for a batch at a time."""
    found, after = list[StepRecord](), page.after
    while True:
        batch = read_records(reading, step, Page(_BATCH, after))
        rows = [(reading.row_ids.ordinal(record.row_id), record) for record in batch.records]
        ordinals = [ordinal for ordinal, _ in rows if ordinal is not None]
        matches = matching(ordinals)
        found += [record for ordinal, record in rows if ordinal in matches]
        if len(found) > page.limit or not batch.has_more:
            has_more = len(found) > page.limit
            return StepRecords(
                step.seq, batch.columns, tuple(found[: page.limit]), has_more=has_more, run_id=reading.row_ids.run_id
            )
        after = ordinals[-1]


def _created(reading: Reading, step: Step, page: Page) -> StepRecords:
    run, row_ids = reading.run, reading.row_ids
    columns = run.columns(step.seq)
    names = [name for name, _ in columns]
    part = next((part for part in run.created if part.seq == step.seq), None)
    found = list[StepRecord]()
    if part is not None:
        rows = created_rows(reading, part)
        ordinals = rows.ordinals(page.after, page.limit + 1)
        for ordinal, cells in rows.values(ordinals, names):
            found.append(StepRecord(row_ids.row_id(ordinal), step.seq, "created", None, cells))
    return StepRecords(
        step.seq, columns, tuple(found[: page.limit]), has_more=len(found) > page.limit, run_id=reading.row_ids.run_id
    )


def _changed(reading: Reading, step: ChangingStep, page: Page) -> StepRecords:
    run = reading.run
    types = dict(run.columns(step.seq))
    part, traced = _traced(run, step.seq)
    changed = () if traced is None else traced.columns or ("_deleted",)
    columns = tuple((name, types[name]) for name in changed)
    if part is None or traced is None or not part.files:
        return StepRecords(step.seq, columns, (), has_more=False, run_id=reading.row_ids.run_id)
    after = _values_after(reading, part, traced, types, page)
    known = [name for name in changed if name in dict(run.columns(run.before(step.seq)))]
    old = dict(working_rows(reading, run.before(step.seq)).values(list(after), known))
    found = [
        _record(reading.row_ids.row_id(ordinal), traced, {name: old[ordinal].get(name) for name in new}, new)
        for ordinal, new in after.items()
    ]
    if step.keeps is not None:
        kept = kept_rows(reading, part, step.seq, page)
        found = [
            replace(record, kept=reading.row_ids.row_id(kept[ordinal]))
            for record, ordinal in zip(found, after, strict=True)
        ]
    return StepRecords(
        step.seq, columns, tuple(found[: page.limit]), has_more=len(found) > page.limit, run_id=reading.row_ids.run_id
    )


def kept_rows(reading: Reading, part: Part, seq: int, page: Page) -> dict[int, int]:
    """Of rows that a step deleted since another one stayed: the ordinal of that one, by theirs."""
    mask = quoted(mask_column(seq))
    sql = (
        f"SELECT {ORDINAL}, {mask} FROM "
        + parquet([reading.files.source(file) for file in part.files])
        + Sql(f" WHERE {mask} IS NOT NULL AND {ORDINAL} > ?", (page.after,))
        + Sql(f" ORDER BY {ORDINAL} LIMIT ?", (page.limit + 1,))
    )
    table = reading.database.query(sql, part.files)
    return dict(zip(table[ORDINAL].to_pylist(), table[mask_column(seq)].to_pylist(), strict=True))


def all_kept_rows(reading: Reading, seq: int) -> dict[int, int]:
    """The same for all rows of a step."""
    part, _ = _traced(reading.run, seq)
    return kept_rows(reading, part, seq, Page((1 << 62) - 1)) if part is not None and part.files else {}


def _record(row_id: str, step: TracedStep, old: RowValues, new: RowValues) -> StepRecord:
    if step.kind == "delete":
        return StepRecord(row_id, step.seq, "deleted", old, None)
    return StepRecord(row_id, step.seq, "updated", old, new)


def _traced(run: RunParts, seq: int) -> tuple[Part | None, TracedStep | None]:
    return next(((part, step) for part, step in run.traced(seq - 1, seq)), (None, None))


def _values_after(
    reading: Reading, part: Part, step: TracedStep, types: Mapping[str, Type], page: Page
) -> dict[int, RowValues]:
    """The changed columns of the rows on a page, and one more row where there is one, by ordinal."""
    masks = mask_columns(step)
    values = [
        f"{typed_column(after_column(step.seq, position), types[name])} AS {quoted(after_column(step.seq, position))}"
        for position, name in enumerate(step.columns)
    ]
    listed = ", ".join([ORDINAL, *map(quoted, masks), *values])
    sql = (
        f"SELECT {listed} FROM "
        + parquet([reading.files.source(file) for file in part.files])
        + Sql(f" WHERE {is_touched(step)} AND {ORDINAL} > ?", (page.after,))
        + Sql(f" ORDER BY {ORDINAL} LIMIT ?", (page.limit + 1,))
    )
    table = reading.database.query(sql, part.files)
    ordinals: list[int] = table[ORDINAL].to_pylist()
    if step.kind == "delete":
        return {ordinal: {"_deleted": True} for ordinal in ordinals}
    words = [table[mask].to_pylist() for mask in masks]
    cells = [
        values_of(table[after_column(step.seq, position)], types[name]) for position, name in enumerate(step.columns)
    ]
    return {
        ordinal: {
            name: cells[position][row]
            for position, name in enumerate(step.columns)
            if cells[position][row] is not None or in_mask(words[position // MASK_BITS][row], position)
        }
        for row, ordinal in enumerate(ordinals)
    }


def summaries(reading: Reading) -> tuple[StepSummary, ...]:
    """How many rows each step of the plan changed, and in how many of them which column."""
    run = reading.run
    changed = {seq: counts for part in run.changes for seq, counts in _counts(reading, part).items()}
    created = {part.seq: sum(file.rows for file in part.files) for part in run.created}
    return tuple(
        replace(
            _summary(step, changed.get(step.seq), created.get(step.seq, 0)),
            outcome=run.not_done.get(step.seq, "done"),
        )
        for step in run.plan.steps
    )


def _summary(step: Step, changed: tuple[int, Mapping[str, int]] | None, created: int) -> StepSummary:
    rows, columns = changed or (0, {})
    match step:
        case ChangingStepBase(traced_as="update"):
            return StepSummary(step.seq, step.name, step.type, updated=rows, columns=columns)
        case ChangingStepBase():
            return StepSummary(step.seq, step.name, step.type, deleted=rows, columns={"_deleted": rows})
        case CreatingStepBase():
            return StepSummary(step.seq, step.name, step.type, created=created)
        case OutputStep():
            return StepSummary(step.seq, step.name, step.type)


def _counts(reading: Reading, part: Part) -> dict[int, tuple[int, dict[str, int]]]:
    """For each step of a part how many rows it changed, and by column. One pass over its columns."""
    wanted = list[str]()
    for step in part.steps:
        wanted += [is_touched(step), *(is_set(step, position) for position in range(len(step.columns)))]
    if not part.files:
        numbers: Sequence[int] = [0] * len(wanted)
    else:
        sql = f"SELECT {', '.join(f'count(*) FILTER (WHERE {each})' for each in wanted)} FROM "
        source = parquet([reading.files.source(file) for file in part.files])
        table = reading.database.query(sql + source, part.files)
        numbers = [int(column[0].as_py()) for column in table.columns]
    remaining = iter(numbers)
    return {step.seq: (next(remaining), {name: next(remaining) for name in step.columns}) for step in part.steps}
