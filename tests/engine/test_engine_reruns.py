"""Reruns on Spark: what is taken over, that the result is that of a full run, and that either run may go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.runs.clock import utc_now
from tests.change.rerun_shops import (
    ORDERS,
    answers,
    completed,
    edited,
    found,
    full,
    operation,
    output,
    reasons,
    require_whole,
    rerun,
    rerun_shop,
    rows_of,
    setting,
    six_steps,
    taken,
)
from tests.engine.engine_workspaces import Shop

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return rerun_shop(tmp_path)


def with_last_changed() -> list[dict[str, Any]]:
    steps = six_steps()
    steps[4]["arguments"]["assignments"][0]["expression"] = "net * COALESCE(r.rate, 1) + 5"
    return steps


def files_of(shop: Shop, run: Run) -> set[str]:
    """The rows that lie in the folder of a run, by kind and name of their part."""
    folder = shop.storage / "runs" / run.id
    return {"/".join(path.relative_to(folder).parts[:2]) for path in folder.rglob("*.parquet")}


def jobs_of(spark: SparkSession, action: Callable[[], Run]) -> tuple[Run, int]:
    """How many jobs Spark has started for a run."""
    run = action()
    tracker = spark.sparkContext.statusTracker()
    return run, len(tracker.getJobIdsForGroup(f"clew-{run.id}"))


def same_as_a_full_run(shop: Shop, run: Run) -> Run:
    rows, told = rows_of(shop, run), answers(run)
    whole = full(shop)
    assert rows == rows_of(shop, whole)
    assert told == answers(whole)
    require_whole(found(shop, run))
    return whole


def test_a_change_of_the_last_operation_keeps_all_that_comes_before_it(shop: Shop) -> None:
    first = full(shop)
    edited(shop, with_last_changed())
    again = rerun(shop, first)
    assert taken(again) == [10, 20, 30, 40]
    assert reasons(again) == {50: "the operation was changed"}
    assert files_of(shop, again) == {"changes/50-50"}
    same_as_a_full_run(shop, again)
    require_whole(found(shop, first))


@pytest.mark.classic
def test_what_is_taken_over_costs_no_jobs(shop: Shop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are written by Spark, not brought here."""
    monkeypatch.setattr("clew.engine.parts.FEW_ROWS", 3)
    monkeypatch.setattr("clew.engine.step_groups.FEW_ROWS", 3)
    first, jobs = jobs_of(spark, lambda: full(shop))
    edited(shop, with_last_changed())
    again, fewer = jobs_of(spark, lambda: rerun(shop, first))
    nothing, fewest = jobs_of(spark, lambda: rerun(shop, again))
    assert 0 < fewest < fewer < jobs
    assert files_of(shop, first) == {"input/orders", "input/rates", "changes/10-20", "created/30", "changes/40-50"}
    assert files_of(shop, again) == {"changes/50-50"}
    assert (taken(nothing), reasons(nothing), files_of(shop, nothing)) == ([10, 20, 30, 40, 50], {}, set())
    same_as_a_full_run(shop, nothing)


def test_inputs_are_those_of_the_earlier_run_unless_sources_are_looked_at_again(shop: Shop) -> None:
    first = full(shop)
    before = rows_of(shop, first)
    shop.write({"data/orders.csv": ORDERS + "31,EUR,7.00,2026-01\n"})
    kept = rerun(shop, first)
    assert (rows_of(shop, kept), taken(kept)) == (before, [10, 20, 30, 40, 50])
    again = rerun(shop, kept, changed_inputs=True)
    assert taken(again) == []
    assert reasons(again)[0] == "orders: orders.csv was changed"
    assert reasons(again)[10] == "the rows of orders were read again"
    assert reasons(again)[50] == "the rows of orders were read again"
    assert files_of(shop, again) == {"input/orders", "changes/10-20", "created/30", "changes/40-50"}
    same_as_a_full_run(shop, again)


def test_a_run_as_of_a_time_has_what_was_read_by_then_and_publishes_nothing(shop: Shop) -> None:
    edited(shop, six_steps(), status="active")
    first = full(shop)
    before, between = rows_of(shop, first), utc_now()
    shop.write({"data/rates.csv": "currency,rate,_period_from,_period_to\nEUR,7.0000,2025-01-01,\n"})
    second = full(shop)
    now = rows_of(shop, second)
    then = completed(Workspace(shop.root).run("six", "2026-01", as_of=between))
    assert (rows_of(shop, then), taken(then)) == (before, [10, 20, 30, 40, 50])
    assert rows_of(shop, second) == now != before
    assert then.record.request.rerun is not None
    assert then.record.request.rerun.of == first.id
    require_whole(found(shop, then))


def test_a_step_that_looks_up_changed_rows_is_computed_and_those_before_it_are_not(shop: Shop) -> None:
    first = full(shop)
    shop.write({"data/rates.csv": "currency,rate,_period_from,_period_to\nEUR,7.0000,2025-01-01,\n"})
    again = rerun(shop, first, changed_inputs=True)
    assert taken(again) == [10, 20, 30, 40]
    assert reasons(again) == {0: "rates: rates.csv was changed", 50: "the rows of rates were read again"}
    whole = same_as_a_full_run(shop, again)
    assert taken(rerun(shop, whole, changed_inputs=True)) == [10, 20, 30, 40, 50]


