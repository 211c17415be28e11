"""`clew verify` notices whatever was edited behind Clew's back, in the database or in files.

The attacker may write to the database and to every managed file, removes the guards of tables first, and keeps
everything consistent that can be recomputed without the key.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clew
from clew.api.checkpoints import keep_checkpoints
from clew.auth.access_log import Subject
from clew.captures.queue import CaptureOutcome, CaptureRecord, CaptureStatus
from clew.cli.main import run as command
from clew.events.chain import SealKey
from tests.captures.captured_files import captured
from tests.trace.interpreted_shop import Ran, ran_shop


@dataclass(frozen=True)
class Site:
    """A copy of the shop for one attack."""

    root: Path
    ran: Ran

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.root / ".clew" / "state.db")) as database:
            guards = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for (guard,) in guards:
                database.execute(f"DROP TRIGGER {guard}")
            for statement in statements:
                changed = database.execute(statement).rowcount
                assert changed != 0, statement
            database.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.root / ".clew" / "state.db")) as database:
            return database.execute(query).fetchall()

    @property
    def run_folder(self) -> Path:
        return self.root / ".clew" / "storage" / "runs" / self.ran.january


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ran.shop.root)
            assert command(["activate", "close"]) == 0
            assert command(["token", "create", "Ada", "--role", "auditor"]) == 0
        yield ran


@pytest.fixture
def site(ran: Ran, tmp_path: Path) -> Site:
    shutil.copytree(ran.shop.root, tmp_path / "shop")
    return Site(tmp_path / "shop", ran)


@dataclass(frozen=True)
class Answer:
    code: int
    json: Any


@pytest.fixture
def verify(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    def call(*arguments: str) -> Answer:
        monkeypatch.chdir(site.root)
        code = command(["verify", *arguments, "--json"])
        return Answer(code, json.loads(capsys.readouterr().out))

    return call


@pytest.mark.slow
def test_what_nobody_touched_is_intact(site: Site, verify: Callable[..., Answer]) -> None:
    everything = verify("--all")
    assert (everything.code, everything.json["findings"]) == (0, [])
    checked = everything.json["checked"]
    assert (checked["runs"], checked["checkpoints"]) == (4, 4)
    assert min(checked[kind] for kind in ("entries", "events", "parts", "files", "bytes", "records")) > 0
    one = verify(site.ran.january)
    assert (one.code, one.json["findings"], one.json["checked"]["runs"]) == (0, [], 1)


EDITS = {
    "an event": "UPDATE run_events SET event_data = json_set(event_data, '$.more', 1) WHERE run_seq = 3",
    "the time of an event": "UPDATE run_events SET persisted_at = '2020-01-01T00:00:00.000000Z' WHERE run_seq = 2",
    "all hashes of events": "UPDATE run_events SET hash = NULL, previous_hash = NULL",
    "an event that is gone": "DELETE FROM run_events WHERE run_seq = 4",
    "the status of a run": "UPDATE runs SET status = 'COMPLETED' WHERE status = 'FAILED'",
    "who asked for a run": "UPDATE runs SET requested_by = 'mallory'",
    "the period of a run": "UPDATE runs SET period = '2027-01' WHERE period = '2026-01'",
    "the role of a token": "UPDATE api_tokens SET role = 'admin'",
    "a token that is gone": "DELETE FROM api_tokens",
    "the rows of a dataset version": "UPDATE dataset_versions SET files = replace(files, '\"rows\":', '\"rows\":1')",
    "the plan of a project version": "UPDATE project_versions SET plan = replace(plan, 'ROUND', 'FLOOR')",
    "an entry of the ledger": "UPDATE ledger SET recorded_at = '2020-01-01T00:00:00.000000Z' WHERE seq = 3",
    "an entry that is gone": "DELETE FROM ledger WHERE seq = 3",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_database_is_noticed(site: Site, verify: Callable[..., Answer], edit: str) -> None:
    site.sql(EDITS[edit])
    found = verify("--all")
    assert found.code == 1
    assert found.json["findings"]


def test_a_saved_state_that_events_do_not_tell_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    site.sql("UPDATE snapshots SET document = json_set(document, '$.status', 'COMPLETED')")
    found = verify(site.ran.failed)
    assert [each["problem"] for each in found.json["findings"]] == ["its saved state is not what its events say"]
    site.sql("UPDATE snapshots SET document = json_set(document, '$.status', 'CLOSED')")
    found = verify(site.ran.failed)
    assert [each["problem"].split(":")[0] for each in found.json["findings"]] == ["its saved state cannot be read"]


def test_a_history_sealed_with_another_key_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    forged = SealKey(b"a key that the attacker has made").seal("anything")
    site.sql(f"UPDATE run_events SET hash = '{forged}' WHERE run_seq = 1")
    assert verify(site.ran.january).code == 1


def test_a_run_that_was_removed_without_a_trace_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    tables = ("run_events", "snapshots", "runs")
    site.sql(*(f"DELETE FROM {table} WHERE run_id = '{site.ran.february}'" for table in tables))
    problems = {each["subject"]: each["problem"] for each in verify("--all").json["findings"]}
    assert problems[f"run {site.ran.february}"] == "it is gone, and nothing says that it was deleted"


def test_a_shortened_ledger_is_noticed_by_its_checkpoints(site: Site, verify: Callable[..., Answer]) -> None:
    (ended,) = site.rows(f"SELECT seq FROM ledger WHERE kind = 'run.created' AND subject_id = '{site.ran.failed}'")
    tables = ("run_events", "snapshots", "runs")
    site.sql(
        *(f"DELETE FROM {table} WHERE run_id = '{site.ran.failed}'" for table in tables),
        "DELETE FROM api_tokens",
        f"DELETE FROM ledger WHERE seq >= {ended[0]}",
    )
    findings = verify("--all").json["findings"]
    assert {each["subject"] for each in findings} <= {"checkpoints", "record of the access log"}
    assert "the ledger was shortened" in next(each for each in findings if each["subject"] == "checkpoints")["problem"]


def test_a_checkpoint_that_was_edited_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    path = site.root / ".clew" / "checkpoints" / "dev.jsonl"
    path.write_text(path.read_text().replace('"seq":', '"seq":1', 1))
    assert [each["subject"] for each in verify("--all").json["findings"]] == ["checkpoints"]


def test_rows_that_were_changed_with_their_description_and_event_are_noticed(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    """All that can be computed without the key is made consistent: file, description, event, record of the run."""
    [description] = site.run_folder.glob("input/orders/*/part.json")
    part = json.loads(description.read_text())
    entry = part["files"][0]
    path = site.root / ".clew" / "storage" / entry["path"]
    rows = pq.read_table(path)
    changed = rows.set_column(
        rows.schema.get_field_index("amount"),
        rows.schema.field("amount"),
        pa.array([value.as_py() + 1 for value in rows["amount"]], rows.schema.field("amount").type),
    )
    pq.write_table(changed, path)
    entry |= {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    before = hashlib.sha256(description.read_bytes()).hexdigest()
    description.write_text(json.dumps(part, sort_keys=True))
    after = hashlib.sha256(description.read_bytes()).hexdigest()
    assert verify(site.ran.january).code == 1
    site.sql(f"UPDATE run_events SET event_data = replace(event_data, '{before}', '{after}')")
    assert {each["problem"] for each in verify(site.ran.january).json["findings"]} >= {"event 4: the event was changed"}
    assert refused(site, capsys) == "ForgedHistory"


RUN = "run_id = '{run}'"
LAST = f"run_seq = (SELECT max(run_seq) FROM run_events WHERE {RUN})"
FORGERIES = {
    "an event": [f"UPDATE run_events SET event_data = json_set(event_data, '$.more', 1) WHERE run_seq = 3 AND {RUN}"],
    "all hashes of events": ["UPDATE run_events SET hash = NULL, previous_hash = NULL"],
    "the period of the run": [f"UPDATE runs SET period = '2026-02' WHERE {RUN}"],
    "another plan": [f"UPDATE runs SET plan_digest = (SELECT max(plan_digest) FROM runs WHERE NOT {RUN}) WHERE {RUN}"],
    "who asked for the run": [f"UPDATE runs SET requested_by = 'mallory' WHERE {RUN}"],
    "the saved state": [f"UPDATE snapshots SET document = json_set(document, '$.status', 'CANCELLED') WHERE {RUN}"],
    "the head and the last event": [
        f"DELETE FROM run_events WHERE {RUN} AND {LAST}",
        f"UPDATE runs SET last_seq = last_seq - 1 WHERE {RUN}",
        f"UPDATE runs SET last_hash = (SELECT hash FROM run_events WHERE {RUN} AND {LAST}) WHERE {RUN}",
        f"DELETE FROM snapshots WHERE {RUN}",
    ],
    "what the ledger says of the run": ["DELETE FROM ledger WHERE subject_id = '{run}'"],
    "entries of the ledger that are renumbered": [
        "DELETE FROM ledger WHERE subject_id = '{run}'",
        "UPDATE ledger SET seq = -(SELECT count(*) FROM ledger AS l WHERE l.seq <= ledger.seq)",
        "UPDATE ledger SET seq = -seq",
    ],
    "the whole ledger": ["DELETE FROM ledger"],
    "the whole ledger and all hashes": [
        "DELETE FROM ledger",
        "UPDATE run_events SET hash = NULL, previous_hash = NULL",
        "UPDATE runs SET last_hash = NULL",
    ],
}


def refused(site: Site, capsys: pytest.CaptureFixture[str]) -> str | None:
    """The code with which an explanation of a value of January is refused; None if it is given."""
    asked = ["explain", site.ran.january, "--where", "id = 102", "usd", "--json", "-w", str(site.root)]
    code, told = command(asked), json.loads(capsys.readouterr().out)
    return str(told["error"]["code"]) if code else None


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_history_is_refused_when_rows_are_read_and_noticed_by_verify(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str], forgery: str
) -> None:
    if forgery == "an event":
        assert refused(site, capsys) is None
    site.sql(*(statement.format(run=site.ran.january) for statement in FORGERIES[forgery]))
    assert refused(site, capsys) in {"ForgedHistory", "RunNotFinished"}
    found = verify("--all")
    assert found.code == 1
    assert found.json.get("findings") or found.json["error"]


ENDED = "(SELECT seq FROM ledger WHERE kind = 'run.ended' AND subject_id = '{run}')"
SHORTENED = {
    "the end of the run": f"DELETE FROM ledger WHERE seq = {ENDED}",
    "an entry about something else": f"DELETE FROM ledger WHERE seq = {ENDED} - 1",
    "all entries from its end on": f"DELETE FROM ledger WHERE seq >= {ENDED}",
}


@pytest.mark.parametrize("cut", SHORTENED)
def test_a_ledger_that_misses_entries_vouches_for_no_run(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str], cut: str
) -> None:
    """What is still there could tell an older story: each entry that is left is sealed as it should be."""
    site.sql(SHORTENED[cut].format(run=site.ran.january))
    assert verify(site.ran.january).code == 1
    assert refused(site, capsys) == "ForgedHistory"


def test_a_ledger_that_was_emptied_so_that_it_begins_again_vouches_for_nothing(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger that begins takes in what is there, with the right key: also what was edited before."""
    site.sql(FORGERIES["an event"][0].format(run=site.ran.january), "DELETE FROM ledger")
    assert command(["token", "create", "Bob", "--role", "viewer", "-w", str(site.root)]) == 0
    capsys.readouterr()
    assert site.rows("SELECT count(*) FROM ledger WHERE kind = 'run.adopted'") == [(4,)]
    assert refused(site, capsys) == "ForgedHistory"
    assert "checkpoints" in {each["subject"] for each in verify(site.ran.january).json["findings"]}


