"""What an error of Spark means to the user: the operation, and the row, column and value to blame."""

from collections.abc import Iterator

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row as Record

from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.engine import (
    ENGINE_FAILURE,
    OUTPUT_CONFLICT,
    SOURCE_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    STORAGE_UNAVAILABLE,
    TRACE_WRITE_FAILURE,
)
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.diagnostics.foreign_words import without_quoted
from clew.engine.creating import aggregated, chosen_rows, sql_over_chosen
from clew.engine.expressing import Expressing
from clew.engine.names import joined_column
from clew.engine.operations import suspects
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect
from clew.engine.working import Storage, Working
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Value, columns_of
from clew.plan.datasets import DatasetUse
from clew.plan.operations import CreatingStep, Step
from clew.plan.plan import Plan
from clew.plan.privacy import privacy_by_column
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE
from clew.storage.row_identity import RowIds
from clew.storage.store_errors import store_problem

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
_NO_FILE_SYSTEM = ("No FileSystem for scheme", "S3AFileSystem not found", "UNSUPPORTED_FILE_SYSTEM")
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
_CALLING = "An error occurred while calling "
"""How errors of Java begin that Spark has no name for; the next line has the error."""
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


def translated(error: Exception, step: Step | None, plan: Plan | None) -> ClewError:
    """An error of Spark as one of ours, without looking at rows.

    Spark and the drivers of databases quote values in some messages. If the plan reads personal or secret columns, what
    they quote is left out; of an error in a value, only the kind is told. Without a plan, every column may be one.
    """
    place = step.place if step else None
    is_private = plan is None or reads_restricted(plan)
    text = _told(error, str(error)) if is_private else str(error)
    lines = (line.removeprefix(": ") for line in text.splitlines() if line.strip() and not line.startswith(_CALLING))
    summary = next(lines, type(error).__name__)[:500]
    if is_value_error(error):
        if is_private:
            kind = next((name for name in _VALUE_CONDITIONS if name in text), "")
            summary = f"{_HIDDEN} ({kind})" if kind else _HIDDEN
        return UserError(VALUE_OUT_OF_RANGE.at(place, problem=f"{_named(step)}: {summary}"))
    if any(word in text for word in _NO_FILE_SYSTEM):
        problem = f"Spark has no file system for it: {_line_with(text, _NO_FILE_SYSTEM) or summary}"
        hint = "list the jars of hadoop-aws and of the AWS SDK under `spark.jars`, or those of another store"
        return UserError(STORAGE_UNAVAILABLE.at(place, place="the object store", problem=problem, hint=hint))
    store = store_problem(str(error))  # its sentences quote nothing but the name of the store
    if store is not None:
        return store
    if any(word in text for word in _GONE):
        return UserError(SOURCE_UNAVAILABLE.at(place, problem=summary))
    if any(word in text for word in _FULL):
        code = OUTPUT_CONFLICT if step is not None and step.writes_output else TRACE_WRITE_FAILURE
        return UserError(code.at(place, problem=_line_with(text, _FULL) or summary))
    if any(word in text for word in _UNKNOWN_FORMAT):
        return UserError(OUTPUT_CONFLICT.at(place, problem=summary))
    if any(word in text for word in _LOST):
        return TransientFailure(SPARK_UNAVAILABLE.at(place, problem=summary))
    return EngineBug(ENGINE_FAILURE.at(place, problem=summary))


def reads_restricted(plan: Plan) -> bool:
    """Whether a plan reads personal or secret columns."""
    return any(_marked(use) for use in plan.datasets_read)


def of_unknown_cause(error: Exception) -> EngineBug:
    """Any other error, where the plan reads personal or secret columns: libraries quote values too."""
    problem = f"{type(error).__name__}: {without_quoted(str(error))}"[:500]
    return EngineBug(ENGINE_FAILURE.anywhere(problem=problem))


def _told(error: Exception, text: str) -> str:
    """The lines of a text without what they quote. What Spark says before it reads rows quotes none."""
    if isinstance(error, AnalysisException):
        return text
    return "\n".join(map(without_quoted, text.splitlines()))


def _line_with(text: str, words: tuple[str, ...]) -> str | None:
    """The line that tells the cause, without the name of the Java class in front of it."""
    line = next((line for line in text.splitlines() if any(word in line for word in words)), None)
    return line.strip().removeprefix("Caused by: ").removeprefix("java.io.IOException: ")[:500] if line else None


def _named(step: Step | None) -> str:
    return f'step {step.seq} "{step.name}"' if step else "loading"


_HIDDEN = "a value does not fit, which is not shown because it comes from a personal column"


