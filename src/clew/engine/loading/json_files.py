"""JSON lines: each line an object, each key a column."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from clew.engine.loading.csv_files import FIELDS
from clew.engine.loading.lines import LINE
from clew.engine.loading.sources import NO_JSON_OBJECT, NOT_UTF8
from clew.engine.sql import quoted
from clew.engine.sql.literals import text_literal

_NUMBER = r'\G((?:[^"0-9-]|"(?:[^"\\]|\\.)*+")*+)(-?[0-9][0-9.eE+-]*+)'
"""Anything up to a number, strings taken as a whole, and the number."""
_IN_QUOTES = '$1"$2"'


def parsed(columns: Sequence[str]) -> Column:
    """The values of a line as texts, in an array with one element for a good line.

    Numbers are put between quotes first: Spark reads them as doubles otherwise, and 1.10 would become 1.1. As the
    element of an array a line cannot be followed by anything else.
    """
    exact = f"regexp_replace({LINE}, {text_literal(_NUMBER)}, {text_literal(_IN_QUOTES)})"
    schema = ", ".join(f"{quoted(name)}: STRING" for name in columns)
    return F.from_json(F.expr(f"concat('[', {exact}, ']')"), f"array<struct<{schema}>>")


def broken() -> str:
    """SQL for why a line is broken."""
    return (
        f"CASE WHEN NOT is_valid_utf8({LINE}) THEN '{NOT_UTF8}' "
        f"WHEN coalesce(size({FIELDS}), 0) <> 1 OR {FIELDS}[0] IS NULL THEN '{NO_JSON_OBJECT}' END"
    )
