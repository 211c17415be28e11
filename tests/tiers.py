"""The tiers of the tests: markers for what a test starts, and a guard that keeps them honest.

`make check` runs the tests that have none of these markers. A test gets a marker from the fixtures it requests; one
that starts a server or a process by itself says so with `pytestmark`. Whatever is started without its marker fails the
test: programs on the path are replaced by ones that only leave a note, also for processes that the test starts.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

SPARK, POSTGRES, BROWSER, SLOW, CLASSIC = "spark", "postgres", "browser", "slow", "classic"

MARKER_OF_FIXTURE = {"spark": SPARK, "postgres": POSTGRES, "chromium": BROWSER}
"""What starts with the first test that requests one of these fixtures."""

FEW_EXAMPLES = 20
"""As many examples a property test tries under the hypothesis profile `quick`."""


def examples(count: int) -> int:
    """How many examples a property test tries that needs more, or can afford fewer, than the others."""
    return min(count, FEW_EXAMPLES) if settings.get_current_profile_name() == "quick" else count


_PROGRAMS = {
    SPARK: ("java",),
    POSTGRES: ("postgres", "pg_ctl", "initdb"),
    BROWSER: ("chromium", "chromium-browser", "google-chrome"),
}
_VARIABLES = {SPARK: "JAVA_HOME", BROWSER: "CHROMIUM"}
"""Environment variables that name a program past the path."""

_NOTES = "CLEW_TESTS_NOTES"
_ALLOWED = "CLEW_TESTS_ALLOWED"
"""The folder of notes and the markers of the test, for the processes that it starts as well."""


def add_markers(items: Iterable[pytest.Item]) -> None:
    """Marks each test by the fixtures that it requests."""
    for item in items:
        for name in getattr(item, "fixturenames", ()):
            if name in MARKER_OF_FIXTURE:
                item.add_marker(MARKER_OF_FIXTURE[name])


def is_for_connect(item: pytest.Item) -> bool:
    """Whether a test can run on a Spark Connect server: it shares the session of the others and says nothing else."""
    return "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker(CLASSIC) is None


def refuse_unmarked(marker: str) -> None:
    """Fails where a test without the marker starts what only marked tests may start."""
    notes = os.environ.get(_NOTES)
    if notes is not None and marker not in os.environ.get(_ALLOWED, "").split():
        (Path(notes) / marker).touch()
        raise RuntimeError(_complaint(marker))


def _complaint(marker: str) -> str:
    what = {SPARK: "a JVM", POSTGRES: "a PostgreSQL server", BROWSER: "Chromium"}[marker]
    return f"the test starts {what} without the marker `{marker}`: add `pytestmark = pytest.mark.{marker}`"


class Guard:
    """Stands between tests and the programs that their markers do not name."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="clewguard"))
        self._notes = self._folder / "notes"
        self._notes.mkdir()
        for marker, programs in _PROGRAMS.items():
            (self._folder / marker).mkdir()
            for program in programs:
                script = self._folder / marker / program
                script.write_text(
                    f"#!/bin/sh\n: > '{self._notes / marker}'\necho '{_complaint(marker)}' >&2\nexit 99\n"
                )
                script.chmod(0o755)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def around(self, item: pytest.Item) -> Iterator[None]:
        """Replaces the programs that the test has no marker for, from the first fixture to the last."""
        allowed = {marker for marker in _PROGRAMS if item.get_closest_marker(marker)}
        stubs = [str(self._folder / marker) for marker in _PROGRAMS if marker not in allowed]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(_NOTES, str(self._notes))
            patch.setenv(_ALLOWED, " ".join(allowed))
            patch.setenv("PATH", os.pathsep.join([*stubs, os.environ.get("PATH", "")]))
            for marker in _VARIABLES.keys() - allowed:
                patch.delenv(_VARIABLES[marker], raising=False)
            yield

    def complain(self) -> None:
        """Fails the test if one of the replaced programs was started."""
        started = sorted(note.name for note in self._notes.iterdir())
        for marker in started:
            (self._notes / marker).unlink()
        if started:
            pytest.fail("; ".join(map(_complaint, started)), pytrace=False)


GUARD = pytest.StashKey[Guard]()
"""Where the configuration of a test run keeps its guard."""
