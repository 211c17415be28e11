"""Projects as users run them: periods, versions, snapshots, failures and what comes after them."""

import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clew.api.run_view import RunReader, RunView
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.plan.operations import UpdateStep
from clew.storage.committed import committed_parts
from tests.engine.engine_workspaces import DATA, EXAMPLE, EXAMPLE_DATA, SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def update(seq: int, joins: list[Any] | None = None, selector: str | None = None, **columns: str) -> dict[str, Any]:
    assignments = [{"column": column, "expression": text} for column, text in columns.items()]
    chosen = {} if selector is None else {"selector": selector}
    arguments = {"joins": joins or [], "assignments": assignments}
    return {"seq": seq, "name": f"step {seq}", "type": "update", **chosen, "arguments": arguments}


def output(seq: int, path: str, **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return {"seq": seq, "name": f"step {seq}", "type": "output", "arguments": {"destination": destination, **arguments}}


RATES = {"alias": "rates", "dataset_id": "rates", "on": "rates.currency = orders.currency"}
TARGETS = {"alias": "targets", "dataset_id": "targets", "on": "targets.currency = orders.currency"}


def told(view: RunView) -> tuple[str, str | None, object]:
    error = view.snapshot.error
    return view.snapshot.status.value, error.code if error else None, view.to_json()["last_completed_operation"]


def test_joined_datasets_are_those_of_the_runs_period(shop: Shop) -> None:
    columns = ["id", "rate", "goal"]
    shop.project(
        "p",
        update(10, [RATES, TARGETS], rate="rates.rate", goal="targets.goal"),
        output(20, "{period}", columns=columns),
    )
    assert told(shop.run("p", "2026-01")) == ("COMPLETED", None, 20)
    assert told(shop.run("p", "2026-02")) == ("COMPLETED", None, 20)
    found = {(row["id"], float(row["rate"]), row["goal"]) for row in shop.read("reports/2026-01")}
    assert found == {(1, 1.1, 1), (2, 1.0, 3)}
    assert [(row["id"], float(row["rate"]), row["goal"]) for row in shop.read("reports/2026-02")] == [(3, 1.2, 2)]


def test_a_run_is_given_values_and_its_period_and_explains_itself_with_them(shop: Shop) -> None:
    declared = {"factor": {"type": "decimal(5,2)", "default": 2}, "kind": {"type": "string"}}
    net = 'amount * param.factor + IF(PERIOD_ID() = "2026-01", 1, 0)'
    shop.project("p", update(10, net=net, kind="param.kind"), output(20, "{period}"), parameters=declared)
    with shop.starter() as starter:
        with pytest.raises(UserError, match="no value is given"):
            starter.submit("p", "2026-01")
        run_id = starter.submit("p", "2026-01", parameters={"factor": "3", "kind": "x"}).run_id
    view = shop.drive(run_id)
    assert told(view) == ("COMPLETED", None, 20)
    assert view.to_json()["parameters"] == {"factor": "3.00", "kind": "x"}
    rows = shop.read("reports/2026-01")
    assert {(row["net"], row["kind"]) for row in rows} == {(row["amount"] * 3 + 1, "x") for row in rows}
    with Workspace(shop.root) as opened:
        told_why: Any = opened.get_run(run_id).explain(rows[0]["_row_id"], "net").to_json()["cause"]
    inputs = {each["name"]: each["value"] for each in told_why["inputs"]}
    assert (inputs["param.factor"], inputs["PERIOD_ID()"]) == ("3.00", "2026-01")
    assert told_why["recomputed"]["outcome"] == "equal"


def test_a_registered_output_gets_versions_keeps_other_periods_and_feeds_other_projects(shop: Shop) -> None:
    shop.project("close", output(10, "closed/{period}", register_as_dataset="closed"))
    shop.project("report", update(10, twice="amount * 2"), output(20, "report/{period}"), dataset="closed")
    pinned = {"dataset_id": "closed", "dataset_version": 1}
    shop.project("old", output(20, "old/{period}", columns=["id"]), dataset=pinned)
    first, second = shop.run("close", "2026-01"), shop.run("close", "2026-02")
    assert [view.outputs()[0]["dataset_version"] for view in (first, second)] == [1, 2]
    for period, expected in (("2026-01", {1, 2}), ("2026-02", {3})):
        view = shop.run("report", period)
        assert told(view) == ("COMPLETED", None, 20)
        assert view.rows_loaded() == len(expected)
        assert {row["id"] for row in shop.read(f"reports/report/{period}")} == expected
    assert told(shop.run("old", "2026-01")) == ("COMPLETED", None, 20)
    assert {row["id"] for row in shop.read("reports/old/2026-01")} == {1, 2}
    assert told(shop.run("old", "2026-02")) == ("FAILED", "SourceUnavailable", None)


def test_a_join_takes_the_newest_version_or_the_one_that_it_pins_and_the_run_keeps_which(shop: Shop) -> None:
    shop.project("close", output(10, "closed", register_as_dataset="closed"))
    shop.run("close")
    shop.write({"data/orders.csv": DATA["data/orders.csv"].replace("10.00", "77.00")})
    shop.run("close")
    newest = {"alias": "newest", "dataset_id": "closed", "on": "newest.id = orders.id"}
    pinned = {"alias": "pinned", "dataset_id": "closed", "dataset_version": 1, "on": "pinned.id = orders.id"}
    columns = update(10, [newest, pinned], after="newest.amount", before="pinned.amount")
    shop.project("p", columns, output(20, "out", columns=["id", "before", "after"]))
    view = shop.run("p")
    assert told(view) == ("COMPLETED", None, 20)
    [changed] = [row for row in shop.read("reports/out") if row["id"] == 1]
    assert (float(changed["before"]), float(changed["after"])) == (10, 77)
    parts = [part for part in committed_parts(shop.storage_root, view.snapshot) if "closed" in part.name]
    used = [part.details["version"] for part in parts if part.details is not None]
    assert sorted(used, key=str) == [1, 2], [part.name for part in committed_parts(shop.storage_root, view.snapshot)]


def test_a_run_keeps_its_plan_selectors_and_versions_whatever_becomes_of_the_files(shop: Shop) -> None:
    shop.project("close", output(10, "closed", register_as_dataset="closed"))
    shop.run("close")
    closed = {**RATES, "alias": "closed", "dataset_id": "closed", "on": "closed.id = orders.id"}
    operations = (update(10, [closed], "{{large}}", seen="closed.amount"), output(20, "out"))
    shop.project("p", *operations, selectors={"large": "orders.amount  >  15"})
    view = shop.run("p")
    shop.project("p", output(20, "elsewhere"))
    with shop.starter() as starter:
        again = RunReader(starter.state, starter.environment).view(view.record.run_id)
    assert again.plan is not None
    assert [(each.name, each.expression) for each in again.plan.selectors] == [("large", "orders.amount  >  15")]
    assert [step.seq for step in again.plan.steps] == [10, 20]
    assert isinstance(again.plan.steps[0], UpdateStep)
    details = {part.name: part.details for part in committed_parts(shop.storage_root, again.snapshot) if part.details}
    assert details["closed"]["version"] == 1
    written = [artifact for artifact in again.snapshot.artifacts if artifact.kind == "trace-part"]
    parts = [artifact for artifact in written if "/input/" not in artifact.uri]
    assert parts
    files = [(shop.storage / artifact.uri.removeprefix("storage:")).read_bytes() for artifact in parts]
    assert [(artifact.sha256, artifact.size_bytes) for artifact in parts] == [
        (sha256(file).hexdigest(), len(file)) for file in files
    ]


def test_a_rule_and_an_output_may_call_a_datasource_by_its_name(shop: Shop) -> None:
    data, rule = SHOP["datasources/data.yaml"], SHOP["resolvers/r.yaml"]["rules"][0]
    named = {**rule, "strategy": {**rule["strategy"], "datasource_id": "The data"}}
    shop.write({"datasources/data.yaml": {**data, "name": "The data"}})
    shop.write({"resolvers/r.yaml": {**SHOP["resolvers/r.yaml"], "rules": [named]}})
    shop.write({"datasources/reports.yaml": {**SHOP["datasources/reports.yaml"], "name": "The reports"}})
    shop.project("p", output(10, "", destination={"datasource_id": "The reports", "path": "out"}))
    assert told(shop.run("p")) == ("COMPLETED", None, 10)
    assert len(shop.read("reports/out")) == 2


def test_a_draft_writes_to_the_sandbox_and_registers_nothing(shop: Shop) -> None:
    shop.project("p", output(10, "closed", register_as_dataset="closed"), status="draft")
    view = shop.run("p")
    assert told(view) == ("COMPLETED", None, 10)
    assert not (shop.root / "reports").exists()
    assert "dataset" not in view.outputs()[0]
    assert Path(shop.root, str(view.outputs()[0]["path"])).is_dir()


def test_a_period_without_data_completes_with_outputs_that_have_no_rows_where_it_may(shop: Shop) -> None:
    shop.write({"datasets/orders.yaml": {**SHOP["datasets/orders.yaml"], "may_be_empty": True}})
    shop.project(
        "p",
        update(10, [TARGETS], goal="targets.goal"),
        {
            "seq": 20,
            "name": "totals",
            "type": "aggregate",
            "arguments": {"group_by": ["currency"], "aggregations": [{"column": "n", "expression": "COUNT_ALL()"}]},
        },
        output(30, "out.csv", columns=["id", "n"]),
        output(40, "", destination={"location": {"format": "jsonl", "path": "reports/inline/{period}.jsonl"}}),
    )
    assert told(shop.run("p", "2026-07")) == ("COMPLETED", None, 40)
    assert (shop.root / "reports/inline/2026-07.jsonl").read_bytes() == b""
    assert (shop.root / "reports/out.csv").read_text(encoding="utf-8") == "id,n\n"


def test_a_join_that_matches_twice_fails_the_run_and_a_retry_reads_the_corrected_data(shop: Shop) -> None:
    shop.write({"data/targets.csv": DATA["data/targets.csv"] + "EUR,9,2026-01\n"})
    shop.project(
        "p",
        update(5, size="amount * 2"),
        output(10, "before"),
        update(20, [TARGETS], goal="targets.goal"),
        output(30, "after", columns=["id", "goal"]),
    )
    view = shop.run("p")
    assert told(view) == ("FAILED", "JoinNotUnique", 10)
    assert {path.split("/")[0] for path in shop.published()} == {"before"}
    shop.write({"data/targets.csv": DATA["data/targets.csv"]})
    assert told(shop.retry(view, 20)) == ("COMPLETED", None, 30)
    assert sorted((row["id"], row["goal"]) for row in shop.read("reports/after")) == [(1, 1), (2, 3)]


def test_an_output_is_not_published_when_a_step_before_it_fails(shop: Shop) -> None:
    """The output does not ask for the column that cannot be calculated, so that its own job goes well."""
    rate = {"data/rates.csv": "currency,rate,_period_from,_period_to\nEUR,9999,2025-01-01,\nUSD,1,2025-01-01,\n"}
    shop.write(rate)
    shop.project(
        "p",
        update(10, [RATES], small="TO_DECIMAL(amount * rates.rate, 4, 2)"),
        output(20, "out", columns=["id"], register_as_dataset="kept"),
    )
    view = shop.run("p")
    assert told(view) == ("FAILED", "ValueOutOfRange", None)
    assert view.failure is not None
    for part in ('step 10 "step 10"', "column small", "99990", "row id 1 ("):
        assert part in view.failure.message
    assert shop.published() == set()
    with shop.starter() as starter:
        assert starter.state.datasets.versions("kept") == []
    shop.write(DATA)
    assert told(shop.retry(view, 10)) == ("COMPLETED", None, 20)
    assert len(shop.read("reports/out")) == 2


def test_a_file_where_a_folder_must_be_fails_the_output_and_a_retry_goes_on(shop: Shop) -> None:
    shop.write({"reports/out": "precious"})
    shop.project("p", update(10, size="amount * 2"), output(20, "out"), update(30, size="0"), output(40, "end"))
    view = shop.run("p")
    assert told(view) == ("FAILED", "OutputConflict", 10)
    assert (shop.root / "reports/out").read_text(encoding="utf-8") == "precious"
    (shop.root / "reports/out").unlink()
    done = shop.retry(view, 20)
    assert told(done) == ("COMPLETED", None, 40)
    assert [step.counts.get("rows_updated") for step in done.snapshot.steps if step.step_id == "10"] == [2]


def test_an_output_cannot_lead_out_of_its_root(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (shop.root / "reports").mkdir()
    (shop.root / "reports/link").symlink_to(outside)
    shop.project("p", output(10, "link/out.csv"))
    assert told(shop.run("p")) == ("FAILED", "OutputConflict", None)
    assert list(outside.iterdir()) == []


def test_pinned_rows_that_vanish_are_told_and_a_retry_after_their_return_completes(shop: Shop, tmp_path: Path) -> None:
    many = "id,currency,amount,_period\n" + "".join(f"{index},EUR,1.00,2026-01\n" for index in range(1, 1500))
    shop.write({"data/orders.csv": many, "reports/out": "in the way"})
    shop.project("p", output(10, "out", columns=["id"]))
    view = shop.run("p")
    assert told(view) == ("FAILED", "OutputConflict", None)
    (shop.root / "reports/out").unlink()
    pinned = shop.storage / "runs" / view.record.run_id / "input" / "orders"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    [attempt] = pinned.iterdir()
    for file in attempt.glob("*.parquet"):
        shutil.move(file, hidden / file.name)
    view = shop.retry(view, 10)
    assert told(view) == ("FAILED", "SourceUnavailable", None)
    assert shop.published() == set()
    for file in hidden.iterdir():
        shutil.move(file, attempt / file.name)
    assert told(shop.retry(view, 10)) == ("COMPLETED", None, 10)
    assert len(shop.read("reports/out")) == 1499


def test_a_trace_that_cannot_be_written_fails_the_step_and_a_retry_completes(shop: Shop) -> None:
    shop.project("p", update(10, size="amount * 2"), output(20, "out"))
    run_id = shop.submit("p")
    in_the_way = shop.storage / "runs" / run_id / "changes"
    shop.write({in_the_way.relative_to(shop.root).as_posix(): "a file"})
    view = shop.drive(run_id)
    assert told(view) == ("FAILED", "TraceWriteFailure", None)
    assert shop.published() == set()
    in_the_way.unlink()
    assert told(shop.retry(view, 10)) == ("COMPLETED", None, 20)


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_run_leaves_nothing_outside_its_storage_but_its_outputs(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the workspace nor where it was started, nor among temporary files."""
    started, temporary = tmp_path_factory.mktemp("started"), tmp_path_factory.mktemp("temporary")
    monkeypatch.chdir(started)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    summed = {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]}
    steps = [
        update(10, [RATES], rate="rates.rate"),
        {"seq": 20, "name": "sum", "type": "aggregate", "arguments": summed},
        {"seq": 30, "name": "drop", "type": "delete", "selector": "amount < 0"},
    ]
    shop.project("without", *steps)
    shop.project("with", *steps, output(40, "one.csv"), output(50, "kept", register_as_dataset="kept"))
    before = files_below(shop.root)
    assert told(shop.run("without")) == ("COMPLETED", None, 30)
    assert {name for name in files_below(shop.root) - before if not name.startswith(".clew/")} == set()
    assert told(shop.run("with")) == ("COMPLETED", None, 50)
    left = {name for name in files_below(shop.root) - before if not name.startswith(".clew/")}
    assert left
    assert all(name.startswith(("reports/one.csv", "reports/kept/")) for name in left)
    assert (files_below(started), files_below(temporary)) == (set(), set())


def test_the_example_of_the_specification_runs_on_data(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    shop = Shop(tmp_path / "example").write(EXAMPLE_DATA)
    view = shop.run("order-processing")
    assert told(view) == ("COMPLETED", None, 5)
    counts = [
        (step.counts["rows_updated"], step.counts["rows_created"], step.counts["rows_deleted"])
        for step in view.snapshot.steps
        if step.step_id != "load"
    ]
    assert counts == [(2, 0, 0), (3, 0, 0), (0, 2, 0), (0, 0, 1), (0, 0, 0)]
    rows = shop.read(str(view.outputs()[0]["path"]))
    found = {row["order_id"]: (row["customer_tier"], float(row["discounted_price"]), row["_labels"]) for row in rows}
    assert found == {1: ("gold", 90.0, "{region:EMEA}"), 4: (None, 50.0, "")}


def test_the_second_project_that_registers_a_dataset_is_refused_before_it_runs(shop: Shop) -> None:
    shop.project("one", output(10, "one", register_as_dataset="shared"))
    shop.project("two", output(10, "two", register_as_dataset="shared"))
    with pytest.raises(UserError) as refused:
        shop.run("two")
    assert refused.value.code == "RegistrationConflict"
    assert shop.published() == set()
    assert told(shop.run("one")) == ("COMPLETED", None, 10)


def test_a_run_for_a_year_joins_as_of_the_day_of_each_row_and_says_which_months_are_missing(shop: Shop) -> None:
    """The rates of January and February differ. A join without `as_of` takes those of the first day of the year."""
    on_day = {**RATES, "alias": "then", "on": "then.currency = orders.currency", "as_of": "booked"}
    at_end = {**RATES, "alias": "last", "on": "last.currency = orders.currency", "as_of": "PERIOD_END()"}
    rule = {"name": "months", "complete": "month", "at": "load", "severity": "warn"}
    shop.project(
        "p",
        update(5, booked='TO_DATE(CONCAT(_period, "-20"))'),
        update(10, [RATES, on_day, at_end], rate="rates.rate", then="then.rate", last="last.rate"),
        output(20, "{period}", columns=["id", "rate", "then", "last"]),
        checks=[rule, {**rule, "name": "years", "complete": "year"}],
    )
    view = shop.run("p", "2026")
    assert told(view) == ("COMPLETED", None, 20)
    found = {
        row["id"]: tuple(float(row[name]) for name in ("rate", "then", "last")) for row in shop.read("reports/2026")
    }
    assert found == {1: (1.1, 1.1, 1.2), 2: (1, 1, 1), 3: (1.1, 1.2, 1.2)}
    results = {check.name: check for check in view.snapshot.checks}
    assert (results["months"].passed, results["years"].passed) == (False, False)
    assert results["months"].message.endswith("2 = 12"), results["months"].message
    with Workspace(shop.root) as opened:
        run = opened.get_run(view.record.run_id)
        [row] = run.trace(where="id = 3").rows
        cause: Any = run.explain(row.row_id, "then").to_json()["cause"]
        cut = run.cut_scenario("id = 3")
    assert cause["recomputed"]["outcome"] == "equal"
    assert "booked < then._period_to" in str(cause)
    assert cut.rows["rates"] == 2
