"""Delta and Iceberg tables as their own files describe them: which data files a version has, and which rows count.

Plain Python over the metadata that the formats specify: no JVM, and no library of either format.
"""
