"""A workspace with a run of the sample in it, applications and clients."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from clew.api.starting import RunStarter
from clew.api.state import State
from clew.api.workspace import Workspace, open_workspace
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.roles import AccessRole
from clew.auth.tokens import mint
from clew.events.snapshot import RunStatus
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.sample import write_sample
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from tests.server.server_engine import TracingEngine
from tests.store.store_fixtures import EACH_DATABASE

ADDRESS = "http://127.0.0.1:8765"
MONTH = "2026-01"


@dataclass(frozen=True)
class Served:
    """An application on a workspace, with a completed run of the close."""

    workspace: Workspace
    app: FastAPI
    run_id: str
    engine: TracingEngine

    def client(self, role: str | None = None, tenant: str | None = None) -> TestClient:
        """A client with a token of a role, or without any."""
        client = TestClient(self.app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False)
        if role is not None:
            client.headers["Authorization"] = f"Bearer {self.token(role, tenant)}"
        return client

    def token(self, role: str, tenant: str | None = None) -> str:
        return self.workspace.tokens.create(f"the {role}", role=AccessRole(role), tenant=tenant, days=1).text

    def expired_token(self) -> str:
        minted = mint(
            name="late",
            role=AccessRole.ADMIN,
            tenant_id="default",
            environment_id="dev",
            created_by="test",
            lifetime=timedelta(seconds=1),
            now=utc_now() - timedelta(hours=1),
        )
        self.state.tokens.add(minted.token)
        return minted.text

    def browser(self) -> TestClient:
        """A client that has signed in by the one-time link."""
        client = self.client()
        answer = client.get("/login/link", params={"key": self.app.state.doorman.links.new_key()})
        assert answer.status_code == 303
        return client

    @property
    def state(self) -> State:
        """The state store behind the door."""
        with self.workspace._access.opened() as at:
            return at.state

    @property
    def environment(self) -> RunEnvironment:
        return self.workspace.run_environment

    def read_files(self) -> WorkspaceFiles:
        """Read files that were edited now, and not within a second."""
        return self.workspace._source.look_now()

    @property
    def starter(self) -> RunStarter:
        return RunStarter(self.workspace.files, self.environment, self.state)

    def finish(self, run_id: str) -> None:
        """Drive a run to its end."""
        assert self.starter.drive(run_id, threading.Event()) is RunStatus.COMPLETED


def write_ledger(folder: Path, *, store: str | None = None, queue: str = "", extra: str = "") -> Path:
    """The sample with other settings."""
    write_sample(folder)
    settings = folder / "clew.yaml"
    lines = f'    state_store: "{store}"\n' if store is not None else ""
    lines += f"    queue: {queue}\n" if queue else ""
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("    mode: dev\n", f"    mode: dev\n{lines}{extra}", 1), encoding="utf-8")
    return folder


@contextmanager
def serving(
    folder: Path, patch: pytest.MonkeyPatch, settings: ServerSettings | None = None, *, run_id: str | None = None
) -> Iterator[Served]:
    """An application on a workspace; it has a completed run of the close, made now or known already."""
    engine = TracingEngine(folder / ".clew" / "storage")
    patch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: engine)
    patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    with open_workspace(folder).following_files() as workspace:
        served = Served(workspace, create_app(workspace, settings), run_id or "", engine)
        if run_id is None:
            run = served.starter.submit("gl-close", MONTH)
            served.finish(run.run_id)
            served = Served(workspace, served.app, run.run_id, engine)
        yield served


@pytest.fixture(scope="session")
def finished_ledger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A workspace with a completed run, to be copied."""
    folder = write_ledger(tmp_path_factory.mktemp("finished") / "ledger")
    with pytest.MonkeyPatch.context() as patch, serving(folder, patch) as served:
        return folder, served.run_id


@pytest.fixture
def ledger(finished_ledger: tuple[Path, str], tmp_path: Path) -> Path:
    """A workspace with a completed run, for one test."""
    return Path(shutil.copytree(finished_ledger[0], tmp_path / "ledger"))


@pytest.fixture
def served(finished_ledger: tuple[Path, str], ledger: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The application on a workspace of the test's own."""
    with serving(ledger, monkeypatch, run_id=finished_ledger[1]) as found:
        yield found


@pytest.fixture(scope="module")
def shared(finished_ledger: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application on a workspace that tests of a module only read."""
    folder = Path(shutil.copytree(finished_ledger[0], tmp_path_factory.mktemp("shared") / "ledger"))
    with pytest.MonkeyPatch.context() as patch, serving(folder, patch, run_id=finished_ledger[1]) as found:
        yield found


@pytest.fixture(params=EACH_DATABASE)
def on_each_database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """The application with its state in either database."""
    store = None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with serving(write_ledger(tmp_path / "ledger", store=store), monkeypatch) as found:
        yield found


OpenSite = Callable[..., Served]


@pytest.fixture
def serve_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSite]:
    """Serves a workspace whose environment a test describes; `settings` are those of the server."""
    with ExitStack() as stack:

        def opener(settings: ServerSettings | None = None, **written: str) -> Served:
            folder = write_ledger(tmp_path / "ledger", **written)
            return stack.enter_context(serving(folder, monkeypatch, settings))

        yield opener


__all__ = [
    "finished_ledger",
    "ledger",
    "on_each_database",
    "serve_with",
    "served",
    "shared",
]
