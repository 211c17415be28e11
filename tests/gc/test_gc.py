"""What is removed when it is no longer needed, what stays, and what is recorded about it."""

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.run_view import RunReader
from clew.cli.main import run as command
from clew.definitions import capture_wishes_of_data
from clew.events.bodies import RunStarted
from clew.events.envelope import NewEvent
from clew.events.snapshot import RunStatus
from clew.gc.garbage import Garbage, GarbageCollector, Retention
from clew.gc.run_removal import remove_run
from clew.storage.local import LocalStorage
from clew.storage.removals import Collectable, Journal, Removable, RemovalRecord
from clew.storage.roots import storage_at
from clew.trace.run_trace import open_trace
from clew.tracelink import TraceBatch
from tests.engine.engine_workspaces import Shop
from tests.trace.interpreted_shop import interpreted_shop, setting, step

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return interpreted_shop(tmp_path, monkeypatch)


@contextmanager
def collector(shop: Shop, days_later: int = 0, others: Sequence[Collectable] = ()) -> Iterator[GarbageCollector]:
    with shop.starter() as starter:
        yield GarbageCollector(
            starter.files,
            starter.environment,
            starter.state,
            others=others,
            clock=lambda: datetime.now(UTC) + timedelta(days=days_later),
        )


def collected(shop: Shop, retention: Retention, days_later: int = 1) -> Garbage:
    with collector(shop, days_later) as at_work:
        return at_work.collect(retention)


def names(garbage: Garbage, kind: str) -> list[str]:
    return [thing.name for thing in garbage.things if thing.kind == kind]


def run_id(shop: Shop, project: str, period: str = "2026-01") -> str:
    view = shop.run(project, period)
    assert view.snapshot.status is RunStatus.COMPLETED, view.failure
    return view.record.run_id


def readable(shop: Shop, run: str) -> bool:
    with shop.starter() as starter:
        view = RunReader(starter.state, starter.environment).view(run)
        trace = open_trace(view, starter.environment)
    trace.verify()
    return len(trace.search(None).rows) > 0


def folders(shop: Shop, below: str) -> set[str]:
    folder = shop.storage / below
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.slow
def test_runs_go_with_their_files_and_what_they_alone_registered(shop: Shop) -> None:
    """January is closed twice: the first version is not needed once its run is deleted."""
    first, second = run_id(shop, "close"), run_id(shop, "close")
    garbage = collected(shop, Retention(runs=1))
    assert names(garbage, "run") == [first]
    assert names(garbage, "dataset-version") == ["closed@1"]
    assert garbage.size > 0
    assert folders(shop, "runs") == {second}
    assert folders(shop, "datasets/closed") == {f"{second}-30"}
    with shop.starter() as starter:
        assert [version.version for version in starter.state.datasets.versions("closed")] == [2]
    assert readable(shop, second)
    third = run_id(shop, "close")
    with shop.starter() as starter:
        assert [version.version for version in starter.state.datasets.versions("closed")] == [3, 2]
    assert collected(shop, Retention(runs=1)).things != ()
    assert folders(shop, "runs") == {third}


@pytest.mark.slow
def test_a_version_that_a_kept_run_has_read_stays_and_so_does_the_run_it_comes_from(shop: Shop) -> None:
    first = run_id(shop, "close")
    report = run_id(shop, "report")
    second = run_id(shop, "close")
    garbage = collected(shop, Retention(runs=1))
    assert garbage.things == ()
    assert [(run.run_id, run.reason) for run in garbage.kept] == [(first, "dataset closed v1 has rows of it")]
    assert all(readable(shop, run) for run in (first, second, report))
    with shop.starter() as starter:
        remove_run(starter.files, starter.environment, starter.state, report, force=False, reason="")
    garbage = collected(shop, Retention(runs=1))
    assert names(garbage, "run") == [first]
    assert names(garbage, "dataset-version") == ["closed@1"]


def test_other_periods_of_the_newest_version_keep_their_runs(shop: Shop) -> None:
    january, february = run_id(shop, "close", "2026-01"), run_id(shop, "close", "2026-02")
    garbage = collected(shop, Retention(runs=0))
    assert garbage.things == ()
    assert {run.run_id for run in garbage.kept} == {january, february}
    assert all(readable(shop, run) for run in (january, february))


