"""A server, two workers, PostgreSQL, S3 and a webhook, each in a process of its own except for the webhook."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
import psutil
import psycopg

from clew.storage.object_store import ObjectStorage
from tests.engine.spark_jars import s3_jars
from tests.faults.sites import Hook, hook
from tests.storage.s3_server import KEYS, s3_server
from tests.storage.sample_on_a_store import sample_on_a_store
from tests.store.store_postgres import PostgresServer, postgres_server

TTL_S = 10
"""After so many seconds a worker that is silent loses its runs."""
KEPT_RUNS = 4
"""How many runs of each project `clew gc` leaves."""
STOP_S = 120.0

CLEW = (sys.executable, "-W", "ignore", "-m", "clew.cli")


@dataclass
class Moody:
    """What becomes of a request to the webhook: one in twenty is refused, or its connection is cut."""

    chance: random.Random
    fault: str = "refused"
    struck: int = 0
    _lock: Lock = field(default_factory=Lock)

    def fails(self, _name: str, _about: object = "") -> bool:
        """Whether this request fails."""
        with self._lock:
            if self.chance.random() >= 0.05:
                return False
            self.fault = self.chance.choice(["refused", "cut", "cut behind it"])
            self.struck += 1
            return True


class Program:
    """A command of Clew that goes on until it is stopped."""

    def __init__(self, name: str, folder: Path, *arguments: str) -> None:
        self.name = name
        self._folder = folder
        self._arguments = arguments
        self.log = folder.parent / f"{name}.log"
        self.process = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        with self.log.open("a") as log:
            command = [*CLEW, *self._arguments]
            return subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, stderr=log, text=True)

    def ended(self) -> list[psutil.Process]:
        """End it at once, and start it again. Returns what it had started itself."""
        children = list(psutil.Process(self.process.pid).children(recursive=True))
        self.process.kill()
        self.process.communicate()
        self.process = self._started()
        return children

    def frozen(self, seconds: float, wait: Any) -> None:
        """Let it stand still for a while."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            wait(seconds)
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stopped(self) -> int | None:
        """Ask it to stop; its exit code, or None where it did not end in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return None
        return self.process.returncode


@dataclass
class Deployment:
    """Everything that runs."""

    root: Path
    postgres: PostgresServer
    storage: ObjectStorage
    hook: Hook
    moody: Moody
    programs: dict[str, Program] = field(default_factory=dict)
    url: str = ""
    token: str = ""

    def client(self) -> httpx.Client:
        """Somebody who may do everything."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=180, follow_redirects=True)

    def told(self, *arguments: str) -> tuple[int, Any]:
        """The exit code of a command, and its document."""
        done = subprocess.run([*CLEW, *arguments, "--json"], cwd=self.root, capture_output=True, text=True, check=False)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, {"said": done.stdout + done.stderr}

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What lies in the state store."""
        with psycopg.connect(self.postgres.url, options="-csearch_path=soak") as connection:
            return connection.execute(statement).fetchall()

    def objects(self) -> int:
        """How many files Clew manages in the object store."""
        return sum(1 for _ in self.storage.files("managed"))


@contextmanager
def deployed(chance: random.Random) -> Iterator[Deployment]:
    """Start everything, and end it with the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-soak-", ignore_cleanup_errors=True)))
        postgres, s3 = stack.enter_context(postgres_server()), stack.enter_context(s3_server())
        receiver = stack.enter_context(hook())
        receiver.calls = moody = Moody(chance)  # type: ignore[assignment]  # it says which requests fail, and no more
        os.environ["LEDGER_KEYS"] = KEYS
        storage = s3.storage()
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA soak")
        root = folder / "ledger"
        sample_on_a_store(
            root,
            storage,
            mode="dev",
            state_store=f"{postgres.url}&options=-csearch_path%3Dsoak",
            object_store={
                "endpoint": s3.endpoint,
                "region": "us-east-1",
                "credential_ref": "secret://env/LEDGER_KEYS",
            },
            bus=[{"id": "hook", "type": "webhook", "url": receiver.url}],
            lease={"ttl_seconds": TTL_S},
            retention={"keep_runs": KEPT_RUNS},
            delivery={"base_delay_ms": 100, "max_delay_ms": 5000},
            spark={"master": "local[2]", "config": {"spark.driver.memory": "1g"}, "jars": s3_jars()},
        )
        found = Deployment(root, postgres, storage, receiver, moody)
        _started(found, stack)
        yield found


def _started(found: Deployment, stack: ExitStack) -> None:
    code, made = found.told("token", "create", "soak", "--role", "admin")
    assert code == 0, made
    found.token = made["token"]
    for name, arguments in {
        "server": ("serve", "--port", "0", "--no-worker"),
        "worker-a": ("worker",),
        "worker-b": ("worker",),
    }.items():
        program = found.programs[name] = Program(name, found.root, *arguments)
        stack.callback(_ended, program)
    output = found.programs["server"].process.stdout
    assert output is not None
    found.url = output.readline().partition(" on ")[2].partition(";")[0]
    assert found.url, found.programs["server"].log.read_text()


def _ended(program: Program) -> None:
    if program.process.poll() is None:
        program.process.kill()
        program.process.communicate()
