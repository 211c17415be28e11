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
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
"""Around numbers that may be inside of another value. No text has these characters: they are none."""
_MARKED = f'$1"{_OPEN}$2{_CLOSE}"'


def parsed(columns: Sequence[str]) -> Column:
    """The values of a line as texts, in an array with one element for a good line.

    Numbers are put between quotes first: Spark reads them as doubles otherwise, and 1.10 would become 1.1. In lines
    with objects or lists inside they are marked too, so that `as_written` can take the quotes away again. As the
    element of an array a line cannot be followed by anything else.
    """
    is_nested = f"(contains({LINE}, '[') OR locate('{{', {LINE}, locate('{{', {LINE}) + 1) > 0)"
    plain, marked = (
        f"regexp_replace({LINE}, {text_literal(_NUMBER)}, {text_literal(to)})" for to in (_IN_QUOTES, _MARKED)
    )
    schema = ", ".join(f"{quoted(name)}: STRING" for name in columns)
    return F.from_json(F.expr(f"concat('[', IF({is_nested}, {marked}, {plain}), ']')"), f"array<struct<{schema}>>")


def as_written(value: str) -> str:
    """SQL for a value whose numbers are as they are in the file: those of objects and lists without quotes."""
    marks = text_literal(f'"?{_OPEN}([^{_CLOSE}]*+){_CLOSE}"?')
    return f"IF(contains({value}, {text_literal(_OPEN)}), regexp_replace({value}, {marks}, '\\u00241'), {value})"


def broken() -> str:
    """SQL for why a line is broken."""
    return (
        f"CASE WHEN NOT is_valid_utf8({LINE}) THEN '{NOT_UTF8}' "
        f"WHEN coalesce(size({FIELDS}), 0) <> 1 OR {FIELDS}[0] IS NULL THEN '{NO_JSON_OBJECT}' END"
    )