@pytest.mark.slow
def test_a_version_that_a_project_asks_for_by_number_stays(shop: Shop) -> None:
    first, _ = run_id(shop, "close"), run_id(shop, "close")
    shop.project("old", dataset={"dataset_id": "closed", "dataset_version": 1})
    assert collected(shop, Retention(runs=1)).things == ()
    (shop.root / "projects/old.yaml").unlink()
    assert names(collected(shop, Retention(runs=1)), "run") == [first]


def test_where_a_project_cannot_be_read_no_version_is_removed(shop: Shop) -> None:
    run_id(shop, "close"), run_id(shop, "close")
    shop.write({"projects/broken.yaml": "input_dataset: [nothing\n"})
    assert collected(shop, Retention(runs=1)).things == ()


def test_a_run_whose_files_are_damaged_needs_every_version_and_stops_nobody(shop: Shop) -> None:
    first, second = run_id(shop, "close"), run_id(shop, "close")
    report = run_id(shop, "report")
    [described] = (shop.storage / "runs" / report / "input" / "closed").glob("*/part.json")
    described.write_text("{", encoding="utf-8")
    for plan in (shop.storage / "plans").iterdir():
        plan.unlink()
    kept = collected(shop, Retention(runs=1))
    assert kept.things == ()
    assert [run.run_id for run in kept.kept] == [first]
    gone = collected(shop, Retention(runs=0))
    assert sorted(names(gone, "run")) == sorted([first, report])
    assert [run.run_id for run in gone.kept] == [second]


def test_age_counts_from_the_end_of_a_run(shop: Shop) -> None:
    run_id(shop, "close")
    report = run_id(shop, "report")
    assert collected(shop, Retention(days=30), days_later=29).things == ()
    assert names(collected(shop, Retention(days=30), days_later=31), "run") == [report]


def test_without_rules_no_run_goes(shop: Shop) -> None:
    run_id(shop, "close"), run_id(shop, "close")
    assert collected(shop, Retention(), days_later=1000).things == ()


def test_a_run_that_goes_on_is_left_alone_with_everything_below_it(shop: Shop) -> None:
    run_id(shop, "close")
    waiting = shop.submit("report")
    half = shop.storage / "runs" / waiting / "changes" / "10-20.staging"
    half.mkdir(parents=True)
    assert names(collected(shop, Retention(runs=0, days=0)), "run") == []
    assert half.is_dir()


def test_a_run_that_has_not_pinned_its_inputs_yet_may_read_any_version(shop: Shop) -> None:
    """No event names what it reads before all of it is pinned."""
    run_id(shop, "close")
    run_id(shop, "close")
    reading = shop.submit("report")
    with shop.starter() as starter:
        stores = starter.state.stores
        claim = stores.leases.acquire(reading, owner="a worker", ttl_s=60.0)
        assert claim is not None
        begun = NewEvent(RunStarted(()), emitted_at=NOW)
        stores.writer.append(reading, [begun], token=claim.lease.token)
    assert collected(shop, Retention(runs=1)).things == ()


def test_a_run_stays_as_long_as_a_capture_has_still_to_read_it(shop: Shop) -> None:
    """What follows the run has not been done yet: the capture waits for its rows."""
    shop.project("watched", {**step(10, "Copy", "update", assignments=setting(copy="amount")), "assign": "copied"})
    with shop.starter() as starter:
        wished = starter.submit("watched", "2026-01", None, capture_wishes_of_data("copied", "captures")).run_id
    shop.drive(wished)
    run = run_id(shop, "watched")
    garbage = collected(shop, Retention(runs=0))
    assert names(garbage, "run") == [run]
    assert [(each.run_id, each.reason) for each in garbage.kept] == [(wished, "a capture of it is not finished")]
    assert readable(shop, wished)


# What dead workers leave


def left_behind(shop: Shop, *places: str) -> None:
    for place in places:
        folder = shop.storage / place
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(b"x" * 10)
        os.utime(folder / "part-0.parquet", (0, 0))


def test_what_no_event_and_no_version_names_goes(shop: Shop) -> None:
    run = run_id(shop, "close")
    places = (
        f"runs/{run}/changes/10-20.staging",
        f"runs/{run}/created/99",
        f"runs/{run}/quarantine/orders",
        f"datasets/closed/{run}-31",
        f"datasets/closed/{run}-30.staging",
    )
    left_behind(shop, *places)
    garbage = collected(shop, Retention())
    assert sorted(names(garbage, "leftover")) == sorted(places)
    assert [thing.size for thing in garbage.things] == [10] * len(places)
    assert not any((shop.storage / place).exists() for place in places)
    assert readable(shop, run)


