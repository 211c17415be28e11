"""What Spark's errors mean for the user, as far as their text tells.

The row to blame where a step fails because of a value: the operation, the column, the value, the row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import Row as Record

from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.engine import (
    ENGINE_FAILURE,
    OUTPUT_CONFLICT,
    SOURCE_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    TRACE_WRITE_FAILURE,
)
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.engine.creating import aggregated, source_sql
from clew.engine.names import joined_column, selected_column
from clew.engine.narrow import Expressing, guarded_rows, rows_with_joins
from clew.engine.sql import quoted
from clew.engine.working import Storage, Working, joined_for
from clew.lang.evaluation import Row, evaluator
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Convert, Expression, Value, columns_of
from clew.plan.datasets import DatasetUse
from clew.plan.operations import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep
from clew.plan.plan import Plan
from clew.plan.privacy import privacy_by_column
from clew.plan.steps import Assignment
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE
from clew.storage.row_identity import RowIds

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
"""What Spark raises. Where it has no name for an error of Java's, the error comes as it is."""

_VALUE_CONDITIONS = (
    "ARITHMETIC_OVERFLOW",
    "BINARY_ARITHMETIC_OVERFLOW",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DATETIME_FIELD_OUT_OF_BOUNDS",
    "DATETIME_OVERFLOW",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
    "INVALID_FRACTION_OF_SECOND",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE",
    "USER_RAISED_EXCEPTION",
)
_GONE = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "CANNOT_READ_FILE", "FILE_NOT_EXIST")
_FULL = (
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Permission denied",
    "Read-only file system",
    "Mkdirs failed",
    "not writable",
)
_UNKNOWN_FORMAT = ("DATA_SOURCE_NOT_FOUND", "UNSUPPORTED_DATA_SOURCE", "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE")
_LOST = (
    "Connection refused",
    "connection was closed",
    "SparkContext was shut down",
    "UNAVAILABLE",
    "Job aborted because SparkContext",
)


def is_value_error(error: Exception) -> bool:
    """Whether a value of the data is to blame, not the surroundings."""
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    text = str(error)
    return condition.startswith(_VALUE_CONDITIONS) or any(f"[{name}" in text for name in _VALUE_CONDITIONS)


def translated(error: Exception, step: Step | None) -> ClewError:
    """An error of Spark as one of ours, without looking at rows."""
    place = step.place if step else None
    text = str(error)
    summary = next((line for line in text.splitlines() if line.strip()), type(error).__name__)[:500]
    if is_value_error(error):
        return UserError(VALUE_OUT_OF_RANGE.at(place, problem=f"{_named(step)}: {summary}"))
    if any(word in text for word in _GONE):
        return UserError(SOURCE_UNAVAILABLE.at(place, problem=summary))
    if any(word in text for word in _FULL):
        code = OUTPUT_CONFLICT if isinstance(step, OutputStep) else TRACE_WRITE_FAILURE
        return UserError(code.at(place, problem=_line_with(text, _FULL) or summary))
    if any(word in text for word in _UNKNOWN_FORMAT):
        return UserError(OUTPUT_CONFLICT.at(place, problem=summary))
    if any(word in text for word in _LOST):
        return TransientFailure(SPARK_UNAVAILABLE.at(place, problem=summary))
    return EngineBug(ENGINE_FAILURE.at(place, problem=summary))


def _line_with(text: str, words: tuple[str, ...]) -> str | None:
    """The line that tells the cause, without the name of the Java class in front of it."""
    line = next((line for line in text.splitlines() if any(word in line for word in words)), None)
    return line.strip().removeprefix("Caused by: ").removeprefix("java.io.IOException: ")[:500] if line else None


def _named(step: Step | None) -> str:
    return f'step {step.seq} "{step.name}"' if step else "loading"


_HIDDEN = "a value does not fit, which is not shown since it comes of a personal column"


@dataclass(frozen=True, slots=True)
class _Suspect:
    """An expression, and the rows for which a step evaluates it."""

    what: str
    tree: Expression
    rows: DataFrame
    source: DatasetUse | None = None
    """The dataset that the rows are of, where they are not those of the working dataset."""
    alias: str | None = None


