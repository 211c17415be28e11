"""Where runs are made to fail: a shop without Spark, and the sample on Spark, on one machine or on servers."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

import pytest
import yaml

from clew.sample import write_sample
from tests.faults.calls import KINDS, Calls
from tests.storage.s3_proxy import DENIED, SLOW_DOWN, Asked, Cut, Fault

SETTINGS: dict[str, Any] = {
    "mode": "dev",
    "retry": {"max_attempts": 1},
    "delivery": {"base_delay_ms": 10, "max_delay_ms": 50, "finish_seconds": 60},
}
"""So that a trial is over soon: what is tried again is tried by the one who makes the trial."""

STORE_FAULTS: dict[str, Fault] = {"denied": DENIED, "busy": SLOW_DOWN, "cut": Cut()}
HOOK_FAULTS = ("refused", "cut", "cut behind it")


@dataclass(frozen=True)
class Place:
    """A workspace whose earlier month has been closed, and where to copy it to for a trial."""

    project: str
    period: str
    dataset: str | None
    """What the project registers."""
    kinds: Mapping[str, tuple[str, ...]]
    """What can be counted there, and what can happen to it."""
    fresh: Callable[[], Path]
    """A workspace for one trial."""
    failing: Callable[[Calls], Any]
    """Counts calls and lets one fail, while the context is open."""


class Hook(ThreadingHTTPServer):
    """A receiver of events, which may refuse a request, or cut the connection before or behind its effect."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiving)
        self.calls: Calls | None = None
        self.received: list[str] = []
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/events"


class _Receiving(BaseHTTPRequestHandler):
    server: Hook
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        calls = self.server.calls
        fault = calls.fault if calls is not None and calls.fails("POST", json.loads(body).get("type", "")) else None
        if fault in {None, "cut behind it"}:
            with self.server.lock:
                self.server.received.append(str(json.loads(body)["id"]))
        if fault in {"cut", "cut behind it"}:
            self.close_connection = True
            return
        self.send_response(503 if fault else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _here_or_at(receiver: Hook) -> Callable[[Calls], Any]:
    """Counts calls of this process, or requests to the webhook."""

    @contextmanager
    def failing(calls: Calls) -> Iterator[None]:
        if calls.kind != "http":
            with _here(calls):
                yield
            return
        receiver.calls = calls
        try:
            yield
        finally:
            receiver.calls = None

    return failing


@contextmanager
def shop() -> Iterator[Place]:
    """A shop on SQLite and a folder, without Spark; its events go to a file and to a webhook."""
    from tests.trace.interpreted_shop import interpreted_shop

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-faults-")))
        receiver = stack.enter_context(hook())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        template = folder / "template"
        made = interpreted_shop(template, patch)
        patch.setattr("clew.api.starting.brief_session_of", lambda *_arguments: None)
        buses = [
            {"id": "feed", "type": "file", "path": "feed.jsonl"},
            {"id": "hook", "type": "webhook", "url": receiver.url},
        ]
        made.write({"clew.yaml": {"name": "shop", "environments": {"dev": {**SETTINGS, "bus": buses}}}})
        made.run("close", "2026-01")

        kinds = {"file": KINDS["file"][0], "sql": KINDS["sql"][0], "http": HOOK_FAULTS}
        yield Place("close", "2026-02", "closed", kinds, lambda: _copy(template, folder), _here_or_at(receiver))


@contextmanager
def sample() -> Iterator[Place]:
    """The sample on Spark, with SQLite and folders of this machine; its events go to a webhook."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-faults-")))
        receiver = stack.enter_context(hook())
        template = folder / "template"
        write_sample(template)
        workspace = yaml.safe_load((template / "clew.yaml").read_text())
        review = {"close-review": {"type": "capture_store", "path": ".clew/close-review", "max_ttl_days": 30}}
        bus = [{"id": "hook", "type": "webhook", "url": receiver.url}]
        workspace["environments"] = {"dev": {**SETTINGS, "bus": bus, "sinks": review, "spark": {"master": "local[2]"}}}
        (template / "clew.yaml").write_text(yaml.safe_dump(workspace))
        _closed(template)
        kinds = {**{kind: KINDS[kind][0] for kind in ("file", "sql", "spark")}, "http": HOOK_FAULTS}
        failing = _here_or_at(receiver)
        yield Place("gl-close", "2026-02", "gl-closed", kinds, lambda: _copy(template, folder), failing)


@contextmanager
def servers() -> Iterator[Place]:
    """The sample on Spark, with its state in PostgreSQL and everything else in S3."""
    import psycopg

    from tests.engine.spark_jars import s3_jars
    from tests.engine.test_engine_s3_faults import IN_A_HURRY
    from tests.storage.s3_proxy import s3_proxy
    from tests.storage.s3_server import KEYS, s3_server
    from tests.storage.sample_on_a_store import sample_on_a_store
    from tests.store.store_postgres import postgres_server

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-faults-")))
        postgres = stack.enter_context(postgres_server())
        s3 = stack.enter_context(s3_server())
        proxy = stack.enter_context(s3_proxy(s3.endpoint))
        stack.enter_context(_variable("LEDGER_KEYS", KEYS))

        def fresh() -> Path:
            root, place = s3.storage(), folder / uuid4().hex
            schema = f"t{uuid4().hex}"
            with psycopg.connect(postgres.url, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {schema}")
            sample_on_a_store(
                place,
                root,
                **SETTINGS,
                state_store=f"{postgres.url}&options=-csearch_path%3D{schema}",
                object_store={
                    "endpoint": proxy.endpoint,
                    "region": "us-east-1",
                    "credential_ref": "secret://env/LEDGER_KEYS",
                },
                spark={"master": "local[2]", "config": IN_A_HURRY, "jars": s3_jars()},
            )
            return place

        _closed(fresh())  # Spark starts here, and not in the first trial

        @contextmanager
        def failing(calls: Calls) -> Iterator[None]:
            with proxy.failing(_nth(calls)) if calls.kind == "http" else _here(calls):
                yield

        kinds = {"http": tuple(STORE_FAULTS), **{kind: KINDS[kind][0] for kind in ("sql", "spark", "file")}}
        yield Place("gl-close", "2026-02", "gl-closed", kinds, fresh, failing)


def _nth(calls: Calls) -> Callable[[Asked], Fault]:
    def found(asked: Asked) -> Fault:
        return STORE_FAULTS[calls.fault] if calls.fails(asked.method, asked.path) else None

    return found


@contextmanager
def _here(calls: Calls) -> Iterator[None]:
    with KINDS[calls.kind][1](calls):
        yield


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _closed(root: Path) -> None:
    from tests.faults.trial import clew

    told = clew("run", "gl-close", "--period", "2026-01", "-w", str(root))
    assert told.code == 0, told.text


def _copy(template: Path, folder: Path) -> Path:
    return Path(shutil.copytree(template, folder / uuid4().hex))


PLACES: dict[str, Callable[[], Any]] = {"shop": shop, "sample": sample, "servers": servers}
"""The places by name: the first needs no Spark, the last needs the jars that reach S3."""
