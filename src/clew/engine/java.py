"""The Java that Spark is started with."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JAVA_MISSING
from clew.engine.spark_versions import newest_java

OLDEST_JAVA = 17

_VERSION = re.compile(r'version\D{0,3}"?(?:1\.)?(\d+)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java."""

    program: Path
    major: int | None
    """None where it does not tell."""


def java_of_spark() -> Java:
    """The Java that Spark's own scripts will take. Complains in one line where Spark would fail with many."""
    program = _find_java()
    if program is None:
        raise UserError(JAVA_MISSING.anywhere(problem=_not_found()))
    major = _major_version(program)
    if major is not None and major < OLDEST_JAVA:
        problem = f"Java {major} at {program} is too old: Spark needs Java {OLDEST_JAVA} or newer"
        raise UserError(JAVA_MISSING.anywhere(problem=problem))
    newest = newest_java()
    if major is not None and newest is not None and major > newest:
        problem = f"Java {major} at {program} is too new: the installed Spark runs on Java {OLDEST_JAVA} to {newest}"
        raise UserError(JAVA_MISSING.anywhere(problem=problem, hint="point JAVA_HOME to Java 17 or 21"))
    return Java(program, major)


def _find_java() -> Path | None:
    """The Java that Spark's own scripts will take: the one of JAVA_HOME, else the first on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = Path(home) / "bin" / "java"
        return inside if os.access(inside, os.X_OK) else None
    found = shutil.which("java")
    return Path(found) if found else None


def _not_found() -> str:
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the path"
    return f"Spark needs Java {OLDEST_JAVA} or newer: {where}"


def _major_version(java: Path) -> int | None:
    """From the file that comes with every Java, which is faster than to ask the program."""
    release = java.resolve().parent.parent / "release"
    if release.is_file():
        text = release.read_text(encoding="utf-8", errors="replace")
    else:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
        text = asked.stderr + asked.stdout
    found = _VERSION.search(text)
    return int(found[1]) if found else None
