"""Every column of every table and every managed file, edited one at a time, as whoever owns the machine can.

Each edit is noticed by `clew verify --all`, or stands in a list with the reason why nothing can be said about it. And
no edit changes an answer: it is refused, or it is what it was.
"""

import json
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.auth.roles import AccessRole
from clew.auth.tokens import BrowserSession
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus
from clew.cli.main import run as command
from clew.runs.alerts import Alert, RaisedAlert
from clew.runs.clock import utc_now
from clew.store.schema import metadata
from tests.captures.captured_files import captured
from tests.trace.interpreted_shop import ran_shop

KEPT = Path(__file__).parents[1] / "history" / "layout-7" / "workspace.tar.gz"
"""A workspace that Spark has written, with trace ids."""

FREE_TABLES = {
    "outbox": "what waits for event buses; receivers have the numbers of events",
    "node_leases": "which process may give out trace ids",
    "frames": "what other programs have said about their rows",
    "trace_links": "what other programs have said about their rows",
    "trace_windows": "what other programs have said about their rows",
    "trace_artifacts": "what other programs have said about their rows",
}
FREE_COLUMNS = {
    "runs.token": "counts leases",
    "runs.lease_owner": "who works on a run at the moment",
    "runs.lease_expires_at": "who works on a run at the moment",
    "captures.token": "counts leases",
    "captures.lease_owner": "who works on a capture at the moment",
    "captures.lease_expires_at": "who works on a capture at the moment",
    "captures.due_at": "when a capture is tried again",
    "captures.attempts": "how often it was tried",
    "captures.reserved_bytes": "room that it may take",
}
NULLED_ONLY = {"step_attempts.engine_attempt_id": "the platform may have tried more often than events tell"}