def culprit(working: Working, step: Step, plan: Plan, storage: Storage, expressing: Expressing) -> UserError | None:
    """The first row whose values a step cannot handle, as an error; None where Python finds none."""
    for suspect in suspects(working.rows, step, storage.pinned, expressing):
        for record in _records(suspect, plan, expressing):
            row = _row(record, suspect, expressing)
            try:
                evaluator(suspect.tree)(row)
            except ClewError as error:
                shown = _HIDDEN if _is_private(suspect, step, plan, expressing) else error.diagnostic.message
                problem = f"{suspect.what}: {shown}, in {_which(record, suspect, plan, expressing)}"
                return _found(problem, step, error.diagnostic.hint)
    return _too_large(working, step, storage, expressing)


def _records(suspect: Suspect, plan: Plan, expressing: Expressing) -> Iterator[Record]:
    """The rows with the columns that the expression reads, and those that tell people which row it is."""
    needed = dict.fromkeys(
        _physical(table, name, suspect, expressing) for table, name in sorted(columns_of(suspect.tree))
    )
    needed |= dict.fromkeys(name for name in _telling(suspect, plan) if name in suspect.rows.columns)
    yield from suspect.rows.select(*(quoted(name) for name in needed)).toLocalIterator()


def _telling(suspect: Suspect, plan: Plan) -> tuple[str, ...]:
    if suspect.source is not None:
        return SOURCE_FILE, SOURCE_LINE
    return ORDINAL, *(name for name in _name_columns(plan) if name != "_row_id")


def _name_columns(plan: Plan) -> tuple[str, ...]:
    """What rows are called by."""
    return next(iter(plan.input.names), ())


def _physical(table: str, name: str, suspect: Suspect, expressing: Expressing) -> str:
    """The name that a column of a table has in the rows."""
    if suspect.source is not None:
        return joined_column(suspect.alias, name) if suspect.alias else name
    if table != expressing.table:
        return joined_column(table, name)
    return ORDINAL if name == "_row_id" else name


def _row(record: Record, suspect: Suspect, expressing: Expressing) -> Row:
    tables = dict[str, dict[str, Value]]()
    for table, name in columns_of(suspect.tree):
        value = record[_physical(table, name, suspect, expressing)]
        if suspect.source is None and table == expressing.table and name == "_row_id":
            value = RowIds(expressing.run_id).row_id(value)
        tables.setdefault(table, {})[name] = value
    return Row(tables, expressing.today)


def _which(record: Record, suspect: Suspect, plan: Plan, expressing: Expressing) -> str:
    if suspect.source is not None:
        values = record.asDict()
        file, line = values.get(SOURCE_FILE), values.get(SOURCE_LINE)
        place = f" ({file}, row {line})" if file is not None and line is not None else ""
        return f"a row of {suspect.source.name}{place}"
    private = privacy_by_column(plan)
    key = ", ".join(
        f"{name} {'…' if name in private else record[name]}" for name in _name_columns(plan) if name in record
    )
    row_id = RowIds(expressing.run_id).row_id(record[ORDINAL])
    return f"row {key} ({row_id})" if key else f"row {row_id}"


def _is_private(suspect: Suspect, step: Step, plan: Plan, expressing: Expressing) -> bool:
    """Whether an expression reads private columns: errors become events, which many people may read."""
    private = {join.alias: _marked(join.dataset) for join in step.lookups}
    private[expressing.table] = {*privacy_by_column(plan)}
    everywhere = _marked(suspect.source) if suspect.source is not None else set[str]()
    return any(name in everywhere | private.get(table, set()) for table, name in columns_of(suspect.tree))


def _marked(dataset: DatasetUse) -> set[str]:
    return {column.name for column in dataset.columns if column.privacy}


def _found(problem: str, step: Step, hint: str | None) -> UserError:
    return UserError(VALUE_OUT_OF_RANGE.at(step.place, problem=f'step {step.seq} "{step.name}", {problem}', hint=hint))


def _too_large(working: Working, step: Step, storage: Storage, expressing: Expressing) -> UserError | None:
    """The aggregation whose result does not fit, where no single row is to blame."""
    if not isinstance(step, CreatingStep) or step.keys is None:
        return None
    rows = working.rows if step.made_from is None else storage.pinned(step.made_from)
    chosen, sql = chosen_rows(step, rows, expressing), sql_over_chosen(step, expressing)
    sums = [(each, aggregated(chosen, step.keys, (each,), sql)) for each in step.filled]
    for each, groups in sums:
        try:
            groups.write.format("noop").mode("overwrite").save()
        except PySparkException:
            problem = (
                f'step {step.seq} "{step.name}", column {each.column}: {each.value.text} is too large for its type'
            )
            return UserError(VALUE_OUT_OF_RANGE.at(step.place, problem=f"{problem} {each.value.tree.type}"))
    return None