def test_rows_that_are_appended_need_nothing_of_the_steps_before(shop: Shop) -> None:
    """And an output between two steps that one part has cuts that part in two."""
    steps = six_steps()
    steps.insert(
        4,
        operation(45, "append", source={"dataset_id": "targets"}),
    )
    steps[0]["arguments"]["assignments"] += setting(goal="0")
    first = full(edited(shop, steps))
    steps[0]["arguments"]["assignments"][0]["expression"] = "amount * 3"
    steps.insert(6, output(55, "between/{period}", columns=["id", "local"]))
    again = rerun(edited(shop, steps), first)
    assert taken(again) == [45]
    same_as_a_full_run(shop, again)
    steps[0]["arguments"]["assignments"][0]["expression"] = "amount * 2"
    steps.insert(1, output(15, "early/{period}", columns=["id", "net"]))
    last = rerun(edited(shop, steps), first)
    assert taken(last) == [10, 20, 30, 40, 45, 50]
    assert sorted(path.name for path in (shop.storage / "runs" / last.id / "changes").iterdir()) == [
        "10-10",
        "20-20",
        "40-40",
        "50-50",
    ]
    same_as_a_full_run(shop, last)


def test_either_run_may_be_deleted(shop: Shop) -> None:
    first = full(shop)
    edited(shop, with_last_changed())
    again = rerun(shop, first)
    third = rerun(shop, again)
    told = answers(third)
    found(shop, again).remove()
    require_whole(found(shop, first))
    require_whole(found(shop, third))
    found(shop, first).remove()
    assert files_of(shop, first) == {"input/orders", "input/rates", "changes/10-20", "created/30", "changes/40-50"}
    last = found(shop, third)
    require_whole(last)
    assert answers(last) == told
    assert Workspace(shop.root).verify(deep=True).findings == ()
    assert Workspace(shop.root).gc(keep_runs=5).things == ()
    assert answers(found(shop, third)) == told
    last.remove()
    Workspace(shop.root).gc(keep_runs=5)
    assert not (shop.storage / "runs").exists()


def test_lineage_finds_rows_that_were_taken_over(shop: Shop) -> None:
    first = full(shop)
    again = rerun(shop, first)
    workspace = Workspace(shop.root)
    trace = again.open_trace()
    row = trace.search('currency = "GBP" AND id IS NULL', limit=1).rows[0]
    trace_id = trace.history(row.row_id).trace_id
    loaded = trace.search("id = 4", limit=1).rows[0]
    trace.close()
    assert trace_id is not None
    parents = {place.run_id for found_at in workspace.lineage(trace_id).places.values() for place in found_at}
    assert parents == {first.id}
    found(shop, first).remove()
    places = [place for found_at in workspace.lineage(trace_id).places.values() for place in found_at]
    assert {place.run_id for place in places} == {again.id}
    assert loaded.row_id not in {place.row_id for place in places}
    assert len([place for place in places if place.operation_seq == 0]) == 10


def test_a_run_is_not_deleted_while_a_rerun_may_take_over_more(shop: Shop) -> None:
    first = full(shop)
    waiting = first.submit_rerun()
    with pytest.raises(UserError) as refused:
        found(shop, first).remove(force=True)
    assert refused.value.code == "RunRepeated"
    assert [each.run_id for each in Workspace(shop.root).gc(keep_runs=0).kept] == [first.id]
    waiting.drive()
    found(shop, first).remove()
    require_whole(found(shop, waiting))


def test_files_that_are_not_what_was_written_are_not_taken_over(shop: Shop) -> None:
    first = full(shop)
    [file] = (shop.storage / "runs" / first.id / "created").rglob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    again = rerun(shop, first)
    assert taken(again) == [10, 20]
    assert "not what was written" in reasons(again)[30]
    same_as_a_full_run(shop, again)
    [file] = (shop.storage / "runs" / first.id / "input" / "orders").rglob("*.parquet")
    file.unlink()
    failed = found(shop, first).rerun()
    assert failed.error is not None
    assert failed.error.code == "DamagedTrace"


def test_what_depends_on_the_run_itself_is_computed(shop: Shop) -> None:
    steps = six_steps()
    steps[3]["selector"] = 'id = 3 OR _row_id = "x"'
    first = full(edited(shop, steps))
    again = rerun(shop, first)
    assert (taken(again), reasons(again)[40]) == ([10, 20, 30], "it looks at row ids, which each run has of its own")
    same_as_a_full_run(shop, again)


def test_a_run_that_failed_gives_what_it_had_done(shop: Shop) -> None:
    steps = six_steps()
    steps[4]["arguments"]["assignments"][0]["expression"] = "TO_INTEGER(kind)"
    broken = Workspace(edited(shop, steps).root).run("six", "2026-01")
    assert broken.status == "FAILED"
    edited(shop, six_steps())
    again = rerun(shop, broken)
    assert taken(again) == [10, 20, 30, 40]
    assert reasons(again)[50] == "the operation was changed"
    same_as_a_full_run(shop, again)


def test_checks_keep_their_answers_and_new_ones_are_asked(shop: Shop) -> None:
    check = {"name": "kind is there", "not_null": "kind", "where": "id IS NOT NULL", "at": 20}
    first = full(edited(shop, six_steps(), checks=[check]))
    again = rerun(shop, first)
    assert taken(again) == [10, 20, 30, 40, 50]
    same_as_a_full_run(shop, again)
    more = [check, {"name": "few", "expression": "net < 1000000", "at": 40}]
    last = rerun(edited(shop, six_steps(), checks=more), first)
    assert (taken(last), reasons(last)[40]) == ([10, 20, 30], "its checks were changed")
    same_as_a_full_run(shop, last)


def test_only_runs_that_have_ended_are_repeated(shop: Shop) -> None:
    waiting = Workspace(shop.root).submit("six", "2026-01")
    with pytest.raises(UserError) as refused:
        waiting.submit_rerun()
    assert refused.value.code == "NotRerunnable"
    waiting.drive()
    completed(waiting.refreshed())
