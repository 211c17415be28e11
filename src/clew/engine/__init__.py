"""Everything that touches Spark. The only package that imports pyspark; imported when a run starts."""
