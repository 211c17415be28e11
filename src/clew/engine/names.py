"""Names of columns inside Spark: user columns keep theirs, internal ones start with two underscores.

Columns are passed to Spark as SQL text: making a column object takes half a dozen calls to the JVM, texts of all
columns go there in one.
"""

from collections.abc import Callable, Container, Iterable, Mapping

from pyspark.sql import DataFrame

from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted
from clew.plan.sort_keys import SortKey
from clew.storage.parts import ORDINAL
from clew.storage.row_identity import RowIds

SYSTEM_TYPES = {"_period": "STRING", "_labels": "STRING", "_deleted": "BOOLEAN"}
"""System columns that the working dataset carries. `_row_id` is computed from the ordinal where it is needed."""


def joined_column(alias: str, column: str) -> str:
    """A column of a joined dataset while an update sees it.

    The length of the alias keeps column `b__c` of alias `a` and column `c` of alias `a__b` apart.
    """
    return f"__j{len(alias)}_{alias}__{column}"


def selected_column(seq: int) -> str:
    """Whether a step applies to the row."""
    return f"__s{seq}_sel"


def kept_column(seq: int) -> str:
    """The ordinal of the row that stays of those which are the same as this one."""
    return f"__s{seq}_kept"


def window_argument(seq: int, position: int, number: int) -> str:
    """An argument of a call with a window."""
    return f"__s{seq}_w{position}_a{number}"


def ordered_by(keys: Iterable[SortKey], *, reverse: bool = False) -> str:
    """The SQL of an order, in which no two rows are equal: row ids decide at last."""
    listed = [(quoted(key.column), key.descending) for key in keys]
    return directed([*listed, (ORDINAL, False)], reverse=reverse)


def directed(columns: Iterable[tuple[str, bool]], *, reverse: bool = False) -> str:
    """The SQL of an order by columns, each with whether it runs down."""
    return ", ".join(
        f"{column} DESC NULLS LAST" if descending is not reverse else f"{column} ASC NULLS FIRST"
        for column, descending in columns
    )


def new_column(seq: int, position: int) -> str:
    """The value of an assigned column after a step, before it replaces the column."""
    return f"__s{seq}_n{position}"


def row_id_sql(run_id: str) -> str:
    """SQL for the row id of a row, as `RowIds` defines it."""
    low = f"lower(hex(-9223372036854775807 - 1 + {ORDINAL}))"
    return f"concat('{RowIds(run_id).prefix}-', substr({low}, 1, 4), '-', substr({low}, 5, 12))"


def working_columns(run_id: str, table: str) -> Callable[[str, str], str]:
    """The SQL of (table, column) pairs of expressions over the working dataset and its joins."""

    def column(of: str, name: str) -> str:
        if of != table:
            return quoted(joined_column(of, name))
        return row_id_sql(run_id) if name == "_row_id" else quoted(name)

    return column


def own_columns(_table: str, name: str) -> str:
    """The SQL of columns of a dataset read by itself."""
    return quoted(name)


def with_sql(rows: DataFrame, columns: Mapping[str, str], without: Container[str] = ()) -> DataFrame:
    """Rows with columns given as SQL, each in the place of one of the same name if there is one, and without others."""
    kept = [name for name in rows.columns if name not in without]
    texts = [named(columns[name], name) if name in columns else quoted(name) for name in kept]
    return select_sql(rows, [*texts, *(named(sql, name) for name, sql in columns.items() if name not in kept)])


def named(sql: str, name: str) -> str:
    """The SQL of a column with a name."""
    return f"{sql} AS {quoted(name)}"