@dataclass
class Scene:
    """A workspace that is attacked again and again; what was edited is put back every time."""

    root: Path
    answers: tuple[tuple[str, ...], ...]
    capsys: pytest.CaptureFixture[str] | None = None
    known: dict[tuple[str, ...], Any] = field(default_factory=dict)
    database: bytes = b""

    @property
    def store(self) -> Path:
        return self.root / ".clew" / "state.db"

    def settle(self) -> None:
        """From here on this is what is put back."""
        with closing(sqlite3.connect(self.store)) as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database = self.store.read_bytes()

    def put_back(self) -> None:
        for name in ("state.db-wal", "state.db-shm"):
            self.store.with_name(name).unlink(missing_ok=True)
        self.store.write_bytes(self.database)

    def asked(self, *words: str) -> tuple[int, Any]:
        assert self.capsys is not None
        self.capsys.readouterr()
        code = command([*words, "--json", "-w", str(self.root)])
        answer = json.loads(self.capsys.readouterr().out)
        if words[0] == "show":
            answer.pop("captures", None)  # lists show what there is; the rows of a capture that was edited are refused
        return code, answer

    def learn(self) -> None:
        for words in self.answers:
            code, self.known[words] = self.asked(*words)
            assert code == 0, self.known[words]
        assert self.asked("verify", "--all")[1]["findings"] == []
        self.put_back()

    def changed_answers(self) -> list[str]:
        """Questions that have another answer than before, where none was refused."""
        told = {words: self.asked(*words) for words in self.answers}
        return [words[0] for words, (code, answer) in told.items() if code == 0 and answer != self.known[words]]

    def is_noticed(self) -> bool:
        return self.asked("verify", "--all")[0] == 1

    def edited(self, *statements: tuple[str, tuple[object, ...]]) -> bool:
        """Whether the database allowed the edit; its guards are taken away first."""
        with closing(sqlite3.connect(self.store)) as opened:
            for (guard,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                opened.execute(f"DROP TRIGGER {guard}")
            try:
                for statement, values in statements:
                    assert opened.execute(statement, values).rowcount == 1, statement
            except sqlite3.IntegrityError:
                return False
            opened.commit()
        return True

    def rows(self, table: str, key: list[str]) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.store)) as opened:
            return opened.execute(f"SELECT {', '.join(key)} FROM {table} ORDER BY {', '.join(key)}").fetchall()

    def value(self, table: str, column: str, key: dict[str, Any]) -> Any:
        where = " AND ".join(f"{name} = ?" for name in key)
        with closing(sqlite3.connect(self.store)) as opened:
            [(found,)] = opened.execute(f"SELECT {column} FROM {table} WHERE {where}", tuple(key.values()))
        return found


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Runs, one of them deleted, a token, a session, reads, versions, captures, and a step that was tried twice."""
    root = tmp_path_factory.mktemp("tampering") / "shop"
    with ran_shop(root) as ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            assert command(["activate", "close"]) == 0
            assert command(["token", "create", "Ada", "--role", "auditor"]) == 0
            assert command(["trace", ran.january, "--where", "id = 102"]) == 0
            assert command(["rm", ran.report, "--reason", "asked for"]) == 0
        with clew.open(root) as workspace, workspace._access.opened() as at:
            now = utc_now()
            session = BrowserSession(
                session_digest="d" * 64,
                name="Ada",
                role=AccessRole.VIEWER,
                tenant_id="default",
                environment_id="dev",
                token_id=None,
                created_at=now,
                expires_at=now + timedelta(hours=1),
            )
            at.state.browser_sessions.add(session)
            at.state.captures.enlist([replace(capture(ran.january, "c1"), status=CaptureStatus.QUEUED)])
            at.state.captures.drop("c1", CaptureOutcome(drop_reason="expired"))
            folder = root / ".clew" / "storage" / "captures" / "c2"
            made = captured(folder, {"id": "integer"}, [[1], [2]], run_id=ran.january).manifest
            manifest = replace(made, capture_id="c2", folder=".clew/storage/captures/c2")
            at.state.captures.publish(capture(ran.january, "c2"), manifest)
            claim = at.state.stores.leases.acquire(ran.january, owner="w", ttl_s=60)
            assert claim is not None
            assert at.state.stores.attempts.next_engine_attempt(claim.lease, "10", 1) == 2
            assert at.state.stores.attempts.next_engine_attempt(claim.lease, "RUN", 1) == 2  # no event tells of it
            at.state.stores.leases.release(claim.lease, seen_seq=claim.run.last_seq)
            event = RaisedAlert(alert=Alert.WRITE_BUDGET_EXCEEDED, message="many events").event(utc_now)
            at.state.stores.writer.append(ran.january, [replace(event, step_id="10", engine_attempt_id=2)])
        explain = ("explain", ran.january, "--where", "id = 102", "usd")
        yield Scene(root, (explain, ("show", ran.january), ("trace", ran.january, "--where", "id = 102")))


def capture(run_id: str, name: str) -> CaptureRecord:
    return CaptureRecord(
        capture_id=name,
        kind="capture",
        slot=name,
        tenant_id="default",
        run_id=run_id,
        request_id="r",
        breakpoint="close::main::a",
        seq=10,
        status=CaptureStatus.READY,
        request=None,
    )


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The sample, as Spark ran it: totals, appended rows, registered datasets, trace ids."""
    root = tmp_path_factory.mktemp("kept")
    with tarfile.open(KEPT) as packed:
        packed.extractall(root, filter="data")
    with closing(sqlite3.connect(root / ".clew" / "state.db")) as opened:
        [(run,)] = opened.execute("SELECT run_id FROM runs WHERE project_id = 'gl-close'").fetchall()
    total = ("explain", run, "--where", 'row_kind = "total" AND account_type = "expense"', "total_usd")
    return Scene(root, (total, ("show", run)))


@pytest.fixture
def attacked(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    """A scene by its name, put back after the attack."""
    scene: Scene = request.getfixturevalue(request.param)
    scene.capsys = capsys
    if not scene.database:
        scene.settle()
        scene.learn()
    yield scene
    scene.put_back()


def others(value: Any, column: str) -> list[Any]:
    """What could stand there just as well."""
    if column in {"seen_signal_seq", "projected_seq"}:
        return [value + 1000]  # they may lag behind the last event, and cannot be ahead of it
    if isinstance(value, int):
        return [value + 1]
    if value is None:
        return ["2026-01-01T00:00:00.000000Z" if column.endswith("_at") else "1"]
    if column.endswith("_at") or column == "not_before":
        return [f"{int(value[:4]) - 1}{value[4:]}"]
    if value[:1] in "{[":
        return list(dict.fromkeys(json.dumps(each) for each in edited_documents(json.loads(value))))
    same_form = {"COMPLETED": "CANCELLED", "FAILED": "COMPLETED", "READY": "DROPPED", "DROPPED": "READY"}
    roles = {"auditor": "admin", "viewer": "admin", "admin": "viewer"}
    changed = ("0" if value[:1] != "0" else "1") + value[1:]
    return [{**same_form, **roles}.get(value, changed)]


def edited_documents(document: Any) -> Iterator[Any]:
    """A document with each of its values changed in turn; of many alike, one."""
    seen = set[str]()
    for place in places(document):
        shape = "/".join("*" if isinstance(each, int) else each for each in place)
        if shape in seen:
            continue
        seen.add(shape)
        copy = json.loads(json.dumps(document))
        holder = copy
        for each in place[:-1]:
            holder = holder[each]
        old = holder[place[-1]]
        holder[place[-1]] = old + 1 if isinstance(old, int) else f"{old or ''}9"
        yield copy


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(document, dict | list):
        for name, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, (*place, name))
    elif place:
        yield place


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


