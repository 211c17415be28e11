"""Texts that a spreadsheet would run as formulas when it opens a csv file."""

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from clew.engine.sql import quoted

_STARTS = "^[=+\\-@\\t\\r\\n＝＋－＠]"
"""What formulas start with, in the form of Java and of Python: also after a tab or a line break, and in full width."""
_MARK = "'"
"""A spreadsheet shows what follows as text."""


def without_formulas(rows: DataFrame) -> DataFrame:
    """The rows with a mark in front of texts that look like formulas. Numbers and dates are none, signs or not."""
    columns = list[Column]()
    for field in rows.schema.fields:
        column = F.col(quoted(field.name))
        if isinstance(field.dataType, StringType):
            column = F.when(column.rlike(_STARTS), F.concat(F.lit(_MARK), column)).otherwise(column)
        columns.append(column.alias(f"{_MARK}{field.name}" if re.match(_STARTS, field.name) else field.name))
    return rows.select(*columns)