def culprit(working: Working, step: Step, plan: Plan, storage: Storage, expressing: Expressing) -> UserError | None:
    """The first row whose values a step cannot handle, as an error; None where Python finds none."""
    for suspect in _suspects(working, step, storage, expressing):
        for record in _records(suspect, plan, expressing):
            row = _row(record, suspect, expressing)
            try:
                evaluator(suspect.tree)(row)
            except ClewError as error:
                shown = _HIDDEN if _is_private(suspect, step, plan, expressing) else error.diagnostic.message
                problem = f"{suspect.what}: {shown}, in {_which(record, suspect, plan, expressing)}"
                return _found(problem, step, error.diagnostic.hint)
    return _too_large(working, step, storage, expressing)


def _suspects(working: Working, step: Step, storage: Storage, expressing: Expressing) -> Iterator[_Suspect]:
    rows = working.rows.where("NOT `_deleted`")
    match step:
        case UpdateStep():
            yield from _of_update(working, step, storage, expressing)
        case AggregateStep():
            if step.selector is not None:
                yield _Suspect("the selector", step.selector.tree, rows)
            chosen = working.rows.where(expressing.filter(step.selector))
            yield from (_Suspect(what, tree, chosen) for what, tree in _arguments_of(step.aggregations))
        case AppendStep():
            yield from _of_append(step, storage, expressing)
        case OutputStep() if step.selector is not None:
            yield _Suspect("the selector", step.selector.tree, working.rows if step.include_deleted else rows)
        case DeleteStep() if step.selector is not None:
            yield _Suspect("the selector", step.selector.tree, rows)
        case DeleteStep() | OutputStep():
            return


def _of_update(working: Working, step: UpdateStep, storage: Storage, expressing: Expressing) -> Iterator[_Suspect]:
    joined = joined_for(step, storage)
    own = {expressing.table}
    if step.selector is not None and _tables(step.selector.tree) <= own:
        yield _Suspect("the selector", step.selector.tree, working.rows.where("NOT `_deleted`"))
    selected = quoted(selected_column(step.seq))
    guarded = guarded_rows(working.rows, step, expressing).where(selected)
    for join in step.joins:
        for part in _parts(join.on.tree):
            if _tables(part) <= own:
                yield _Suspect(f"the condition of join {join.alias}", part, guarded)
            elif _tables(part) == {join.alias}:
                rows = joined[join.alias]
                yield _Suspect(f"the condition of join {join.alias}", part, rows, join.dataset, join.alias)
    complete = rows_with_joins(working.rows, step, expressing, joined).where(selected)
    yield from (_Suspect(f"column {each.column}", each.value.tree, complete) for each in step.assignments)


def _of_append(step: AppendStep, storage: Storage, expressing: Expressing) -> Iterator[_Suspect]:
    rows = storage.pinned(step.source)
    if step.source_selector is not None:
        yield _Suspect("the source_selector", step.source_selector.tree, rows, step.source)
        rows = rows.where(source_sql(step.source_selector.tree, expressing))
    trees = ((f"column {each.column}", each.value.tree) for each in step.columns)
    for what, tree in trees if step.group_by is None else _arguments_of(step.columns):
        yield _Suspect(what, tree, rows, step.source)


def _tables(tree: Expression) -> set[str]:
    return {table for table, _ in columns_of(tree)}


def _parts(tree: Expression) -> Iterator[Expression]:
    """The largest parts of a condition that look at one table only."""
    if len(_tables(tree)) == 1:
        yield tree
    elif isinstance(tree, Apply):
        for argument in tree.arguments:
            yield from _parts(argument)
    elif isinstance(tree, Convert):
        yield from _parts(tree.operand)


def _arguments_of(aggregations: tuple[Assignment, ...]) -> Iterator[tuple[str, Expression]]:
    """The parts of aggregations that are evaluated row by row."""
    for each in aggregations:
        yield from ((f"column {each.column}", tree) for tree in _arguments(each.value.tree))


def _arguments(tree: Expression) -> Iterator[Expression]:
    match tree:
        case Apply(function, arguments) if isinstance(FUNCTIONS[function], AggregateFunction):
            yield from arguments
        case Apply(_, arguments):
            for argument in arguments:
                yield from _arguments(argument)
        case Convert(operand):
            yield from _arguments(operand)
        case _:
            return


