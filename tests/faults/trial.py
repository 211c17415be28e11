"""One trial: a run in which one call fails, what the user is told, and what can be done afterwards."""

import io
import json
import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from clew.api.signalling import send_signal
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import ClewError
from clew.events.snapshot import RunStatus
from clew.runs.request import RunFilter
from clew.runs.signals import SignalType
from clew.store.schema import outbox, runs
from tests.faults.calls import Calls, possible
from tests.faults.sites import Place

_MOST = 5
"""How often a run may be given to a worker again until it has ended."""
_EARLIER = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Told:
    """What a command has said."""

    code: int
    text: str


@dataclass
class Trial:
    """What came of it."""

    kind: str
    fault: str
    nth: int
    struck: str | None = None
    told: Told = field(default_factory=lambda: Told(0, ""))
    problems: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """In a word."""
        if self.struck is None:
            return "not reached"
        return "succeeded" if self.told.code == 0 else "failed cleanly"


def clew(*arguments: str) -> Told:
    """A command, as a user gives it."""
    out, errors = io.StringIO(), io.StringIO()
    with _quiet(), redirect_stdout(out), redirect_stderr(errors):
        code = command(arguments)
    return Told(code, out.getvalue() + errors.getvalue())


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def tried(place: Place, kind: str, fault: str, nth: int) -> Trial:
    """Run the project with one call failing; then everything works again, and all must come right."""
    root = place.fresh()
    try:
        trial, calls = Trial(kind, fault, nth), Calls(kind, root, nth, fault, possible(kind, fault))
        with place.failing(calls):
            trial.told = clew("run", place.project, "--period", place.period, "-w", str(root))
        trial.struck = calls.struck
        trial.problems += _about_words(trial.told)
        try:
            trial.problems += _afterwards(place, root, trial.told)
        except ClewError as error:
            trial.problems.append(f"what comes after fails: {error}")
        return trial
    finally:
        shutil.rmtree(root, ignore_errors=True)


def calls_of(place: Place, kind: str) -> list[str]:
    """The calls of a run in which nothing fails, by name."""
    root = place.fresh()
    try:
        calls = Calls(kind, root)
        with place.failing(calls):
            told = clew("run", place.project, "--period", place.period, "-w", str(root))
        assert told.code == 0, told.text
        return calls.seen
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _about_words(told: Told) -> Iterator[str]:
    if "Traceback" in told.text:
        yield f"a stack trace: {told.text}"
    for words in ("bug in Clew", "InternalError", "EngineFailure"):
        if words in told.text:
            yield f"the user is told of a bug: {told.text}"
            return


def _afterwards(place: Place, root: Path, told: Told) -> Iterator[str]:
    """Faults are over: the run is continued, retried, or requested again, as its user would do it."""
    with Workspace(root) as workspace, open_state(workspace.run_environment) as state:
        starter = RunStarter(workspace.files, workspace.run_environment, state)
        which = RunFilter(project_id=place.project, period=place.period)
        found = state.stores.catalog.runs(which, limit=9)
        if told.code == 0 and [run.status for run in found] != [RunStatus.COMPLETED]:
            yield f"the command succeeded, but runs are {[run.status.value for run in found]}"
        if not found:
            again = clew("run", place.project, "--period", place.period, "-w", str(root))
            if again.code:
                yield f"a new run fails: {again.text}"
            found = state.stores.catalog.runs(which, limit=9)
        yield from _continued(starter, which)
        ended = state.stores.catalog.runs(which, limit=9)
        if [run.status for run in ended].count(RunStatus.COMPLETED) != 1:
            last = [state.stores.reader.events(run.run_id)[-1].body for run in ended]
            yield f"runs of the period afterwards: {[run.status.value for run in ended]}, after {last}"
        if place.dataset is not None:
            versions = [file.period for version in state.datasets.versions(place.dataset)[:1] for file in version.files]
            if versions.count(place.period) < 1:
                yield f"the newest version of {place.dataset} has no rows of {place.period}"
        yield from _undelivered(starter)
    yield from _verified(root)


def _continued(starter: RunStarter, which: RunFilter) -> Iterator[str]:
    """Give runs to workers until they have ended; where all have failed, the last is asked to be done again."""
    catalog, is_retried = starter.state.stores.catalog, False
    for _ in range(_MOST):
        found = catalog.runs(which, limit=9)
        waiting = [run.run_id for run in found if not run.status.is_terminal]
        if not waiting:
            if is_retried or any(run.status is RunStatus.COMPLETED for run in found):
                return
            sent = send_signal(starter.state, starter.environment, found[0].run_id, SignalType.RETRY_RUN)
            if not sent.is_accepted:
                yield f"RETRY_RUN is refused: {sent}"
                return
            is_retried = True
            waiting = [run.run_id for run in catalog.runs(which, limit=9) if not run.status.is_terminal]
        _let_time_pass(starter)
        for run_id in waiting:
            starter.drive(run_id, threading.Event())


def _let_time_pass(starter: RunStarter) -> None:
    """Leases of who does not report any more have run out."""
    with _connected(starter) as connection:
        held = sa.update(runs).where(runs.c.lease_expires_at.is_not(None))
        connection.execute(held.values(lease_expires_at=_EARLIER))


def _undelivered(starter: RunStarter) -> Iterator[str]:
    """Every event has left the outbox, once a dispatcher has had its turn."""
    waiting = 0
    for _ in range(_MOST):
        with _connected(starter) as connection:
            connection.execute(sa.update(outbox).values(due_at=_EARLIER))
            waiting = connection.execute(sa.select(sa.func.count()).select_from(outbox)).scalar_one()
        if not waiting:
            return
        worker: Any = starter.worker()
        worker._dispatcher.deliver_due()
    yield f"{waiting} events wait in the outbox"


@contextmanager
def _connected(starter: RunStarter) -> Iterator[sa.Connection]:
    database: Any = starter.state.stores.catalog
    with database._database.write() as connection:
        yield connection


def _verified(root: Path) -> Iterator[str]:
    told = clew("verify", "--all", "--json", "-w", str(root))
    if told.code:
        yield f"clew verify fails: {told.text}"
    else:
        found = json.loads(told.text)
        if found.get("findings"):
            yield f"clew verify finds {found['findings']}"