EDITS: dict[str, Callable[[bytes], bytes | None]] = {"a byte": flipped, "gone": lambda _: None}
FREE_FILES = ("_SUCCESS", ".crc", "state.db", ".lock", "/log/driver.jsonl")
"""Spark leaves some beside its files, which Clew never reads; nothing rests on logs; tables have their own test."""


def managed_files(root: Path) -> list[Path]:
    """The files below the folder of a workspace that Clew manages; of files of a kind, one of each run."""
    found = dict[str, Path]()
    described = "".join(path.read_text() for path in (root / ".clew").rglob("part.json"))
    for path in sorted((root / ".clew").rglob("*")):
        # A run that failed leaves files that no description names; what no event names counts for nothing.
        is_named = path.name in described and path.relative_to(root / ".clew" / "storage").as_posix() in described
        if (
            path.is_file()
            and not str(path).endswith(FREE_FILES)
            and (is_named or path.suffix != ".parquet" or "runs" not in path.parts)
        ):
            folder = path.relative_to(root).parts[:-1]
            found.setdefault(f"{'/'.join(folder[:6])} {path.suffix}", path)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("attacked", "edit"), [("shop", "a byte"), ("shop", "gone")], indirect=["attacked"])
def test_every_managed_file_is_watched(attacked: Scene, edit: str) -> None:
    unnoticed, answered = list[str](), list[str]()
    for path in managed_files(attacked.root):
        if "plans" in path.parts and edit == "a byte":
            continue  # words for people, such as descriptions, do not count; what decides has a test in test_cli_verify
        content = path.read_bytes()
        changed = EDITS[edit](content)
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)
        # A run is shown without its plan, and says what is wrong with that.
        answered += [f"{path}: {answer}" for answer in attacked.changed_answers() if answer != "show"]
        attacked.put_back()
        unnoticed += [] if attacked.is_noticed() else [str(path.relative_to(attacked.root))]
        attacked.put_back()
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
    assert (unnoticed, answered) == ([], [])


TABLES = sorted(metadata.tables.keys() - FREE_TABLES.keys())
IN_SAMPLE = {"trace_blocks"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attacked", "table"),
    [("ledger" if table in IN_SAMPLE else "shop", table) for table in TABLES],
    indirect=["attacked"],
)
def test_every_column_of_every_table_is_watched(attacked: Scene, table: str) -> None:
    key = [column.name for column in metadata.tables[table].primary_key]
    first, *_ = attacked.rows(table, key)
    row = dict(zip(key, first, strict=True))
    named = " AND ".join(f"{name} = ?" for name in key)
    unnoticed, answered = list[str](), list[str]()
    for column in metadata.tables[table].c:
        place = f"{table}.{column.name}"
        if place in FREE_COLUMNS:
            continue
        value = attacked.value(table, column.name, row)
        new = others(value, column.name) + ([None] if column.nullable and value is not None else [])
        for each in new:
            update = (f"UPDATE {table} SET {column.name} = ? WHERE {named}", (each, *row.values()))
            if each is not None and place in NULLED_ONLY:
                continue
            if attacked.edited(update):
                answered += [f"{place}: {answer}" for answer in attacked.changed_answers()]
                attacked.put_back()
                attacked.edited(update)
                unnoticed += [] if attacked.is_noticed() else [f"{place}: {value} -> {each}"]
            attacked.put_back()
    assert (unnoticed, answered) == ([], [])
