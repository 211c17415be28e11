"""Every run proves that nothing was lost: rows and control totals from the source to each output."""

import copy
import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest

from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.engine import output_totals
from clew.engine.operations.output import output_rows
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

PERIOD = "2026-01"
ORDERS = "id,currency,amount,weight,_period\n" + "".join(
    f"{number},{('EUR', 'USD', 'CHF')[number % 3]},{amount},{number / 8},2026-0{1 + number % 2}\n"
    for number, amount in ((number, "" if number == 8 else f"{number}.{number:02}") for number in range(1, 60))
)
TARGETS = "currency,goal,_period\nEUR,100,2026-01\nUSD,50,2026-01\nUSD,7,2026-02\n"


def output(seq: int, path: str, selector: str | None = None, **more: Any) -> dict[str, Any]:
    chosen = {"selector": selector} if selector else {}
    arguments = {"destination": {"datasource_id": "reports", "path": path}, **more}
    return {"seq": seq, "name": f"Write {path}", "type": "output", **chosen, "arguments": arguments}


STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "selector": "id > 40",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    },
    {
        "seq": 20,
        "name": "Tax",
        "type": "update",
        "arguments": {"assignments": [{"column": "tax", "expression": "ROUND(amount / 10, 4)"}]},
    },
    {
        "seq": 25,
        "name": "Rename",
        "type": "update",
        "selector": 'currency = "CHF"',
        "arguments": {"assignments": [{"column": "currency", "expression": '"EUR"'}]},
    },
    {"seq": 30, "name": "Drop", "type": "delete", "selector": "id < 10", "arguments": {}},
    output(35, "review", include_deleted=True),
    output(37, "large", "amount > 50"),
    {
        "seq": 40,
        "name": "Totals",
        "type": "aggregate",
        "arguments": {"group_by": ["currency"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
    },
    {
        "seq": 50,
        "name": "Goals",
        "type": "append",
        "arguments": {
            "source": {"dataset_id": "targets"},
            "aggregation": {
                "group_by": ["targets.currency"],
                "aggregations": [{"column": "amount", "expression": "SUM(targets.goal)"}],
            },
        },
    },
    output(60, "all"),
]
CONTROLS = [
    {"name": "Amount", "expression": "amount", "by": ["currency"]},
    {"name": "Tax", "expression": "tax"},
    {"name": "Weight", "expression": "weight"},
    {"name": "Large", "expression": "IF(amount > 30, amount, 0)", "on_difference": "warn"},
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    orders = copy.deepcopy(SHOP["datasets/orders.yaml"])
    orders["main_table"]["columns"].append({"name": "weight", "type": "double"})
    files = {"datasets/orders.yaml": orders, "data/orders.csv": ORDERS, "data/targets.csv": TARGETS}
    return make_shop(tmp_path_factory.mktemp("shop")).write(files).project("p", *STEPS, controls=CONTROLS)


@pytest.fixture(scope="module")
def run_id(shop: Shop) -> str:
    view = shop.run("p", PERIOD)
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    return view.record.run_id


Line = tuple[str, int, int, Decimal | None]


def told(document: Any, output_seq: int, control: str | None, **key: str) -> list[Line]:
    found = next(each for each in document["outputs"] if each["seq"] == output_seq)
    [total] = [each for each in found["totals"] if each["control"] == control and each["key"] == key]
    return [
        (line["what"], line["seq"], line["rows"], None if line["amount"] is None else Decimal(line["amount"]))
        for line in total["lines"]
    ]


class Oracle:
    """The same steps in plain Python, on the rows of the CSV files."""

    def __init__(self) -> None:
        rows = [row for row in csv.DictReader(io.StringIO(ORDERS)) if row["_period"] == PERIOD]
        self.rows: list[dict[str, Any]] = [
            {"id": int(row["id"]), "currency": row["currency"], "amount": Decimal(row["amount"] or 0)} for row in rows
        ]
        self.loaded = self.amount()
        for row in self.rows:
            row["amount"] *= 2 if row["id"] > 40 else 1
        self.doubled = self.amount()
        self.by_old_currency = self.by_currency()
        for row in self.rows:
            row["currency"] = "EUR" if row["currency"] == "CHF" else row["currency"]
        self.dropped = [row for row in self.rows if row["id"] < 10]
        self.kept = [row for row in self.rows if row["id"] >= 10]
        self.large = [row for row in self.kept if row["amount"] > 50]

    def amount(self, rows: list[dict[str, Any]] | None = None) -> Decimal:
        return sum((row["amount"] for row in (self.rows if rows is None else rows)), Decimal(0))

    def by_currency(self) -> dict[str, Decimal]:
        found = defaultdict[str, Decimal](Decimal)
        for row in self.rows:
            found[row["currency"]] += row["amount"]
        return found


@pytest.fixture
def document(shop: Shop, run_id: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert command(["reconcile", run_id, "--json", "-w", str(shop.root)]) == 0
    return json.loads(capsys.readouterr().out)


def test_rows_and_amounts_tie_at_every_output_as_the_csv_files_say(document: Any) -> None:
    oracle = Oracle()
    assert document["ties"] is True
    rows, dropped, kept, large = (len(each) for each in (oracle.rows, oracle.dropped, oracle.kept, oracle.large))
    summaries, goals = len({row["currency"] for row in oracle.kept}), 2
    assert told(document, 35, None) == [("loaded", 0, rows, None), ("written", 35, rows, None)]
    assert told(document, 37, None) == [
        ("loaded", 0, rows, None),
        ("deleted", 30, dropped, None),
        ("left_out", 37, kept - large, None),
        ("written", 37, large, None),
    ]
    assert told(document, 60, None) == [
        ("loaded", 0, rows, None),
        ("deleted", 30, dropped, None),
        ("created", 40, summaries, None),
        ("appended", 50, goals, None),
        ("written", 60, kept + summaries + goals, None),
    ]
    kept_amount, large_amount = oracle.amount(oracle.kept), oracle.amount(oracle.large)
    in_flow = [
        ("loaded", 0, rows, oracle.loaded),
        ("updated", 10, 0, oracle.doubled - oracle.loaded),
        ("updated", 25, 0, Decimal(0)),
    ]
    assert told(document, 35, "Amount") == [*in_flow, ("written", 35, rows, oracle.doubled)]
    dropped_line = ("deleted", 30, dropped, oracle.amount(oracle.dropped))
    assert told(document, 37, "Amount") == [
        *in_flow,
        dropped_line,
        ("left_out", 37, kept - large, kept_amount - large_amount),
        ("written", 37, large, large_amount),
    ]
    assert told(document, 60, "Amount") == [
        *in_flow,
        dropped_line,
        ("created", 40, summaries, kept_amount),
        ("appended", 50, goals, Decimal(150)),
        ("written", 60, kept + summaries + goals, 2 * kept_amount + 150),
    ]


def test_amounts_by_key_follow_rows_from_one_group_to_another(document: Any) -> None:
    oracle = Oracle()
    moved = sum(
        1 for row in csv.DictReader(io.StringIO(ORDERS)) if (row["currency"], row["_period"]) == ("CHF", PERIOD)
    )
    lines = told(document, 35, "Amount", currency="CHF")
    assert ("updated", 25, -moved, -oracle.by_old_currency["CHF"]) in lines
    assert all(what != "written" for what, *_ in lines)
    euros = told(document, 37, "Amount", currency="EUR")
    written = [row for row in oracle.large if row["currency"] == "EUR"]
    assert euros[-1] == ("written", 37, len(written), oracle.amount(written))


def test_doubles_are_rounded_before_they_are_added_up(document: Any) -> None:
    large = Oracle().large
    weight = sum((Decimal(row["id"]) / 8 for row in large), Decimal(0))
    assert told(document, 37, "Weight")[-1] == ("written", 37, len(large), weight)


def test_a_column_that_a_step_adds_counts_from_there(document: Any) -> None:
    oracle = Oracle()
    lines = told(document, 37, "Tax")
    assert lines[0] == ("loaded", 0, len(oracle.rows), Decimal(0))
    assert ("updated", 20, 0, oracle.doubled / 10) in lines
    assert lines[-1][3] == oracle.amount(oracle.large) / 10


def test_each_number_leads_to_its_rows(shop: Shop, run_id: str, document: Any) -> None:
    [run] = [Workspace(shop.root).get_run(run_id)]
    for each in document["outputs"]:
        for total in each["totals"]:
            for line in total["lines"]:
                behind = line["rows_behind"]
                if behind["step"] is None:
                    found = run.trace(where=behind["where"] or "TRUE", at=behind["at"], limit=1000)
                    assert len(found.rows) == line["rows"], line
                elif line["what"] != "updated":
                    touched = run.open_trace().touched(behind["step"], 1000, where=behind["where"])
                    assert len(touched.rows) == line["rows"], line
                elif not total["key"]:
                    touched = run.open_trace().touched(behind["step"], 1000)
                    assert {row.row_id for row in touched.rows} == {
                        record.row_id for record in run.trace(step=line["seq"], limit=1000).records
                    }


def test_people_read_the_waterfall_on_a_terminal(shop: Shop, run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["reconcile", run_id, "-w", str(shop.root)]) == 0
    text = capsys.readouterr().out
    assert "37 Write large" in text
    assert "left out" in text
    assert "ties" in text
    assert "does not tie" not in text


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine loses a row between the selector and the files, and does not notice."""
    monkeypatch.setattr(
        "clew.engine.output.publishing.output_rows",
        lambda rows, step, expressing: output_rows(rows, step, expressing).where("id <> 50"),
    )


@pytest.mark.usefixtures("losing")
def test_a_run_that_loses_a_row_is_not_completed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.project("losing", output(10, "lost", "amount > 1"))
    view = shop.run("losing", "2026-01")
    assert view.snapshot.status == "FAILED"
    assert view.snapshot.error is not None
    assert view.snapshot.error.code == "TotalsDiffer"
    assert "+1 rows" in view.snapshot.error.message
    assert view.snapshot.failed_step == "10"
    assert not (shop.root / "reports" / "lost").exists(), "an output that does not tie is not published"
    assert command(["reconcile", view.record.run_id, "--json", "-w", str(shop.root)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ties"] is False
    [total] = told["outputs"][0]["totals"]
    assert "not published" in total["problem"]
    assert [line["what"] for line in total["lines"]] == ["loaded"]


@pytest.mark.parametrize(
    ("control", "status"),
    [
        ({"on_difference": "fail"}, "FAILED"),
        ({"on_difference": "warn"}, "COMPLETED"),
        ({"tolerance": 100}, "COMPLETED"),
    ],
)
def test_an_amount_that_differs_fails_or_warns_as_declared(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, control: dict[str, Any], status: str
) -> None:
    sound = output_totals._as_decimal
    monkeypatch.setattr(output_totals, "_as_decimal", lambda sql, each: f"({sound(sql, each)} + 1.00)")
    name = "-".join(["wrong", *control, *map(str, control.values())]).replace("_", "-")
    shop.project(name, output(10, "wrong"), controls=[{"name": "Sum", "expression": "amount", **control}])
    view = shop.run(name, PERIOD)
    assert view.snapshot.status == status
    with shop.starter() as starter:
        events = starter.state.stores.reader.events(view.record.run_id)
    alerts = [event.body for event in events if event.event_type == "AlertRaised"]
    assert len(alerts) == (1 if control.get("on_difference") == "warn" else 0)
    if status == "FAILED":
        assert view.snapshot.error is not None
        assert view.snapshot.error.code == "TotalsDiffer"
        assert '"Sum" of step 10' in view.snapshot.error.message


def test_amounts_that_spark_saw_in_another_group_fail_though_they_add_up(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = output_totals._weight
    wrong = "IF(`id` = 52, 'CHF', `currency`)"
    monkeypatch.setattr(output_totals, "_weight", lambda control: sound(control).replace("`currency`", wrong))
    control = {"name": "Sum", "expression": "amount", "by": ["currency"]}
    shop.project("groups", output(10, "groups", "amount > 5"), controls=[control])
    view = shop.run("groups", PERIOD)
    assert view.snapshot.status == "FAILED"
    assert view.snapshot.error is not None
    assert "what was written belongs to other groups than the trace says" in view.snapshot.error.message
    assert not (shop.root / "reports" / "groups").exists()


def test_personal_amounts_are_compared_and_not_recorded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = copy.deepcopy(SHOP["datasets/orders.yaml"])
    orders["main_table"]["columns"].append({"name": "weight", "type": "double"})
    for column in orders["main_table"]["columns"]:
        if column["name"] in {"amount", "currency"}:
            column["privacy"] = "personal"
    personal = shop.write({"datasets/wages.yaml": orders | {"id": "wages"}})
    control = {"name": "Pay", "expression": "amount", "by": ["currency"]}
    personal.project("pay", output(10, "pay"), dataset="wages", controls=[control])
    view = shop.run("pay", PERIOD)
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    assert view.snapshot.steps[-1].amounts == {}
    sound = output_totals._as_decimal
    monkeypatch.setattr(output_totals, "_as_decimal", lambda sql, each: f"({sound(sql, each)} + 1.00)")
    view = shop.run("pay", PERIOD)
    assert view.snapshot.status == "FAILED"
    assert view.snapshot.error is not None
    assert '"Pay" of step 10' in view.snapshot.error.message
    assert not any(character.isdigit() for character in view.snapshot.error.message.partition(" by ")[2])


def test_an_output_that_can_never_take_a_row_ties(shop: Shop) -> None:
    """Spark removes what cannot match; the numbers must not be removed with it."""
    shop.project("none", output(10, "none", "FALSE"), controls=[{"name": "Sum", "expression": "amount"}])
    view = shop.run("none", PERIOD)
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    assert view.snapshot.steps[-1].counts["rows_left_out"] == len(Oracle().rows)
