"""Everything that touches Spark. The only package that imports pyspark; imported when a run starts.

PySpark is not installed with Clew, since reading does not need it. Whoever imports this package does, and hears here
what is missing, whichever command or program it was.
"""

from clew.engine.spark_versions import require_pyspark

require_pyspark()
