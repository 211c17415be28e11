"""Decimals of the trace that are whole numbers in a file, not bytes.

Products of decimals have types of more than thirty digits, while their values hardly ever need more than a dozen.
Values of long types are an array of bytes each, which takes Spark several times as long to write.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from clew.spark.sql import quoted
from clew.trace.layout import TracedStep, after_column

_LONGEST = 18
"""Digits of a decimal that Parquet keeps in 64 bits."""
_LEAST_BEFORE_POINT = 10
"""With fewer digits before the point too many values would not fit."""


def with_short_decimals(rows: DataFrame, steps: Sequence[TracedStep]) -> DataFrame | None:
    """Rows of changes with short types for the values after them; None where that changes no type.

    Writing them fails where a value does not fit. Readers take values as the types of the plan, whatever the file says.
    """
    values = {after_column(step.seq, position) for step in steps for position in range(len(step.columns))}
    short = {
        field.name: F.col(quoted(field.name)).cast(DecimalType(_LONGEST, field.dataType.scale))
        for field in rows.schema
        if field.name in values and isinstance(field.dataType, DecimalType) and _is_long(field.dataType)
    }
    return rows.withColumns(short) if short else None


def _is_long(type_: DecimalType) -> bool:
    return type_.precision > _LONGEST and type_.scale <= _LONGEST - _LEAST_BEFORE_POINT
