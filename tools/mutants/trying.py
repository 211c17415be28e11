"""Whether tests notice a mistake: they run in a copy of the repository, in a process that has loaded the libraries."""

# ruff: noqa: PLC0415 - pytest is loaded in the copy, with the plugins that it finds there

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
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

    def passes(self, tests: Sequence[str]) -> bool:
        """Whether all tests pass, as the code is now."""
        child = os.fork()
        if child == 0:
            os._exit(self._tested(tests))
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
            return not self.passes(tests)
        finally:
            self._write(path, before)

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
