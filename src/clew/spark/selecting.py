"""Columns as SQL text. A column object takes half a dozen calls to the JVM to make, a text one for all of them."""

from collections.abc import Container, Mapping

from pyspark.sql import DataFrame

from clew.spark.sql import quoted


def with_sql(rows: DataFrame, columns: Mapping[str, str], without: Container[str] = ()) -> DataFrame:
    """Rows with columns given as SQL, each in the place of one of the same name if there is one, and without others."""
    kept = [name for name in rows.columns if name not in without]
    texts = [named(columns[name], name) if name in columns else quoted(name) for name in kept]
    return rows.selectExpr(*texts, *(named(sql, name) for name, sql in columns.items() if name not in kept))


def named(sql: str, name: str) -> str:
    """The SQL of a column with a name."""
    return f"{sql} AS {quoted(name)}"