def test_what_was_written_a_moment_ago_is_let_alone(shop: Shop) -> None:
    run = run_id(shop, "close")
    left_behind(shop, f"runs/{run}/changes/10-20.staging")
    assert collected(shop, Retention(), days_later=0).things == ()


def test_files_of_runs_that_this_store_does_not_know_are_nobodys_business(shop: Shop) -> None:
    """Another environment with another store may share the storage root."""
    run_id(shop, "close")
    stranger = "11111111-2222-3333-4444-555555555555"
    left_behind(shop, f"runs/{stranger}/changes/10-20", f"datasets/closed/{stranger}-30")
    assert collected(shop, Retention(runs=0)).things == ()
    assert (shop.storage / "runs" / stranger).is_dir()


@pytest.mark.slow
def test_a_removal_that_was_interrupted_is_finished_by_the_next_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = run_id(shop, "close"), run_id(shop, "close")
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "remove", lambda *_args: None)
        assert names(collected(shop, Retention(runs=1)), "run") == [first]
    assert folders(shop, "runs") == {first, second}
    again = collected(shop, Retention(runs=1))
    assert sorted(names(again, "leftover")) == [f"datasets/closed/{first}-30", f"runs/{first}"]
    assert folders(shop, "runs") == {second}
    assert folders(shop, "datasets/closed") == {f"{second}-30"}


