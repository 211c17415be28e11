"""Addresses of object stores and their settings, as commands take them: one clear message for what is wrong."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from clew.sample import write_sample
from clew.storage.object_store import ObjectStorage
from tests.cli.conftest import Clew
from tests.engine.engine_workspaces import Shop
from tests.storage.moved_to_s3 import moved_to_s3
from tests.storage.s3_proxy import DENIED, EXPIRED, SKEWED, Answer, Proxy
from tests.storage.s3_server import KEYS, S3Server
from tests.trace.interpreted_shop import interpreted_shop


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    write_sample(folder)
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    return folder


def configure(workspace: Path, **environments: dict[str, Any]) -> None:
    settings = yaml.safe_load((workspace / "clew.yaml").read_text())
    sinks = {"close-review": {"type": "capture_store", "path": "review"}}
    settings["environments"] = {name: {"sinks": sinks, **given} for name, given in environments.items()}
    settings["default_environment"] = next(iter(environments))
    (workspace / "clew.yaml").write_text(yaml.safe_dump(settings))


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    exit_code: int
    output: str


Ask = Callable[..., Said]


@dataclass(frozen=True)
class Moved:
    """A run whose files are in a bucket."""

    shop: Shop
    run_id: str
    root: ObjectStorage


@pytest.fixture
def ask(clew: Clew, workspace: Path) -> Ask:
    """Asks a command in the workspace. Whatever it says is free of credentials."""

    def asked(*arguments: str) -> Said:
        answer = clew(*arguments, cwd=workspace)
        said = f"{answer.out}{answer.err}"
        assert "Traceback" not in said
        assert not any(part in said for part in KEYS.split(":"))
        return Said(answer.code, said)

    return asked


def reached(endpoint: str) -> dict[str, Any]:
    return {"endpoint": endpoint, "region": "us-east-1", "credential_ref": "secret://env/LEDGER_KEYS"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"storage_root": "s4://ledger/clew"}, 'the scheme "s4", which Clew does not know'),
        ({"sandbox_root": "s3:/ledger/clew"}, "is not a valid address"),
        ({"storage_root": "s3://KEY:geheim@ledger/clew"}, "contains credentials"),
        ({"sinks": {"x": {"type": "training_log", "path": "ftp://host/x"}}}, 'the scheme "ftp"'),
        ({"bus": [{"id": "b", "type": "file", "path": "s3://ledger/events.jsonl"}]}, "cannot be in an object store"),
        ({"object_store": {"endpoint": "minio:9000"}}, '"minio:9000" is not the address of a server'),
        ({"object_store": {"endpoint": "https://me:geheim@minio"}}, "the endpoint contains credentials"),
        ({"object_store": {"credential_ref": "LEDGER_KEYS"}}, "a reference to a secret"),
        ({"storage_root": "s3://ledger/clew", "sandbox_root": "s3a://ledger/clew/sandbox"}, "inside each other"),
    ],
)
def test_check_reports_what_cannot_be_an_address(ask: Ask, workspace: Path, given: dict[str, Any], says: str) -> None:
    configure(workspace, dev=given)
    found = ask("check")
    assert found.exit_code == 1
    assert says in found.output.replace("\n  ", " ")
    assert "clew.yaml" in found.output
    # The excerpt shows the line as the file has it; the message does not repeat what may be a secret.
    assert "geheim" not in found.output.splitlines()[0]
    assert not list(workspace.glob("s3*"))


def test_check_reports_roots_inside_the_root_of_another_environment(ask: Ask, workspace: Path) -> None:
    configure(workspace, dev={"storage_root": "s3://ledger/clew"}, prod={"storage_root": "s3://ledger/clew/prod"})
    found = ask("check")
    assert found.exit_code == 1
    assert 'the storage_root of "prod" and the storage_root of "dev" are inside each other' in found.output
    configure(workspace, dev={"storage_root": "s3://ledger/clew"}, prod={"storage_root": "s3a://ledger/clew"})
    assert "inside each other" not in ask("check").output
    for inside in (f"{workspace}/managed/prod", f"file://{workspace}/managed/prod", "managed/x/../prod"):
        configure(workspace, dev={"storage_root": "managed"}, prod={"storage_root": inside})
        found = ask("check")
        assert found.exit_code == 1, inside
        assert 'the storage_root of "prod" and the storage_root of "dev" are inside each other' in found.output
    configure(workspace, dev={"storage_root": "managed"}, prod={"storage_root": f"{workspace}/managed"})
    assert "inside each other" not in ask("check").output


def test_check_reports_a_datasource_with_an_unknown_scheme(ask: Ask, workspace: Path) -> None:
    path = workspace / "datasources" / "reports.yaml"
    path.write_text(path.read_text().replace("{root: out}", '{root: "swift://box/out"}'))
    found = ask("check")
    assert found.exit_code == 1
    assert 'the scheme "swift"' in found.output
    assert "datasources/reports.yaml" in found.output


def run(ask: Ask, workspace: Path, root: str, endpoint: str, **more: Any) -> Said:
    configure(workspace, dev={"storage_root": root, "object_store": reached(endpoint) | more})
    return ask("run", "gl-close", "--period", "2026-01")


def test_a_run_says_that_its_bucket_does_not_exist(ask: Ask, workspace: Path, s3: S3Server) -> None:
    found = run(ask, workspace, "s3://no-such-bucket/clew", s3.endpoint)
    assert found.exit_code != 0
    assert "StorageUnavailable" in found.output
    assert "s3://no-such-bucket does not exist" in found.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (DENIED, "no permission in s3://"),
        (EXPIRED, "have expired"),
        (SKEWED, "the clock of this machine is off"),
    ],
    ids=lambda value: value.code if isinstance(value, Answer) else "",
)
def test_a_run_says_why_it_cannot_write_to_its_bucket(
    ask: Ask, workspace: Path, s3: S3Server, proxy: Proxy, fault: Answer, says: str
) -> None:
    bucket = s3.new_bucket()
    with proxy.failing(lambda asked: fault if asked.method != "HEAD" or fault is DENIED else None):
        found = run(ask, workspace, f"s3://{bucket}/clew", proxy.endpoint)
    assert found.exit_code != 0
    assert says in found.output
    assert not list(ObjectStorage(s3.storage().place, s3.access).files(""))


# A run that lies in a bucket


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Server, proxy: Proxy) -> Moved:
    """A shop with one run, whose files are in a bucket behind the proxy."""
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    shop = interpreted_shop(tmp_path / "shop", monkeypatch)
    run_id = shop.run("close").record.run_id
    return Moved(shop, run_id, moved_to_s3(shop, s3, proxy.endpoint))


def test_the_second_trace_of_a_row_asks_the_store_for_less(
    clew: Clew, moved: Moved, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_CACHE_DIR", str(tmp_path / "copies"))
    monkeypatch.setenv("CLEW_CACHE_MB", "16")
    answers, requests = list[str](), list[int]()
    for _ in range(2):
        with proxy.counting() as asked:
            answer = clew("trace", moved.run_id, "--where", "id = 103", cwd=moved.shop.root)
        assert answer.code == 0, answer.err
        answers.append(answer.out)
        requests.append(len(asked))
    assert answers[0] == answers[1]
    assert "Convert" in answers[0]
    assert requests[1] < requests[0] / 2, requests
    monkeypatch.setenv("CLEW_CACHE_MB", "plenty")
    refused = clew("trace", moved.run_id, "--where", "id = 103", cwd=moved.shop.root)
    assert refused.code != 0
    assert 'CLEW_CACHE_MB is "plenty"' in refused.err


def test_a_machine_that_has_only_the_bucket_and_the_state_store_explains_a_report_down_to_the_source_row(
    clew: Clew, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No definition is there: what was executed lies in the bucket."""
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    shop = interpreted_shop(tmp_path / "shop", monkeypatch)
    close, report = (shop.run(project).record.run_id for project in ("close", "report"))
    moved_to_s3(shop, s3)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(shop.root / "clew.yaml", elsewhere)
    shutil.copytree(shop.root / ".clew", elsewhere / ".clew")
    shutil.rmtree(shop.root)
    told = clew("explain", report, "--where", 'currency = "EUR" AND total > 0', "total", "--all", cwd=elsewhere)
    assert told.code == 0, told.err
    assert "recomputed: equal" in told.out
    for part in (close[:8], "ROUND(amount * r.rate, 2)", "line "):
        assert part in told.out, told.out
    assert clew("trace", close, "--where", "id = 103", cwd=elsewhere).code == 0