def _records(suspect: _Suspect, plan: Plan, expressing: Expressing) -> Iterator[Record]:
    """The rows with the columns that the expression reads, and those that tell people which row it is."""
    needed = dict.fromkeys(
        _physical(table, name, suspect, expressing) for table, name in sorted(columns_of(suspect.tree))
    )
    needed |= dict.fromkeys(name for name in _telling(suspect, plan) if name in suspect.rows.columns)
    yield from suspect.rows.select(*(quoted(name) for name in needed)).toLocalIterator()


def _telling(suspect: _Suspect, plan: Plan) -> tuple[str, ...]:
    if suspect.source is not None:
        return SOURCE_FILE, SOURCE_LINE
    return ORDINAL, *(name for name in _name_columns(plan) if name != "_row_id")


def _name_columns(plan: Plan) -> tuple[str, ...]:
    """What rows are called by."""
    return next(iter(plan.input.names), ())


def _physical(table: str, name: str, suspect: _Suspect, expressing: Expressing) -> str:
    """The name under which a column of a table stands in the rows."""
    if suspect.source is not None:
        return joined_column(suspect.alias, name) if suspect.alias else name
    if table != expressing.table:
        return joined_column(table, name)
    return ORDINAL if name == "_row_id" else name


def _row(record: Record, suspect: _Suspect, expressing: Expressing) -> Row:
    tables = dict[str, dict[str, Value]]()
    for table, name in columns_of(suspect.tree):
        value = record[_physical(table, name, suspect, expressing)]
        if suspect.source is None and table == expressing.table and name == "_row_id":
            value = RowIds(expressing.run_id).row_id(value)
        tables.setdefault(table, {})[name] = value
    return Row(tables, expressing.today)


def _which(record: Record, suspect: _Suspect, plan: Plan, expressing: Expressing) -> str:
    if suspect.source is not None:
        values = record.asDict()
        file, line = values.get(SOURCE_FILE), values.get(SOURCE_LINE)
        place = f" ({file}, row {line})" if file is not None and line is not None else ""
        return f"a row of {suspect.source.name}{place}"
    private = _marked(plan.input)
    key = ", ".join(
        f"{name} {'…' if name in private else record[name]}" for name in _name_columns(plan) if name in record
    )
    row_id = RowIds(expressing.run_id).row_id(record[ORDINAL])
    return f"row {key} ({row_id})" if key else f"row {row_id}"


def _is_private(suspect: _Suspect, step: Step, plan: Plan, expressing: Expressing) -> bool:
    """Whether an expression reads what is not for everybody: errors become events, which many may read."""
    joins = step.joins if isinstance(step, UpdateStep) else ()
    private = {join.alias: _marked(join.dataset) for join in joins}
    private[expressing.table] = {*privacy_by_column(plan)}
    everywhere = _marked(suspect.source) if suspect.source is not None else set[str]()
    return any(name in everywhere | private.get(table, set()) for table, name in columns_of(suspect.tree))


def _marked(dataset: DatasetUse) -> set[str]:
    return {column.name for column in dataset.columns if column.privacy}


def _found(problem: str, step: Step, hint: str | None) -> UserError:
    return UserError(VALUE_OUT_OF_RANGE.at(step.place, problem=f'step {step.seq} "{step.name}", {problem}', hint=hint))


def _too_large(working: Working, step: Step, storage: Storage, expressing: Expressing) -> UserError | None:
    """The aggregation whose result does not fit, where no single row is to blame."""
    match step:
        case AggregateStep():
            rows = working.rows.where(expressing.filter(step.selector))
            sums = [(each, aggregated(rows, step.group_by, (each,), expressing.sql)) for each in step.aggregations]
        case AppendStep(group_by=group_by) if group_by is not None:
            rows = storage.pinned(step.source)
            if step.source_selector is not None:
                rows = rows.where(source_sql(step.source_selector.tree, expressing))
            sums = [
                (each, aggregated(rows, group_by, (each,), partial(source_sql, expressing=expressing)))
                for each in step.columns
            ]
        case _:
            return None
    for each, groups in sums:
        try:
            groups.write.format("noop").mode("overwrite").save()
        except PySparkException:
            problem = (
                f'step {step.seq} "{step.name}", column {each.column}: {each.value.text} is too large for its type'
            )
            return UserError(VALUE_OUT_OF_RANGE.at(step.place, problem=f"{problem} {each.value.tree.type}"))
    return None
