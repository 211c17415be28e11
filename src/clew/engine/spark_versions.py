"""Which versions of Spark Clew runs on, and everything in which they differ.

The rest of the engine knows no versions: it calls what is here, or does what all of them can. `make matrix` runs the
tests of the engine on every one. Spark comes from the extra `clew[spark]` or from the platform that Clew runs on, so it
is looked at here, before anything is imported from it.
"""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

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


def installed() -> str:
    """The PySpark that runs are on, and where it lies."""
    import pyspark  # noqa: PLC0415 - see above

    return f"PySpark {pyspark.__version__}, {Path(pyspark.__file__).parent}"


def minor(version: str) -> str:
    """`4.1` of `4.1.4`, `4.1.0.dev0` or what a platform calls its build; the whole text where it has no such start."""
    found = re.match(r"\d+\.\d+(?!\d)", version)
    return found[0] if found else version


_BUILT_FOR = re.compile(r"[_-](\d+\.\d+)_(2\.1\d)-")
"""In the name of a connector, such as delta-spark_4.1_2.13-4.4.0.jar: the versions of Spark and Scala."""
_FOR_SCALA = re.compile(r"_(2\.1\d)-")
_HADOOP = re.compile(r"hadoop-(?:aws|azure|client-\w+|common)-(\d+(?:\.\d+)+)")
SCALA = "2.13"
"""What every supported Spark is built with."""


def misfit(jar: str) -> str | None:
    """Why a jar does not fit the installed Spark, as far as its name tells; None where it does, or tells nothing."""
    import pyspark  # noqa: PLC0415 - see above

    name, spark = jar.rpartition("/")[2], minor(pyspark.__version__)
    built = _BUILT_FOR.search(name)
    if built is not None and built[1] != spark:
        return f"{name} is built for Spark {built[1]}, and this is Spark {spark}"
    scala = _FOR_SCALA.search(name)
    if scala is not None and scala[1] != SCALA:
        return f"{name} is built for Scala {scala[1]}, and Spark {spark} for {SCALA}"
    hadoop = _HADOOP.match(name)
    if hadoop is not None and hadoop_version() not in {None, hadoop[1]}:
        return f"{name} is part of Hadoop {hadoop[1]}, and Spark has {hadoop_version()}"
    return None


@cache
def hadoop_version() -> str | None:
    """The Hadoop that the installed Spark comes with; None where it comes without, as on some platforms."""
    found = find_spec("pyspark")
    folders = (found.submodule_search_locations or ()) if found else ()
    jars = [jar for folder in folders for jar in Path(folder, "jars").glob("hadoop-client-api-*.jar")]
    return jars[0].stem.removeprefix("hadoop-client-api-") if jars else None


_SINCE_ANY_JAVA = (3, 5)
"""The Hadoop that no longer needs what Java 24 has removed (`Subject.getSubject`)."""


def newest_java() -> int | None:
    """The newest Java that the installed Spark runs on, because of its Hadoop; None where there is no such limit."""
    found = re.match(r"(\d+)\.(\d+)", hadoop_version() or "")
    return 23 if found and (int(found[1]), int(found[2])) < _SINCE_ANY_JAVA else None