def test_a_signal_that_was_cut_off_from_the_end_of_a_history_is_noticed(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left holds in itself; the ledger knows that someone has asked for something."""
    (told,) = site.rows(f"SELECT last_seq, last_hash FROM runs WHERE run_id = '{site.ran.january}'")
    assert (
        command(["signal", site.ran.january, "CANCEL", "-w", str(site.root)]) == 1
    )  # it has ended: refused, on record
    capsys.readouterr()
    assert (verify(site.ran.january).code, refused(site, capsys)) == (0, None)
    site.sql(
        f"DELETE FROM run_events WHERE run_id = '{site.ran.january}' AND run_seq > {told[0]}",
        f"UPDATE runs SET last_seq = {told[0]}, projected_seq = {told[0]}, last_hash = '{told[1]}'"
        f" WHERE run_id = '{site.ran.january}'",
    )
    assert "by which it was told something, is not the one" in verify(site.ran.january).json["findings"][0]["problem"]
    assert refused(site, capsys) == "ForgedHistory"


def test_a_record_of_a_read_that_was_edited_is_not_shown(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(site, capsys) is None
    assert command(["audit", "--json", "-w", str(site.root)]) == 0
    assert json.loads(capsys.readouterr().out)["records"]
    site.sql("UPDATE access_log SET actor = 'another' WHERE entry_id = (SELECT max(entry_id) FROM access_log)")
    assert command(["audit", "--json", "-w", str(site.root)]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "ForgedRecord"


def test_a_run_whose_record_was_edited_is_not_shown(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["show", site.ran.failed, "--json", "-w", str(site.root)]) == 0
    site.sql(f"UPDATE runs SET status = 'COMPLETED' WHERE run_id = '{site.ran.failed}'")
    capsys.readouterr()
    assert command(["show", site.ran.failed, "--json", "-w", str(site.root)]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "ForgedHistory"


def test_a_state_that_is_not_what_events_tell_is_noticed_also_where_only_the_queue_looks(
    site: Site, verify: Callable[..., Answer]
) -> None:
    site.sql(f"UPDATE runs SET approval_pending = 1 WHERE {RUN}".format(run=site.ran.january))
    assert [each["problem"] for each in verify(site.ran.january).json["findings"]] == [
        "its record and its events differ in whether it waits for an approval"
    ]


UNREADABLE = {
    "a moment": "UPDATE runs SET not_before = 'soon' WHERE run_id = '{run}'",
    "an entry of the ledger": "UPDATE ledger SET content = 'nothing' WHERE seq = 3",
    "an event": "UPDATE run_events SET event_data = 'nothing' WHERE run_seq = 3 AND run_id = '{run}'",
    "a version of a dataset": "UPDATE dataset_versions SET files = 'nothing'",
    "a token": "UPDATE api_tokens SET expires_at = 'never'",
}


@pytest.mark.parametrize("edit", UNREADABLE)
def test_what_cannot_be_read_any_more_is_a_finding(site: Site, verify: Callable[..., Answer], edit: str) -> None:
    site.sql(UNREADABLE[edit].format(run=site.ran.january))
    found = verify("--all")
    assert found.code == 1
    assert any("cannot be read" in each["problem"] for each in found.json["findings"])


def test_a_record_that_says_a_run_was_deleted_is_noticed_and_so_is_another_reason(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["rm", site.ran.report, "--reason", "asked for", "-w", str(site.root)]) == 0
    capsys.readouterr()
    assert verify("--all").code == 0
    site.sql("UPDATE run_deletions SET reason = 'an accident', deleted_by = 'another'")
    site.sql(f"INSERT INTO run_deletions SELECT '{site.ran.january}', deleted_at, 'x', 'y', 3 FROM run_deletions")
    assert {each["subject"]: each["problem"] for each in verify("--all").json["findings"]} == {
        f"run {site.ran.report}": "the record of its deletion was changed",
        f"run {site.ran.january}": "a record says that it was deleted, the ledger does not",
    }


def test_a_file_of_checkpoints_that_is_gone_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    (site.root / ".clew" / "checkpoints" / "dev.jsonl").unlink()
    assert [each["subject"] for each in verify("--all").json["findings"]] == ["checkpoints"]


def test_an_edited_version_of_a_dataset_is_not_shown_and_verify_goes_on_behind_it(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    site.sql("UPDATE dataset_versions SET seq = seq + 1 WHERE version = 1")
    assert command(["datasets", "--json", "-w", str(site.root)]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "ForgedRecord"
    assert [each["subject"] for each in verify("--all").json["findings"]] == ["dataset version"]


def test_without_the_key_nothing_is_answered_since_reads_are_on_record(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.sql(FORGERIES["an event"][0].format(run=site.ran.january))
    (site.root / ".clew" / "keys" / "dev.key").unlink()
    assert refused(site, capsys) == "OtherSealKey"


def test_a_changed_file_of_a_registered_dataset_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    files = sorted((site.root / ".clew" / "storage" / "datasets" / "closed").rglob("*.parquet"))
    assert len(files) == 2
    for number, path in enumerate(files):
        content = bytearray(path.read_bytes())
        content[40] ^= 1
        path.write_bytes(content)
        named = [each for each in verify("--all").json["findings"] if path.parent.name in each["problem"]]
        assert named, number
    files[1].unlink()
    assert any(files[1].parent.name in each["problem"] for each in verify("--all").json["findings"])


def test_a_changed_file_of_a_capture_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    folder = site.root / ".clew" / "storage" / "captures" / "c2"
    made = captured(folder, {"id": "integer"}, [[1], [2]], run_id=site.ran.january).manifest
    manifest = replace(made, capture_id="c2", folder=".clew/storage/captures/c2")
    new = CaptureRecord(
        capture_id="c2",
        kind="capture",
        slot="b",
        tenant_id="default",
        run_id=site.ran.january,
        request_id="r",
        breakpoint="close::main::a",
        seq=10,
        status=CaptureStatus.READY,
        request=None,
    )
    with clew.open(site.root) as workspace, workspace._access.opened() as at:
        at.state.captures.publish(new, manifest)
    assert verify("--all").code == 0
    path = folder / manifest.files[0].path
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    [finding] = verify("--all").json["findings"]
    assert (finding["subject"], "is not what was written" in finding["problem"]) == ("capture c2", True)


def test_a_plan_that_was_edited_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    plans = list((site.root / ".clew" / "storage" / "plans").rglob("*.json"))
    for plan in plans:
        plan.write_text(plan.read_text().replace("Convert", "Konvert"))
    problems = {each["problem"] for each in verify("--all").json["findings"]}
    assert "its plan was changed" in problems


def test_a_changed_restriction_of_labels_is_noticed(site: Site, verify: Callable[..., Answer]) -> None:
    for plan in (site.root / ".clew" / "storage" / "plans").rglob("*.json"):
        text = plan.read_text()
        assert '"labels_privacy": null' in text
        plan.write_text(text.replace('"labels_privacy": null', '"labels_privacy": "personal"'))
    assert "its plan was changed" in {each["problem"] for each in verify("--all").json["findings"]}


def test_removals_are_in_the_ledger_and_its_record_cannot_be_edited(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["rm", site.ran.report, "--reason", "asked for", "-w", str(site.root)]) == 0
    assert command(["gc", "--keep", "0d", "-w", str(site.root)]) == 0
    capsys.readouterr()
    intact = verify("--all")
    assert (intact.code, intact.json["findings"]) == (0, [])
    assert intact.json["checked"]["removals"] >= 2
    [log] = (site.root / ".clew" / "storage").glob("removals*")
    text = log.read_text()
    log.write_text("".join(line for line in text.splitlines(keepends=True) if site.ran.report not in line))
    assert [each["problem"] for each in verify("--all").json["findings"]] == [
        f"{site.ran.report}: nothing says that it was deleted"
    ]
    log.write_text(text + text.splitlines()[-1].replace(site.ran.failed, site.ran.january) + "\n")
    findings = verify("--all").json["findings"]
    assert findings
    assert {each["subject"] for each in findings} == {"record of removals"}


def test_captures_are_in_the_ledger(site: Site, verify: Callable[..., Answer]) -> None:
    with clew.open(site.root) as workspace, workspace._access.opened() as at:
        new = CaptureRecord(
            capture_id="c1",
            kind="capture",
            slot="a",
            tenant_id="default",
            run_id=site.ran.january,
            request_id="r",
            breakpoint="close::main::a",
            seq=10,
            status=CaptureStatus.QUEUED,
            request=None,
        )
        at.state.captures.enlist([new])
        at.state.captures.drop("c1", CaptureOutcome(drop_reason="expired"))
    assert verify("--all").code == 0
    site.sql("UPDATE captures SET result = json_set(result, '$.drop_reason', 'budget')")
    assert [each["problem"] for each in verify("--all").json["findings"]] == ['["c1"] was changed']
    site.sql("DELETE FROM captures")
    assert [each["problem"] for each in verify("--all").json["findings"]] == ['["c1"] is gone']


def test_a_forged_file_is_refused_when_it_is_read_and_raises_an_alert(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = json.loads((site.root / "clew.yaml").read_text())
    settings["environments"]["dev"]["bus"] = [{"id": "audit", "type": "file", "path": "audit.jsonl"}]
    (site.root / "clew.yaml").write_text(json.dumps(settings))
    path = site.run_folder / "changes" / "10-20" / "part-00000.parquet"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        asked = ["explain", site.ran.january, "--where", "id = 102", "usd", "--json", "-w", str(site.root)]
        assert command(asked) != 0
        told = json.loads(capsys.readouterr().out)["error"]
        assert (told["code"], "part-00000.parquet" in told["message"]) == ("DamagedTrace", True)
    raised = site.rows("SELECT event_data FROM run_events WHERE event_type = 'AlertRaised'")
    [alert] = [json.loads(data) for (data,) in raised]
    assert (alert["alert"], alert["severity"]) == ("FILE_DAMAGED", "P1")
    assert path.name in alert["details"]["file"]
    assert site.rows("SELECT sink FROM outbox") == [("audit",)]  # the next process that delivers events sends it
    assert {each["subject"] for each in verify("--all").json["findings"]} == {f"run {site.ran.january}"}


def test_a_checkpoint_that_did_not_fit_on_the_disk_leaves_nothing_behind(
    site: Site, verify: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, write = site.root / ".clew" / "checkpoints" / "dev.jsonl", os.write
    before, waits = kept.read_bytes(), iter([False, True, False, True])

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            del timeout
            return next(waits)

    with clew.open(site.root) as workspace, workspace._access.opened() as at:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
            keep_checkpoints(at.environment, at.state.ledger, Stop())
        assert kept.read_bytes() == before
        keep_checkpoints(at.environment, at.state.ledger, Stop())
    assert len(kept.read_bytes().splitlines()) == len(before.splitlines()) + 1
    assert verify("--all").code == 0


def test_checkpoints_go_to_the_event_buses_and_are_kept_at_intervals(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.loads((site.root / "clew.yaml").read_text())
    settings["environments"]["dev"] |= {
        "bus": [
            {"id": "audit", "type": "file", "path": "audit.jsonl"},
            {"id": "some", "type": "file", "path": "some.jsonl", "events": ["RunCompleted"]},
        ]
    }
    (site.root / "clew.yaml").write_text(json.dumps(settings))
    kept = site.root / ".clew" / "checkpoints" / "dev.jsonl"
    before = kept.read_text().splitlines()
    waits = iter([False, False, True])

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout == 3600
            return next(waits)

    with clew.open(site.root) as workspace, workspace._access.opened() as at:
        keep_checkpoints(at.environment, at.state.ledger, Stop())
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join()
    [line] = kept.read_text().splitlines()[len(before) :]  # the second time there was nothing new
    [sent] = [json.loads(each) for each in (site.root / "audit.jsonl").read_text().splitlines()]
    assert (sent["type"], sent["data"]) == ("clew.ledger.checkpoint", json.loads(line))
    assert not (site.root / "some.jsonl").exists()


def test_a_checkpoint_is_not_lost_while_a_bus_is_down(site: Site) -> None:
    settings = json.loads((site.root / "clew.yaml").read_text())
    buses = [
        {"id": "down", "type": "file", "path": "away/audit.jsonl"},
        {"id": "up", "type": "file", "path": "up.jsonl"},
    ]
    settings["environments"]["dev"]["bus"] = buses
    (site.root / "clew.yaml").write_text(json.dumps(settings))
    kept = site.root / ".clew" / "checkpoints" / "dev.jsonl"
    before = len(kept.read_text().splitlines())
    away = site.root / "away"
    away.write_text("a file where the folder of the bus should be")

    def one_more() -> None:
        stops = iter([False, True])

        class Stop(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                return next(stops)

        with clew.open(site.root) as workspace, workspace._access.opened() as at:
            workspace.operations.record_access(Subject.TRACE, "x", "something new")
            keep_checkpoints(at.environment, at.state.ledger, Stop())
        for thread in threading.enumerate():
            if thread.name == "checkpoint":
                thread.join()

    one_more()
    one_more()
    new = [json.loads(line) for line in kept.read_text().splitlines()[before:]]
    assert len(new) == 2
    assert [json.loads(line)["data"] for line in (site.root / "up.jsonl").read_text().splitlines()] == new
    away.unlink()
    one_more()
    new = [json.loads(line) for line in kept.read_text().splitlines()[before:]]
    for name in ("away/audit.jsonl", "up.jsonl"):
        sent = [json.loads(line) for line in (site.root / name).read_text().splitlines()]
        assert [each["data"] for each in sent] == new, name
        assert {each["type"] for each in sent} == {"clew.ledger.checkpoint"}


def test_a_run_or_all_must_be_named(verify: Callable[..., Answer], site: Site) -> None:
    assert verify().code == 2
    assert verify(site.ran.january, "--all").code == 2


def rewritten(site: Site, description: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """The rows of a part changed, and all that can be made consistent without the key: digests up to the event."""
    part = json.loads(description.read_text())
    before = hashlib.sha256(description.read_bytes()).hexdigest()
    for entry in part["files"]:
        path = site.root / ".clew" / "storage" / entry["path"]
        rows = change(pq.read_table(path))
        pq.write_table(rows, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entry |= {"size": path.stat().st_size, "sha256": digest, "rows": rows.num_rows}
    description.write_text(json.dumps(part, sort_keys=True))
    after = hashlib.sha256(description.read_bytes()).hexdigest()
    site.sql(
        f"UPDATE run_events SET event_data = replace(event_data, '{before}', '{after}')",
        f"UPDATE snapshots SET document = replace(document, '{before}', '{after}')",
    )


def with_values(name: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    def changed(rows: pa.Table) -> pa.Table:
        field = rows.schema.field(name)
        values = pa.array([change(value.as_py()) for value in rows[name]], field.type)
        return rows.set_column(rows.schema.get_field_index(name), field, values)

    return changed


DEEP = {
    "an input": ("input/orders", with_values("amount", lambda value: value + 1), 'step 10 "Convert": usd of row'),
    "a result": ("changes/10-20", with_values("__s10_a0", lambda value: value + 1), 'step 10 "Convert": usd of row'),
    "a deletion": ("changes/10-20", with_values("__s20_m", lambda _: None), 'step 20 "Drop small": row'),
}


@pytest.mark.parametrize("edit", DEEP)
def test_a_deep_verification_evaluates_every_row_again(site: Site, verify: Callable[..., Answer], edit: str) -> None:
    """Whoever has the key can seal anything, but not make expressions give other values."""
    folder, change, problem = DEEP[edit]
    intact = verify(site.ran.january, "--deep")
    assert (intact.code, intact.json["deep"], intact.json["findings"]) == (0, True, [])
    assert (intact.json["checked"]["steps"], intact.json["checked"]["rows"]) == (3, 21)
    [description] = site.run_folder.glob(f"{folder}/*/part.json")
    rewritten(site, description, change)
    found = verify(site.ran.january, "--deep")
    assert found.code == 1
    assert any(each["problem"].startswith(problem) for each in found.json["findings"])


def test_a_total_that_does_not_add_up_is_noticed_and_every_run_is_evaluated(
    site: Site, verify: Callable[..., Answer]
) -> None:
    everything = verify("--all", "--deep")
    assert (everything.code, everything.json["findings"]) == (0, [])
    report = site.root / ".clew" / "storage" / "runs" / site.ran.report
    [description] = report.glob("created/10/*/part.json")
    rewritten(site, description, with_values("total", lambda value: value + 1))
    found = verify(site.ran.report, "--deep").json["findings"]
    assert any(
        "total of the group currency = EUR is 14.20, but evaluates to 13.20" in each["problem"] for each in found
    )


def test_verifications_are_on_record(
    site: Site, verify: Callable[..., Answer], capsys: pytest.CaptureFixture[str]
) -> None:
    def recorded(run: str) -> Any:
        assert command(["show", run, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["verification"]

    verify(site.ran.january, "--deep")
    assert recorded(site.ran.february) is None
    own = recorded(site.ran.january)
    assert (own["intact"], own["deep"], own["findings"], own["of_everything"]) == (True, True, 0, False)
    (site.run_folder / "input" / "orders" / "part-00000.parquet").unlink()
    assert verify("--all").code == 1
    assert (recorded(site.ran.january)["intact"], recorded(site.ran.february)["intact"]) == (False, True)
    assert recorded(site.ran.february)["of_everything"]
    before = site.rows("SELECT count(*) FROM ledger")
    site.sql("DELETE FROM ledger WHERE seq = 3")
    assert verify("--all").code == 1
    assert site.rows("SELECT count(*) FROM ledger") == [(before[0][0] - 1,)]  # nothing is added behind a break