def test_collecting_garbage_lists_each_kind_of_thing_once(clew: Clew, moved: Moved, proxy: Proxy) -> None:
    orphans = [f"runs/{moved.run_id}/{kind}/{name}/1-0a" for kind in ("changes", "created") for name in range(6)]
    for orphan in orphans:
        moved.root.write_new(f"{orphan}/part-0.parquet", b"x")
    with proxy.counting() as asked:
        answer = clew("gc", "--dry-run", "--json", cwd=moved.shop.root)
    assert answer.code == 0, answer.err
    prefixes = [parse_qs(each.query)["prefix"][0] for each in asked if each.is_listing]
    below_runs = [prefix for prefix in prefixes if "/runs/" in prefix]
    assert len(below_runs) == 1, prefixes
    assert len([prefix for prefix in prefixes if "/datasets/" in prefix]) <= 1, prefixes


def test_a_run_whose_storage_was_emptied_is_named_in_one_message(clew: Clew, moved: Moved) -> None:
    for file in list(moved.root.files("")):
        moved.root.remove(file.key)
    for command in (("trace",), ("explain", "usd")):
        answer = clew(command[0], moved.run_id, "--where", "id = 103", *command[1:], cwd=moved.shop.root)
        assert (answer.code != 0, answer.out) == (True, "")
        assert "Traceback" not in answer.err
        assert answer.err.startswith("error UnreadablePlan: "), answer.err
        assert "is gone from the storage root" in answer.err


