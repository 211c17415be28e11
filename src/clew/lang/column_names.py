"""Names that no column of data can have, because files and queries use them for something else."""

RESERVED_PREFIX = "__"
"""How the columns begin that Clew adds to the files of a run."""

_SPARK_COLUMN = "_metadata"
"""The column with the position of a row that Spark adds to every file."""


def reserved_because(column: str) -> str | None:
    """Why no column of data can have a name; None where it can."""
    if column.startswith(RESERVED_PREFIX):
        return "names that begin with two underscores are Clew's own"
    if column.casefold() == _SPARK_COLUMN:
        return "Spark has a column of this name in every file"
    return None
