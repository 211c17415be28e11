"""Which versions of Spark Clew runs on, and everything in which they differ.

The rest of the engine knows no versions: it calls what is here, or does what all of them can. `make matrix` runs the
tests of the engine on every one. Spark comes from the extra `clew[spark]` or from the platform that Clew runs on, so it
is looked at here, before anything is imported from it.
"""

import re

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SPARK_MISSING, SPARK_UNSUPPORTED

VERSIONS = ("4.0", "4.1", "4.2", "4.3")
"""The supported ones, oldest first."""
RECOMMENDED = "4.1"
"""What the extra `clew[spark]` installs: the newest that both Delta and Iceberg have builds for."""


def require_pyspark() -> None:
    """Raise where PySpark is missing, or of a version that Clew does not run on."""
    try:
        import pyspark  # noqa: PLC0415 - whether it can be imported is the question
    except ModuleNotFoundError as error:
        raise UserError(SPARK_MISSING.anywhere(module=error.name or "pyspark")) from error
    require_supported(pyspark.__version__, "PySpark")


def require_supported(version: str, what: str) -> None:
    """Raise where a version of Spark is none that Clew runs on."""
    if minor(version) not in VERSIONS:
        problem = f"{what} {version} is not supported: Clew runs on Spark {VERSIONS[0]} to {VERSIONS[-1]}"
        raise UserError(SPARK_UNSUPPORTED.anywhere(problem=problem))


def minor(version: str) -> str:
    """`4.1` of `4.1.4`, `4.1.0.dev0` or what a platform calls its build; the whole text where it has no such start."""
    found = re.match(r"\d+\.\d+(?!\d)", version)
    return found[0] if found else version
