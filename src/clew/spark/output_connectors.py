"""Outputs in formats that Spark has a connector for, such as `delta`: the connector makes them visible, all at once."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from clew.diagnostics import TransientFailure, UserError, did_you_mean
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.plan.steps import OutputStep
from clew.spark.failures import SPARK_ERRORS, is_value_error, translated
from clew.spark.loading.files import reason_of

DELTA = "delta"
_KNOWN = ("csv", "jsonl", "json", "orc", "parquet")
_NEEDS_JARS = "formats of others need their jars under `spark.jars` in clew.yaml, and often settings in its config"
_BUILT_FOR_ANOTHER = (
    "AbstractMethodError",
    "IncompatibleClassChangeError",
    "NoClassDefFoundError",
    "NoSuchMethodError",
)
"""What Java says where a library does not fit the one it calls."""


def write_through(
    rows: DataFrame, step: OutputStep, format_: str, options: Mapping[str, str], *, path: str, shown: str, owner: str
) -> Callable[[], None]:
    """What writes the rows when it is called.

    Delta remembers who has written, so a retry adds nothing twice. Of other formats nobody knows that, so they are
    overwritten only, which a retry repeats from the start.
    """
    if step.mode == "append" and format_ != DELTA:
        problem = f"cannot add to {shown}: in the format {format_} a retry could double its rows"
        raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="use the mode overwrite"))
    once = {"txnAppId": owner, "txnVersion": "1"} if step.mode == "append" else {}

    def write() -> None:
        try:
            rows.write.format(format_).options(**options, **once).mode(step.mode).save(path)
        except SPARK_ERRORS as error:
            if is_value_error(error) or isinstance(translated(error, step), TransientFailure):
                raise
            is_foreign = any(name in str(error) for name in _BUILT_FOR_ANOTHER)
            reason = "its connector is built for another version of Spark" if is_foreign else reason_of(error)
            problem = f"cannot write {shown} as {format_}: {reason}"
            hint = did_you_mean(format_, _KNOWN) or _NEEDS_JARS
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint)) from error

    return write
