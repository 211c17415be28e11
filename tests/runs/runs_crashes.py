"""Workers in separate processes, made to die or to freeze at a chosen moment."""

import logging
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from clew.events import NewEvent, StoredEvent
from clew.runs.clock import utc_now
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import LeasePolicy
from clew.runs.stores import EventWriter
from clew.runs.worker import stop_on_signals
from clew.storage.committed import publish_part
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import Part, PartFile
from clew.storage.roots import storage_at
from clew.store import StoreOptions, open_run_stores
from tests.runs.runs_workers import FakeExecutors, Site
from tests.store.seals import the_key

HOUR = timedelta(hours=1)


def an_hour_later() -> datetime:
    """The clock of a worker that starts when all leases of the dead one have run out."""
    return utc_now() + HOUR


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingWriter:
    """Kills its own process before or after a certain write."""

    def __init__(self, inner: EventWriter, point: str) -> None:
        self.inner = inner
        self.when, _, number = point.partition(" ")
        self.left = int(number) if self.when in {"before", "after"} else -1

    def append(
        self, run_id: str, events: Sequence[NewEvent], *, token: int | None = None, expected_seq: int | None = None
    ) -> tuple[StoredEvent, ...]:
        self.left -= 1
        if self.left == 0 and self.when == "before":
            die()
        stored = self.inner.append(run_id, events, token=token, expected_seq=expected_seq)
        if self.left == 0 and self.when == "after":
            die()
        return stored


class WritingSteps:
    """Steps that leave a part behind, through the storage that the engine uses, and may die in the middle of it."""

    def __init__(self, folder: Path, dies_in: str = "") -> None:
        self.folder = folder
        self.dies_in = dies_in

    def __call__(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        outputs = []
        for attempt in attempts:
            step = attempt.step
            started = draft(storage_at(self.folder), part_folder(context.run.run_id, "created", step.step_id))
            with started.create("rows") as file:
                file.write(f"half of {step.step_id}, ".encode())
                file.flush()
                if step.step_id == self.dies_in:
                    die()
                file.write(f"all of {step.step_id}".encode())
            [rows] = started.files("rows")
            written = PartFile(rows.key, 1, rows.size, started.root.sha256(rows.key), step.seq)
            part = Part("created", step.step_id, (written,), (), step.seq)
            outputs.append(StepOutput.success(publish_part(started, part).artifact))
        return outputs


def work_until_death(url: str, point: str, folder: str, fuse: int) -> None:
    """Drive a run, and die at a point such as "after 3" or "in 20"."""
    dies_in = point.removeprefix("in ") if point.startswith("in ") else ""
    with open_run_stores(url, StoreOptions(key=the_key)) as real:
        stores = replace(real, writer=DyingWriter(real.writer, point))
        site = Site(stores, FakeExecutors(3, WritingSteps(Path(folder), dies_in), fuse))
        site.worker().tick()
        threading.Event().wait(60)


def work_and_freeze(url: str, tell: Connection, hear: Connection) -> None:
    """Drive a run with a short lease; in its first step, say so and wait to be told to go on; say how it went."""
    warnings: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append(record.getMessage())

    logging.getLogger("clew.runs").addHandler(Keeping())

    def freezes(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        tell.send("in the step")
        hear.recv()
        return [StepOutput.success() for _ in attempts]

    with open_run_stores(url) as stores:
        site = Site(stores, FakeExecutors(2, freezes), lease=LeasePolicy(ttl_s=1.0, poll_s=0.1))
        claim = stores.leases.claim("dev", owner="frozen", ttl_s=1.0, max_running=9)
        assert claim is not None
        active = site.driver.begin(claim).active
        assert active is not None
        stop = threading.Event()
        beating = threading.Thread(target=site.heartbeat.run, args=(stop,))
        beating.start()
        site.driver.drive(active, site.heartbeat, threading.Event())
        stop.set()
        beating.join()
        tell.send(warnings)


def work_until_told(url: str, tell: Connection, hear: Connection) -> None:
    """A whole worker, as a command would run it. In the first step of a run it says so, and waits to be told."""

    def waits(attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        if attempts[0].step.step_id == "10":
            tell.send("in the step")
            hear.recv()
        return [StepOutput.success() for _ in attempts]

    with open_run_stores(url) as stores, stop_on_signals() as stop:
        Site(stores, FakeExecutors(3, waits)).worker().run(stop)
    tell.send("stopped cleanly")
