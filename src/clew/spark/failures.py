"""What Spark's errors mean for the user, as far as their text tells."""

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.codes.engine import (
    ENGINE_FAILURE,
    OUTPUT_CONFLICT,
    SOURCE_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    TRACE_WRITE_FAILURE,
)
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.plan.steps import OutputStep, Step

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
