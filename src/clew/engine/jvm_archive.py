"""An archive of the classes that Spark loads, from which later JVMs start with about half the work.

The JVM of the first run writes it when it ends; Java itself decides at every start whether an archive fits, and starts
without one that is damaged or of another Java. CLEW_JVM_ARCHIVE=off leaves archives alone, and CLEW_CACHE_MB=0, too.
"""

import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from clew.engine.java import Java
from clew.storage.local_copies import SIZE_VARIABLE

VARIABLE = "CLEW_JVM_ARCHIVE"

_CHOSEN = re.compile(r"-Xshare|SharedArchive|ArchiveClassesAtExit")
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Java writes what it thinks of an archive to standard output, where some commands write JSON."""
_MAKES_ITSELF = 19
"""From this version on, Java makes an archive anew where it does not fit."""
_SETTLED_S = 60.0
"""An archive that nothing was added to for so long is complete."""


def archive_options(java: Java, given: Sequence[str], variables: Mapping[str, str] = os.environ) -> str:
    """The options of a JVM that uses an archive, or makes one; none where the options that are given choose one."""
    path = archive_for(java, variables)
    if path is None or any(_CHOSEN.search(options) for options in given):
        return ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if java.major is not None and java.major >= _MAKES_ITSELF:
            return f"{_QUIET} -XX:+AutoCreateSharedArchive -XX:SharedArchiveFile={path}"
        _adopt(path)
        if path.is_file():
            return f"{_QUIET} -XX:SharedArchiveFile={path}"
    except OSError:
        return ""
    return f"{_QUIET} -XX:ArchiveClassesAtExit={path}.{os.getpid()}"


def archive_for(java: Java, variables: Mapping[str, str] = os.environ) -> Path | None:
    """Where the archive of a Java and the installed PySpark is, or would be; None where there is to be none."""
    spark = find_spec("pyspark")
    folder = _folder(variables)
    if folder is None or spark is None or spark.origin is None or any(ch in str(folder) for ch in " \t\"'"):
        return None
    known = (java.program.resolve(), Path(spark.origin).parent / "jars")
    facts = " ".join(f"{path} {path.stat().st_mtime_ns}" for path in known if path.exists())
    return folder / f"spark-classes-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.jsa"


def _folder(variables: Mapping[str, str]) -> Path | None:
    if variables.get(VARIABLE) == "off" or variables.get(SIZE_VARIABLE) == "0":
        return None
    usual = variables.get("XDG_CACHE_HOME") or (f"{variables['HOME']}/.cache" if variables.get("HOME") else None)
    return Path(usual).absolute() / "clew" / "jvm" if usual else None


def _adopt(path: Path) -> None:
    """Take an archive that an earlier JVM has finished, and remove the others: several may have begun at once."""
    for made in sorted(path.parent.glob(f"{path.name}.*")):
        with suppress(FileNotFoundError):
            if time.time() - made.stat().st_mtime < _SETTLED_S:
                continue
            if path.is_file():
                made.unlink()
            else:
                made.replace(path)