ASKING = {
    "verify": ("verify", "RUN"),
    "verify deep": ("verify", "RUN", "--deep"),
    "verify all": ("verify", "--all"),
    "reconcile": ("reconcile", "RUN"),
    "evidence": ("evidence", "RUN", "-o", "pack.zip"),
    "test cut": ("test", "cut", "RUN", "--where", "id = 103"),
    "rerun": ("rerun", "RUN"),
    "run": ("run", "close", "--period", "2026-02"),
    "gc": ("gc",),
    "rm": ("rm", "RUN", "--force"),
}


@pytest.mark.parametrize(
    ("fault", "says"), [(EXPIRED, "have expired"), (Answer(404, "NoSuchBucket"), "does not exist")], ids=lambda _: ""
)
def test_commands_blame_the_store_that_refuses_and_judge_nothing(
    clew: Clew, moved: Moved, proxy: Proxy, fault: Answer, says: str
) -> None:
    root = moved.shop.root
    runs = clew("runs", "--json", cwd=root).json
    for name, words in ASKING.items():
        with proxy.failing(lambda _: fault):
            answer = clew(*(moved.run_id if word == "RUN" else word for word in words), cwd=root)
        assert (answer.code, answer.out) == (1, ""), name
        assert answer.err.startswith("error StorageUnavailable: cannot use s3://"), (name, answer.err)
        assert says in answer.err, name
        assert not any(part in answer.err for part in KEYS.split(":")), name
    assert not (root / "pack.zip").exists()
    # A verification that could not read says nothing about the run, and is not on record.
    assert clew("show", moved.run_id, "--json", cwd=root).json["verification"] is None
    assert clew("runs", "--json", cwd=root).json == runs
    assert clew("verify", "--all", cwd=root).code == 0


def test_a_secret_that_holds_no_credentials_is_named_and_not_shown(
    ask: Ask, workspace: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_KEYS", "only-one-part-geheim")
    found = run(ask, workspace, f"s3://{s3.new_bucket()}/clew", s3.endpoint)
    assert found.exit_code != 0
    assert "InvalidCredentials" in found.output
    assert "secret://env/LEDGER_KEYS" in found.output
    assert "geheim" not in found.output
    monkeypatch.delenv("LEDGER_KEYS")
    assert "SecretNotFound" in ask("run", "gl-close", "--period", "2026-01").output
