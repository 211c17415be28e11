"""Whether tests notice a mistake: they run in a copy of the repository, in a process that has loaded the libraries.

The files of tests that take the line come first. If it was also taken outside of tests, or by none, the others follow.
"""

# ruff: noqa: PLC0415 - pytest and coverage.py are loaded in the copy, with the plugins that they find there

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.mutants.choosing import Mutant

ROOT = Path(__file__).parents[2]
WITHOUT = "not (spark or postgres or browser or slow)"
_LIBRARIES = ("pyarrow.parquet", "duckdb", "sqlalchemy", "yaml", "click")
"""None of those that pytest would like to load by itself."""


@dataclass
class Copy:
    """A copy of the repository in which mistakes are made, one at a time."""

    root: Path
    limit_s: float = 600.0
    """Tests that take longer have noticed: a mistake may make a loop endless."""
    _tick: int = field(default=0)
    _taken: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """By file and line, the files of tests that take it; an empty name stands for what happens outside of tests."""

    def learn(self, tests: Sequence[str]) -> bool:
        """Whether all tests pass without a mistake. Remembers which lines they take."""
        learnt = self.root / ".taken.json"
        is_fine = self._ended_well(lambda: self._watched(tests, learnt))
        if is_fine:
            self._taken = json.loads(learnt.read_text(encoding="utf-8"))
        return is_fine

    def passes(self, tests: Sequence[str]) -> bool:
        """Whether all tests pass, as the code is now."""
        return self._ended_well(lambda: self._tested(tests))

    def _ended_well(self, work: Callable[[], int]) -> bool:
        child = os.fork()
        if child == 0:
            os._exit(work())
        over = threading.Timer(self.limit_s, os.kill, (child, signal.SIGKILL))
        over.start()
        try:
            _, status = os.waitpid(child, 0)
        finally:
            over.cancel()
        return status == 0

    def notices(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Whether a test fails where the mistake is made."""
        path = self.root / mutant.file
        before = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutant.code)
            return not all(map(self.passes, self._in_turn(mutant, tests)))
        finally:
            self._write(path, before)

    def _in_turn(self, mutant: Mutant, tests: Sequence[str]) -> Iterator[Sequence[str]]:
        taken = self._taken.get(str(mutant.file), {}).get(str(mutant.line), [""])
        first = [name for name in taken if name]
        if first:
            yield first
        if "" in taken:
            yield tests

    def _write(self, path: Path, text: str) -> None:
        """Python compiles a file again if its time has changed, and some mistakes take less than a second."""
        path.write_text(text, encoding="utf-8")
        self._tick += 1
        moment = path.stat().st_mtime + 10 * self._tick
        os.utime(path, (moment, moment))

    def _tested(self, tests: Sequence[str]) -> int:
        """In the child: the exit code of pytest."""
        import pytest

        os.chdir(self.root)
        sys.path[:0] = [str(self.root / "src"), str(self.root)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", WITHOUT, "--hypothesis-profile=quick"]
        return int(pytest.main([*options, *tests]))

    def _watched(self, tests: Sequence[str], learnt: Path) -> int:
        """In the child: the exit code of pytest; what is learnt goes into a file."""
        from coverage import Coverage

        measured = Coverage(data_file=None, config_file=False, source=[str(self.root / "src" / "clew")])
        measured.set_option("run:dynamic_context", "test_function")
        measured.start()
        code = self._tested(tests)
        measured.stop()
        data = measured.get_data()
        taken = {
            str(Path(file).relative_to(self.root)): {
                str(line): sorted({self._file_of(context) for context in contexts})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        learnt.write_text(json.dumps(taken), encoding="utf-8")
        return code

    def _file_of(self, context: str) -> str:
        """The file of a test that is named as Python names it; nothing where there is none."""
        words = context.split(".")
        names = ("/".join(words[:count]) + ".py" for count in range(len(words), 0, -1))
        return next((name for name in names if (self.root / name).is_file()), "")


@contextmanager
def copied() -> Iterator[Copy]:
    """A copy of what git knows, as it is in the working tree."""
    git = shutil.which("git") or "git"
    listed = subprocess.run(  # noqa: S603 - the arguments are ours
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    with tempfile.TemporaryDirectory(prefix="clew-mutants-") as folder:
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, Path(folder) / name)
        for library in _LIBRARIES:
            __import__(library)
        yield Copy(Path(folder))
