"""Reruns through the run loop, without Spark: what is taken over, who keeps the files, and every door."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from tests.change.repeating_engine import RepeatingEngine
from tests.change.rerun_shops import answers, completed, reasons, require_whole, taken
from tests.engine.engine_workspaces import Shop, make_shop
from tests.tiers import examples
from tests.trace.interpreted_shop import CLOSE, ORDERS, RATE, RATES, output, setting, step

TOTAL = step(25, "Total", "aggregate", group_by=["currency"], aggregations=setting(usd="SUM(usd)"))
LAST = step(28, "Round", "update", assignments=setting(whole="ROUND(usd, 0)"))
OUT = output(30, "Publish", "closed/{period}", columns=["id", "currency", "usd", "whole"])
STEPS = [*CLOSE[:2], TOTAL, LAST, OUT]


Data = dict[str, list[dict[str, Any]]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return repeating_shop(tmp_path, monkeypatch, {"orders": list(ORDERS), "rates": list(RATES), "targets": []})


def repeating_shop(root: Path, monkeypatch: pytest.MonkeyPatch, data: Data) -> Shop:
    """A shop whose runs, and those that repeat them, need no Spark."""

    def engine(_workspace: object, environment: Any, datasets: Any, *others: Any, **_more: object) -> RepeatingEngine:
        earlier, version = others[-2:]
        return RepeatingEngine(environment.storage_root, datasets, data, earlier=earlier, version=version)

    monkeypatch.setattr("clew.api.starting.SparkExecutors", engine)
    monkeypatch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    return edited(make_shop(root), STEPS)


def edited(shop: Shop, steps: list[Any], **more: Any) -> Shop:
    project = {"id": "close", "status": "draft", "input_dataset": "orders", "operations": steps, **more}
    return shop.write({"projects/close.yaml": project})


def with_another_end(shop: Shop) -> Shop:
    return edited(shop, [*STEPS[:3], step(28, "Round", "update", assignments=setting(whole="ROUND(usd, 1)")), OUT])


def full(shop: Shop) -> Run:
    return completed(Workspace(shop.root).run("close", "2026-01"))


def rerun(shop: Shop, run: Run, **how: Any) -> Run:
    return completed(again(shop, run).rerun(**how))


def again(shop: Shop, run: Run) -> Run:
    return Workspace(shop.root).get_run(run.id)


def same_as_a_full_run(shop: Shop, run: Run) -> None:
    told, whole = answers(run), answers(full(shop))
    for each in (told, whole):
        each.pop("counts")  # the interpreter counts outputs only
    assert told == whole
    require_whole(again(shop, run))


CONVERTS = [CLOSE[0], step(10, "Convert", "update", "amount > 1", assignments=setting(usd="amount * 2"))]
DROPS = [CLOSE[1], step(20, "Drop some", "delete", 'currency = "EUR" AND usd > 4'), None]
TOTALS = [
    TOTAL,
    step(25, "Total", "aggregate", "usd > 2", group_by=["currency"], aggregations=setting(usd="MAX_AGG(usd)")),
    None,
]
MARKS = [step(27, "Mark", "update", "id IS NULL", assignments=setting(currency='"all"')), None]
ROUNDS = [LAST, step(28, "Round", "update", joins=[RATE], assignments=setting(whole="ROUND(usd * r.rate, 0)"))]
PROJECTS = st.tuples(*(st.sampled_from(each) for each in (CONVERTS, DROPS, TOTALS, MARKS, ROUNDS)))


@settings(max_examples=examples(8), deadline=None)
@given(PROJECTS, PROJECTS, st.sampled_from([None, "orders", "rates"]))
def test_whatever_was_edited_the_result_is_that_of_a_full_run(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], after: list[Any], edits: str | None
) -> None:
    """Where rows of a dataset are edited, too, sources are looked at again."""
    data: Data = {"orders": [dict(row) for row in ORDERS], "rates": [dict(row) for row in RATES], "targets": []}
    with pytest.MonkeyPatch.context() as patch:
        shop = repeating_shop(tmp_path_factory.mktemp("edited"), patch, data)
        edited(shop, [*filter(None, before), OUT])
        first = full(shop)
        edited(shop, [*filter(None, after), OUT])
        if edits == "orders":
            data["orders"][2]["amount"] += 5
        elif edits == "rates":
            data["rates"][0]["rate"] += 1
        second = rerun(shop, first, changed_inputs=edits is not None)
        same_as_a_full_run(shop, second)
        require_whole(again(shop, first))
        if edits is None:
            same = [one is not None and one == other for one, other in zip(before, after, strict=True)]
            assert bool(taken(second)) is same[0]


def files_of(shop: Shop, run: Run) -> set[str]:
    folder = shop.storage / "runs" / run.id
    return {"/".join(path.relative_to(folder).parts[:2]) for path in folder.rglob("part.json")}


def test_a_change_at_the_end_takes_over_all_that_comes_before(shop: Shop) -> None:
    first = full(shop)
    second = rerun(with_another_end(shop), first)
    assert (taken(second), reasons(second)) == ([10, 20, 25], {28: "the operation was changed"})
    same_as_a_full_run(shop, second)
    require_whole(again(shop, first))


def test_an_operation_in_between_leaves_only_what_comes_before_it(shop: Shop) -> None:
    first = full(shop)
    edited(shop, [CLOSE[0], step(15, "Flag", "update", assignments=setting(flag='"x"')), *STEPS[1:]])
    second = rerun(shop, first)
    assert taken(second) == [10]
    assert reasons(second)[15] == "that run had no such operation"
    assert reasons(second)[28] == "step 15 comes before it, and was computed"
    same_as_a_full_run(shop, second)


def test_names_do_not_count_and_sources_are_looked_at_only_if_asked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = full(shop)
    edited(shop, [{**each, "name": f"renamed {each['seq']}"} for each in STEPS])
    second = rerun(shop, first)
    assert (taken(second), reasons(second)) == ([10, 20, 25, 28], {})
    third = rerun(shop, second, changed_inputs=True)
    assert (taken(third), reasons(third)) == ([10, 20, 25, 28], {})
    same_as_a_full_run(shop, third)


def test_either_run_may_be_deleted_and_files_go_with_the_last(shop: Shop) -> None:
    first = full(shop)
    second = rerun(with_another_end(shop), first)
    third = rerun(shop, second)
    told = answers(third)
    again(shop, second).remove()
    require_whole(again(shop, first))
    again(shop, first).remove()
    require_whole(again(shop, third))
    assert answers(again(shop, third)) == told
    assert "changes/28-28" not in files_of(shop, first)
    workspace = Workspace(shop.root)
    assert workspace.verify(deep=True).findings == ()
    assert workspace.gc(keep_runs=5).things == ()
    again(shop, third).remove()
    workspace.gc(keep_runs=5)
    assert not (shop.storage / "runs").exists()


def test_garbage_collection_deletes_the_old_run_and_keeps_what_the_rerun_names(shop: Shop) -> None:
    first = full(shop)
    second = rerun(shop, first)
    told = answers(second)
    removed = Workspace(shop.root).gc(keep_runs=1).things
    assert [(each.kind, each.name) for each in removed] == [("run", first.id)]
    assert answers(again(shop, second)) == told
    require_whole(again(shop, second))
    assert Workspace(shop.root).verify(deep=True).findings == ()


def test_a_run_stays_while_a_rerun_may_take_over_more(shop: Shop) -> None:
    first = full(shop)
    waiting = first.submit_rerun()
    with pytest.raises(UserError) as refused:
        again(shop, first).remove(force=True)
    assert refused.value.code == "RunRepeated"
    assert [each.run_id for each in Workspace(shop.root).gc(keep_runs=0).kept] == [first.id]
    with pytest.raises(UserError) as refused:
        again(shop, waiting).submit_rerun()
    assert refused.value.code == "NotRerunnable"
    waiting.drive()
    again(shop, first).remove()
    require_whole(again(shop, waiting))


def test_files_that_are_not_what_was_written_are_not_taken_over(shop: Shop) -> None:
    first = full(shop)
    folder = shop.storage / "runs" / first.id
    path = min((folder / "created").rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    second = rerun(shop, first)
    assert taken(second) == [10, 20]
    assert "not what was written" in reasons(second)[25]
    same_as_a_full_run(shop, second)
    min((folder / "input").rglob("*.parquet")).unlink()
    failed = again(shop, first).rerun()
    assert failed.error is not None
    assert failed.error.code == "DamagedTrace"


def test_the_command_runs_again_and_says_what_it_took_over(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    first = full(shop)
    with_another_end(shop)
    at = ["--workspace", str(shop.root)]
    assert command(["rerun", first.id[:12], *at]) == 0
    capsys.readouterr()
    [newest, *_] = Workspace(shop.root).runs(project="close")
    assert newest.record.request.rerun is not None
    assert command(["show", newest.id, *at]) == 0
    shown = capsys.readouterr().out
    assert f"of run {first.id}" in shown
    assert f"taken over from run {first.id[:8]}" in " ".join(shown.split())
    assert command(["show", newest.id, "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rerun_of"] == first.id
    assert command(["rerun", "nothing", *at]) != 0
    assert "RunNotFound" in capsys.readouterr().err


def test_a_parameter_with_another_value_is_the_reason_and_not_the_code(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = step(28, "Round", "update", "usd > param.limit", assignments=setting(whole="ROUND(usd, 0)"))
    edited(shop, [*STEPS[:3], limit, OUT], parameters={"limit": {"type": "integer", "default": 3}})
    first = full(shop)
    at = ["--workspace", str(shop.root)]
    assert command(["rerun", first.id, "--param", "limit=5", *at]) == 0
    second = again(shop, Workspace(shop.root).runs(project="close")[0])
    assert second.record.request.values == {"limit": "5"}
    assert taken(second) == [10, 20, 25]
    assert reasons(second) == {28: "it was given other values: parameter limit 3 -> 5"}
    told = answers(second)
    whole = answers(completed(Workspace(shop.root).run("close", "2026-01", parameters={"limit": 5})))
    assert [told.pop("counts"), whole.pop("counts")]
    assert told == whole
    assert command(["rerun", first.id, "--param", "limit=many", *at]) == 1
    assert "InvalidParameter" in capsys.readouterr().err
    assert command(["rerun", first.id, "--param", "nothing=1", *at]) == 1
    assert "UnknownParameter" in capsys.readouterr().err


def test_the_same_request_is_the_same_run_and_another_is_refused(shop: Shop) -> None:
    first = full(shop)
    made = first.submit_rerun(request_id="once")
    assert first.submit_rerun(request_id="once").id == made.id
    with pytest.raises(UserError) as refused:
        first.submit_rerun(request_id="once", changed_inputs=True)
    assert refused.value.code == "RequestIdTaken"


def test_python_opens_a_workspace_and_runs_again(shop: Shop) -> None:
    first = full(shop)
    assert taken(clew.open(shop.root).get_run(first.id).rerun()) == [10, 20, 25, 28]
