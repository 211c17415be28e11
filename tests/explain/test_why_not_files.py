"""Rows that no run has loaded, found in the files that rules name, with the reason why they were not."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clew
from clew.explain import unread_files
from clew.explain.views import as_text
from clew.explain.why_not import Elsewhere, NeverLoaded
from tests.engine.engine_workspaces import Shop
from tests.trace.interpreted_shop import Ran, ran_shop


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def files(ran: Ran) -> Iterator[Callable[..., Shop]]:
    """Puts files and rules in place for one test."""
    kept = {name: (ran.shop.root / name).read_text() for name in ("resolvers/r.yaml", "data/orders.csv")}
    made = list[str]()

    def put(rules: list[dict[str, Any]], **texts: str) -> Shop:
        named = {f"data/{name.replace('__', '.')}": text for name, text in texts.items()}
        made.extend(named)
        return ran.shop.write({"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": rules}, **named})

    yield put
    for name in made:
        (ran.shop.root / name).unlink()
    ran.shop.write(kept)


def rule(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "strategy": {"type": "path", "datasource_id": "data", "path": path}, **more}


def never_loaded(ran: Ran, where: str, run_id: str | None = None) -> NeverLoaded:
    found = clew.open(ran.shop.root).get_run(run_id or ran.january).why_not(where)
    assert found.rows == ()
    assert found.never_loaded is not None
    assert "so none can be in the output" in as_text(found)
    return found.never_loaded


def again(ran: Ran) -> str:
    """Another run for January with the rules that are in the files now: a version keeps those that it had."""
    with clew.open(ran.shop.root) as workspace:
        return workspace.run("close", "2026-01", with_current_definitions=True).id


def the_one(found: NeverLoaded) -> Elsewhere:
    [there] = found.elsewhere
    return there


def place(there: Elsewhere) -> tuple[str | None, str | None, int | None, str | None]:
    assert there.source is not None
    return there.period, there.source.file, there.source.line, there.reason


@pytest.mark.slow
def test_a_row_of_another_period_in_the_file_that_the_run_has_read(ran: Ran, files: Callable[..., Shop]) -> None:
    files(
        [rule("a", "{table}.csv")],
        orders__csv='id,currency,amount,_period\n9,"E,R",1.00,2026-01\n\n907,EUR,1.00,2026-05\n',
    )
    there = the_one(never_loaded(ran, "id = 907"))
    assert place(there) == ("2026-05", "orders.csv", 4, "the run takes the rows of 2026-01 from this file")
    assert (there.label, there.run_id) == ("907", None)


def test_a_row_that_came_into_the_file_after_the_run(ran: Ran, files: Callable[..., Shop]) -> None:
    files([rule("a", "{table}.csv")], orders__csv="id,currency,amount,_period\n907,EUR,1.00,2026-01\n")
    reason = "the file has it now, but did not have it when the run read it"
    assert place(the_one(never_loaded(ran, "id = 907"))) == ("2026-01", "orders.csv", 2, reason)


def test_a_row_in_the_file_of_another_period_names_the_rule_that_reads_it_there(
    ran: Ran, files: Callable[..., Shop]
) -> None:
    text = "id;currency;amount\n907;EUR;1.00\n"
    by_month = rule("by month", "{table}-{period}.csv")
    by_month["strategy"]["options"] = {"delimiter": ";"}
    files([by_month], **{"orders-2026-04__csv": text, "orders-2026-01__csv": "id;currency;amount\n"})
    reason = 'the rule "by month" reads this file for 2026-04, and the run is for 2026-01'
    run = again(ran)
    assert place(the_one(never_loaded(ran, 'id = 907 AND _period = "2026-04"', run))) == (
        "2026-04",
        "orders-2026-04.csv",
        2,
        reason,
    )
    assert never_loaded(ran, 'id = 907 AND _period = "2026-03"', run).elsewhere == ()


def test_a_row_in_a_file_of_a_rule_that_did_not_count_says_why_it_did_not(ran: Ran, files: Callable[..., Shop]) -> None:
    late = rule("the new place", "new.jsonl", when='period.start_date >= DATE("2026-06-01")')
    files(
        [late, rule("a", "{table}.csv"), rule("spare", "spare.jsonl")],
        new__jsonl='\n{"id": 907}\n',
        spare__jsonl='{"id": 908}\n',
    )
    run = again(ran)
    assert place(the_one(never_loaded(ran, "id = 907", run))) == (
        "2026-01",
        "new.jsonl",
        2,
        'the rule "the new place" did not apply: its condition period.start_date >= DATE("2026-06-01") is FALSE',
    )
    reason = 'the rule "spare" comes after "a", which applied'
    assert place(the_one(never_loaded(ran, "id = 908", run))) == ("2026-01", "spare.jsonl", 1, reason)


def test_parquet_is_looked_into_and_what_cannot_be_read_is_counted(ran: Ran, files: Callable[..., Shop]) -> None:
    shop = files([rule("a", "{table}.csv"), rule("b", "b.parquet"), rule("c", "c.parquet")], c__parquet="no parquet")
    pq.write_table(pa.table({"id": [1, 907]}), shop.root / "data/b.parquet")
    try:
        run = again(ran)
        assert place(the_one(never_loaded(ran, "id = 907", run)))[1:3] == ("b.parquet", 2)
        found = clew.open(shop.root).get_run(run).why_not("id = 907")
        assert "b.parquet row 2" in as_text(found)
        assert never_loaded(ran, "id = 999", run).not_looked_into == 1
    finally:
        (shop.root / "data/b.parquet").unlink()


def test_a_look_is_bounded_and_says_so(ran: Ran, files: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"orders-2026-{month:02}__csv": "id,currency,amount\n907,EUR,1.00\n" for month in range(1, 13)}
    files([rule("by month", "{table}-{period}.csv")], **texts)
    run = again(ran)
    assert len(never_loaded(ran, "id = 907", run).elsewhere) == 5
    monkeypatch.setattr(unread_files, "_MOST_FILES", 2)
    assert never_loaded(ran, "id = 1000", run).not_looked_into == 10
    monkeypatch.setattr(unread_files, "_MOST_BYTES", 50)
    assert never_loaded(ran, "id = 1000", run).not_looked_into == 11
    found = clew.open(ran.shop.root).get_run(run).why_not("id = 1000")
    assert "11 more files may contain it, but are too many or too large to search" in as_text(found)


def test_a_dataset_that_is_registered_has_no_files_to_look_into(ran: Ran) -> None:
    assert never_loaded(ran, "id = 907", ran.report).elsewhere == ()