@pytest.mark.slow
def test_a_removal_that_ended_before_it_was_on_record_is_finished_too(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = run_id(shop, "close"), run_id(shop, "close")

    class Died(BaseException):
        pass

    def die(*_args: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", die)
        with pytest.raises(Died):
            collected(shop, Retention(runs=1))
    assert folders(shop, "runs") == {first, second}
    again = collected(shop, Retention(runs=1))
    assert f"runs/{first}" in names(again, "leftover")
    assert folders(shop, "runs") == {second}


# What others bring in


class Captures:
    """Captures that expire, as their package will bring them in."""

    kind = "capture"

    def __init__(self) -> None:
        self.there = {"c-1": "r-1", "c-2": "r-2"}
        self.asked = list[Collection[str]]()

    def expired(self, now: datetime, without_runs: Collection[str]) -> list[Removable]:
        self.asked.append(without_runs)
        return [Removable("capture", name, "it has expired", 7) for name in self.there if name == "c-1"]

    def remove(self, thing: Removable) -> None:
        self.there.pop(thing.name, None)


def test_captures_that_expire_go_through_the_same_door(shop: Shop) -> None:
    first, _ = run_id(shop, "close"), run_id(shop, "close")
    captures = Captures()
    with collector(shop, 1, [captures]) as at_work:
        found = at_work.find(Retention(runs=1))
        assert names(found, "capture") == ["c-1"]
        assert len(captures.there) == 2
        assert names(at_work.collect(Retention(runs=1)), "capture") == ["c-1"]
    assert set(captures.there) == {"c-2"}
    assert captures.asked == [{first}, {first}]
    assert Journal(shop.storage_root).records("dev")[0].thing.kind == "capture"


# The command


@pytest.fixture
def answer(shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(shop.root)

    def call(*arguments: str, code: int = 0) -> Any:
        assert command(list(arguments)) == code
        out = capsys.readouterr()
        return json.loads(out.out) if "--json" in arguments else out.out + out.err

    return call


def test_a_dry_run_says_what_would_go_and_removes_nothing(shop: Shop, answer: Callable[..., Any]) -> None:
    first, second = run_id(shop, "close"), run_id(shop, "close")
    would = answer("gc", "--keep", "1", "--dry-run", "--json")
    assert would["dry_run"] is True
    assert [(each["kind"], each["name"]) for each in would["removed"]] == [
        ("run", first),
        ("dataset-version", "closed@1"),
    ]
    assert would["keep"] == {"days": None, "runs": 1}
    text = answer("gc", "--keep", "1", "--dry-run")
    assert first[:8] in text
    assert "2 items would be deleted" in text
    assert folders(shop, "runs") == {first, second}
    assert answer("gc", "--history") == "nothing has been deleted yet\n"


@pytest.mark.slow
def test_what_was_removed_is_on_record_with_who_when_and_why(shop: Shop, answer: Callable[..., Any]) -> None:
    first, second = run_id(shop, "close"), run_id(shop, "close")
    done = answer("gc", "--keep", "1", "--keep", "0d", "--json")
    assert done["freed_bytes"] > 0
    answer("rm", second, "--force", "--reason", "a test")
    removals = answer("gc", "--history", "--json")["removals"]
    assert [(each["kind"], each["name"]) for each in removals] == [
        ("run", second),
        ("dataset-version", "closed@1"),
        ("run", first),
    ]
    assert removals[0]["reason"] == "a test"
    assert {each["environment"] for each in removals} == {"dev"}
    assert datetime.fromisoformat(removals[0]["at"]).tzinfo is not None
    assert second[:8] in answer("gc", "--history")
    assert answer("gc") == "0 items deleted, 0 bytes\n"


@pytest.mark.slow
def test_python_collects_too(shop: Shop) -> None:
    first, _ = run_id(shop, "close"), run_id(shop, "close")
    workspace = clew.open(shop.root)
    assert names(workspace.gc(keep_runs=1, dry_run=True), "run") == [first]
    assert names(workspace.gc(keep_runs=1), "run") == [first]
    assert workspace.gc(keep_days=0, keep_runs=1).things == ()


def test_an_environment_has_rules_of_its_own_which_a_command_overrides(shop: Shop, answer: Callable[..., Any]) -> None:
    first, _ = run_id(shop, "close"), run_id(shop, "close")
    settings = {"name": "shop", "environments": {"dev": {"retention": {"keep_runs": 1}}}}
    shop.write({"clew.yaml": settings})
    told = answer("gc", "--dry-run", "--json")
    assert told["keep"] == {"days": None, "runs": 1}
    assert [each["name"] for each in told["removed"]] == [first, "closed@1"]
    assert answer("gc", "--dry-run", "--keep", "2", "--json")["removed"] == []
    assert names(clew.open(shop.root).gc(dry_run=True), "run") == [first]
    assert clew.open(shop.root).gc(keep_days=1, dry_run=True).things == ()


def test_a_rule_that_is_wrong_is_wrong_usage(answer: Callable[..., Any]) -> None:
    assert "WrongUsage" in answer("gc", "--keep", "soon", code=2)
    for rule in ("30", "soon", "-1d"):
        assert "WrongUsage" in answer("gc", f"--keep-lineage={rule}", code=2)


def test_lineage_that_programs_have_sent_goes_when_it_is_old_and_that_is_on_record(
    shop: Shop, answer: Callable[..., Any]
) -> None:
    now = datetime.now(UTC)
    ids = [int((now - timedelta(days=days)).timestamp() * 1000) << 22 for days in (40, 20)]
    frames = [(1, 1, seq, 1, (trace_id >> 22) * 1_000_000, trace_id, 0) for seq, trace_id in enumerate(ids)]
    with shop.starter() as starter:
        starter.state.tracelink.writer.write(TraceBatch(frames=frames, links=[(each, 5) for each in ids]))
    assert answer("gc", "--json")["removed"] == []
    found = answer("gc", "--keep-lineage", "30d", "--dry-run", "--json")["removed"]
    day = f"{now - timedelta(days=30):%Y-%m-%d}"
    assert [(each["kind"], each["name"], each["reason"][: len("1 from before ") + 10]) for each in found] == [
        ("lineage", "frames", f"1 from before {day}"),
        ("lineage", "links", f"1 from before {day}"),
    ]
    shop.write({"clew.yaml": {"name": "shop", "environments": {"dev": {"retention": {"keep_lineage_days": 30}}}}})
    assert answer("gc").count("1 from before") == 2
    assert [each["name"] for each in answer("gc", "--history", "--json")["removals"]] == ["links", "frames"]
    assert answer("gc") == "0 items deleted, 0 bytes\n"
    assert [thing.name for thing in clew.open(shop.root).gc(keep_lineage_days=10).things] == ["frames", "links"]
    with shop.starter() as starter:
        assert list(starter.state.tracelink.reader.frames(ids)) == []


# The journal


def test_a_line_that_was_cut_short_does_not_hide_the_others(tmp_path: Path) -> None:
    journal = Journal(storage_at(tmp_path / "storage"))
    record = RemovalRecord(NOW, "ada", "dev", Removable("run", "r-1", "old", 5))
    journal.add(record)
    with (tmp_path / "storage" / "removals.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"at": "2026-03-31T12:0')
    assert journal.records("dev") == [record]
    assert journal.records("prod") == []
    assert journal.removed_runs() == {"r-1"}
