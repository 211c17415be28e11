"""What Spark's errors mean for the user: the operation, the column, the value, the row.

Spark says that something overflowed, not where. So the step is evaluated once more, row by row, by the evaluator in
Python, up to the row that fails; this costs time only when a run has failed anyway.
"""

from collections.abc import Iterator, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.diagnostics import ClewError, Diagnostic, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.engine import (
    ENGINE_FAILURE,
    SOURCE_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    TRACE_WRITE_FAILURE,
)
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.lang.evaluation import Row, evaluator
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.typed import Apply, Convert, Expression, Value, columns_of
from clew.plan.plan import Plan
from clew.plan.steps import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep
from clew.spark.names import joined_column
from clew.spark.narrow import Expressing
from clew.spark.sql import quoted
from clew.spark.working import Storage, Working, joined_for
from clew.trace.identity import RowIds
from clew.trace.layout import ORDINAL

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
_FULL = ("No space left on device", "Disk quota exceeded", "Permission denied", "Read-only file system", "not writable")
_LOST = (
    "Connection refused",
    "connection was closed",
    "SparkContext was shut down",
    "UNAVAILABLE",
    "Job aborted because SparkContext",
)


def is_value_error(error: PySparkException) -> bool:
    """Whether a value of the data is to blame, not the surroundings."""
    condition = error.getCondition() or ""
    text = str(error)
    return condition.startswith(_VALUE_CONDITIONS) or any(f"[{name}" in text for name in _VALUE_CONDITIONS)


def translated(error: PySparkException, step: Step | None) -> ClewError:
    """An error of Spark as one of ours, without looking at rows."""
    place = step.place if step else None
    text = str(error)
    summary = next((line for line in text.splitlines() if line.strip()), type(error).__name__)[:500]
    if is_value_error(error):
        return UserError(VALUE_OUT_OF_RANGE.at(place, problem=f"{_named(step)}: {summary}"))
    if any(word in text for word in _GONE):
        return UserError(SOURCE_UNAVAILABLE.at(place, problem=summary))
    if any(word in text for word in _FULL):
        code = SOURCE_UNAVAILABLE if isinstance(step, OutputStep) else TRACE_WRITE_FAILURE
        return UserError(code.at(place, problem=summary))
    if any(word in text for word in _LOST):
        return TransientFailure(SPARK_UNAVAILABLE.at(place, problem=summary))
    return EngineBug(ENGINE_FAILURE.at(place, problem=summary))


def _named(step: Step | None) -> str:
    return f'step {step.seq} "{step.name}"' if step else "loading"


def culprit(working: Working, step: Step, plan: Plan, storage: Storage, expressing: Expressing) -> UserError | None:
    """The first row whose values a step cannot handle, as an error; None where Python finds none."""
    joined = joined_for(step, storage) if isinstance(step, UpdateStep) else {}
    rows = working.rows
    if isinstance(step, UpdateStep):
        for join in step.joins:
            rows = rows.join(joined[join.alias], F.expr(expressing.sql(join.on.tree)), "left")
    for what, tree in _expressions(step):
        for row, ordinal in _rows(rows, tree, plan, expressing):
            try:
                evaluator(tree)(row)
            except ClewError as error:
                return _found(error.diagnostic, step, what, plan, row, RowIds(expressing.run_id).row_id(ordinal))
    return None


def _expressions(step: Step) -> Iterator[tuple[str, Expression]]:
    if step.selector is not None:
        yield "the selector", step.selector.tree
    match step:
        case UpdateStep():
            yield from ((f"column {each.column}", each.value.tree) for each in step.assignments)
        case AggregateStep():
            for each in step.aggregations:
                yield from ((f"column {each.column}", tree) for tree in _arguments(each.value.tree))
        case AppendStep() | DeleteStep() | OutputStep():
            return


def _arguments(tree: Expression) -> Iterator[Expression]:
    """The parts of an aggregation that are evaluated row by row."""
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


def _rows(rows: DataFrame, tree: Expression, plan: Plan, expressing: Expressing) -> Iterator[tuple[Row, int]]:
    """The rows as the Python evaluator sees them, with the natural key for the message."""
    table = expressing.table
    known = {column.name for column in plan.input.columns}
    needed = sorted({*columns_of(tree), *((table, name) for name in plan.input.natural_key if name in known)})
    physical = [name if of == table else joined_column(of, name) for of, name in needed if name != "_row_id"]
    for record in rows.where("NOT `_deleted`").select(ORDINAL, *map(quoted, dict.fromkeys(physical))).toLocalIterator():
        values = record.asDict()
        tables = dict[str, dict[str, Value]]()
        for of, name in needed:
            key = name if of == table else joined_column(of, name)
            value = RowIds(expressing.run_id).row_id(values[ORDINAL]) if name == "_row_id" else values[key]
            tables.setdefault(of, {})[name] = value
        yield Row(tables, expressing.today), int(values[ORDINAL])


def _found(diagnostic: Diagnostic, step: Step, what: str, plan: Plan, row: Row, row_id: str) -> UserError:
    own: Mapping[str, Value] = row.tables.get(plan.input.table, {})
    key = ", ".join(f"{name} {own[name]}" for name in plan.input.natural_key if name in own)
    which = f"row {key} ({row_id})" if key else f"row {row_id}"
    problem = f'step {step.seq} "{step.name}", {what}: {diagnostic.message}, in {which}'
    return UserError(VALUE_OUT_OF_RANGE.at(step.place, problem=problem, hint=diagnostic.hint))
