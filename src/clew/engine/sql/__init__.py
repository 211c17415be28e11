"""Expressions of the language as Spark SQL text, which can be read, and sent to Spark in one piece.

The value is that of the Python evaluator in `clew.lang`, to the last digit, and an error there is an error of the query
here, with these exceptions:

- Where an argument is NULL (or a divisor zero), Spark may give NULL without looking at the other arguments, and what
  cannot change a result may not be calculated at all. So an error in such a part can go unnoticed.
- SUM and AVG of doubles add in any order, so their last digits can differ. SUM and AVG of decimals with more than 28
  digits fail where a total on the way needs more than 38.
- Before Java 19, doubles from 2^53 on are written with more digits than needed, and a few others with another last one.
"""

from clew.engine.sql.expressions import ColumnName, sql_of
from clew.engine.sql.literals import quoted, spark_type, text_literal

__all__ = ["ColumnName", "quoted", "spark_type", "sql_of", "text_literal"]
