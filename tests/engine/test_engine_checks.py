"""Checks on Spark find what plain Python finds, stop a run before it publishes, and quarantine rows with a trace."""

import copy
import json
import random
import re
from collections import Counter
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from clew.api.run_view import RunView
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.events.values import CheckResult
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

_CURRENCIES = ["EUR", "USD", "CHF", "GBP", None]


def generated(count: int = 300) -> list[dict[str, Any]]:
    """Orders with gaps, repetitions and odd codes."""
    chance = random.Random(17)
    return [
        {
            "id": number if chance.random() < 0.9 else chance.randint(1, count),
            "currency": chance.choice(_CURRENCIES),
            "amount": None if chance.random() < 0.1 else Decimal(chance.randint(-500, 9000)) / 100,
            "code": None if chance.random() < 0.1 else chance.choice(["A-1", "B-22", "a-1", "C", "D-9x"]),
            "day": None if chance.random() < 0.1 else f"2026-01-{chance.randint(1, 28):02}",
        }
        for number in range(1, count + 1)
    ]


ROWS = generated()
_NAMES = ("id", "currency", "amount", "code", "day")


def csv_of(rows: list[dict[str, Any]]) -> str:
    lines = [",".join([*_NAMES, "_period"])]
    lines += [",".join("" if row[name] is None else str(row[name]) for name in _NAMES) + ",2026-01" for row in rows]
    return "\n".join(lines) + "\n"


def output(seq: int, **more: Any) -> dict[str, Any]:
    arguments = {"destination": {"datasource_id": "reports", "path": f"out{seq}"}, **more}
    return {"seq": seq, "name": f"Write {seq}", "type": "output", "arguments": arguments}


def update(seq: int, column: str, expression: str, selector: str | None = None) -> dict[str, Any]:
    chosen = {"selector": selector} if selector else {}
    arguments = {"assignments": [{"column": column, "expression": expression}]}
    return {"seq": seq, "name": f"Set {column} {seq}", "type": "update", **chosen, "arguments": arguments}


TOTALS = {
    "seq": 40,
    "name": "Totals",
    "type": "aggregate",
    "arguments": {"group_by": ["currency"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
}
STEPS = [
    update(10, "net", "amount * 2", "id > 20"),
    {"seq": 20, "name": "Drop", "type": "delete", "selector": "id > 280", "arguments": {}},
    TOTALS,
    output(50),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    orders = copy.deepcopy(SHOP["datasets/orders.yaml"])
    orders["main_table"]["columns"] += [{"name": "code", "type": "string"}, {"name": "day", "type": "date"}]
    del orders["natural_key"]
    orders["main_table"]["columns"][0]["nullable"] = True
    rates = "currency,rate,_period_from,_period_to\nEUR,1.1,2025-01-01,\nUSD,1,2025-01-01,\n"
    files = {"datasets/orders.yaml": orders, "data/orders.csv": csv_of(ROWS), "data/rates.csv": rates}
    targets = "currency,goal,_period\nEUR,100,2026-01\nUSD,50,2026-01\n"
    return make_shop(tmp_path_factory.mktemp("shop")).write({**files, "data/targets.csv": targets})


def found_by(view: RunView) -> dict[str, CheckResult]:
    return {each.name: each for each in view.snapshot.checks}


class Oracle:
    """What the checks should find, in plain Python."""

    def __init__(self) -> None:
        self.loaded = ROWS
        self.updated = [
            {**row, "net": None if row["amount"] is None or row["id"] <= 20 else row["amount"] * 2} for row in ROWS
        ]
        self.kept = [row for row in self.updated if row["id"] <= 280]
        sums = Counter[Any]()
        given = set()
        for row in self.kept:
            sums[row["currency"]] += row["amount"] or 0
            given |= {row["currency"]} if row["amount"] is not None else set()
        self.totals = [{"currency": key, "amount": sums[key] if key in given else None} for key in sums]
        self.all = [*self.kept, *({**dict.fromkeys((*_NAMES, "net")), **row} for row in self.totals)]


ORACLE = Oracle()


def duplicates(rows: list[dict[str, Any]], *keys: str) -> int:
    counted = Counter(tuple(row[key] for key in keys) for row in rows if all(row[key] is not None for key in keys))
    return sum(count for count in counted.values() if count > 1)


def failing(rows: list[dict[str, Any]], test: Any) -> int:
    return sum(1 for row in rows if test(row))


POINTS: dict[str, list[dict[str, Any]]] = {
    "load": ORACLE.loaded,
    "10": ORACLE.updated,
    "Drop": ORACLE.kept,
    "end": ORACLE.all,
}


def rules(point: str, rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int | bool]]:
    """Checks of every kind, each with the number of rows that fail, or whether it passes."""
    total = sum((row["amount"] or Decimal(0) for row in rows), Decimal(0))
    newest = max(row["day"] for row in rows if row["day"] is not None)
    return [
        ({"not_null": ["amount", "code"]}, failing(rows, lambda r: r["amount"] is None or r["code"] is None)),
        ({"unique": "id"}, duplicates(rows, "id")),
        ({"unique": ["currency", "code"], "where": "id <= 30"},
         duplicates([r for r in rows if r["id"] is not None and r["id"] <= 30], "currency", "code")),
        ({"in_set": {"column": "currency", "values": ["EUR", "USD"]}},
         failing(rows, lambda r: r["currency"] not in {"EUR", "USD", None})),
        ({"range": {"column": "amount", "min": 0, "max": 50}},
         failing(rows, lambda r: r["amount"] is not None and not 0 <= r["amount"] <= 50)),
        ({"range": {"column": "day", "min": "2026-01-05"}},
         failing(rows, lambda r: r["day"] is not None and r["day"] < "2026-01-05")),
        ({"pattern": {"column": "code", "matches": "^[A-Z]-[0-9]+$"}},
         failing(rows, lambda r: r["code"] is not None and not re.search("^[A-Z]-[0-9]+$", r["code"]))),
        ({"expression": "amount * 3 >= id", "where": 'currency = "EUR"'},
         failing(rows, lambda r: r["currency"] == "EUR" and None not in (r["amount"], r["id"])
                 and r["amount"] * 3 < r["id"])),
        ({"total": f"SUM(amount) = {total}"}, True),
        ({"total": f"COUNT_ALL() > {len(rows)}"}, False),
        ({"total": "COUNT_DISTINCT(id) > 5 AND AVG(amount) > 0"}, True),
        ({"total": "MIN_AGG(amount) < 0 AND MAX_AGG(amount) > 50", "where": "id > 0"}, True),
        ({"total": "SUM(amount) > 0", "where": "id < 0"}, False),
        ({"total": {"expression": "SUM(amount)", "equals": "SUM(goal)", "of": "targets", "tolerance": 10}}, False),
        ({"total": {"expression": "COUNT(currency)", "equals": "COUNT_ALL()", "tolerance": 1000}}, True),
        ({"freshness": {"column": "day", "days": 3, "before": "period_end"}}, newest >= "2026-01-28"),
        ({"complete": "month"}, True),
        ({"complete": "quarter"}, True),
        ({"complete": "fortnight"}, False),
        ({"join_must_match": {"alias": "r", "dataset_id": "rates", "on": "orders.currency = r.currency"}},
         failing(rows, lambda r: r["currency"] not in {"EUR", "USD"})),
        ({"schema": {"columns": {"id": "integer", "missing": "date"}}}, False),
    ]  # fmt: skip


ALL_RULES = {
    f"{point} {number}": (rule, expected, point)
    for point, rows in POINTS.items()
    for number, (rule, expected) in enumerate(rules(point, rows))
}
WRITTEN = [{"name": name, "at": point, "severity": "warn", **rule} for name, (rule, _, point) in ALL_RULES.items()]


def test_every_kind_finds_what_plain_python_finds(shop: Shop) -> None:
    shop.project("all-kinds", *STEPS, checks=WRITTEN)
    view = shop.run("all-kinds")
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    found = found_by(view)
    assert found.keys() == ALL_RULES.keys()
    for name, (rule, expected, _) in ALL_RULES.items():
        result = found[name]
        if isinstance(expected, bool):
            assert (result.passed, result.failed_rows) == (expected, None), (name, rule, result)
        else:
            assert (result.failed_rows, result.passed) == (expected, expected == 0), (name, rule, result)


def test_the_rows_that_fail_are_found_without_spark_and_can_be_explained(shop: Shop) -> None:
    shop.project("found", *STEPS, checks=WRITTEN)
    run = Workspace(shop.root).get_run(shop.run("found").record.run_id)
    found = found_by(run.view)
    for name in ALL_RULES:
        result = found[name]
        if result.failed_rows is None:
            assert run.failing_rows(name).rows == ()
            continue
        rows = run.failing_rows(name, limit=1000)
        assert len(rows.rows) == result.failed_rows, (name, ALL_RULES[name][0])
        if rows.rows:
            first = rows.rows[0].row_id
            assert result.example == first, name
            assert run.failing_rows(name, limit=1).rows[0].row_id == first
            following = run.failing_rows(name, limit=1000, after=first)
            assert [row.row_id for row in following.rows] == [row.row_id for row in rows.rows[1:]]
    row = run.failing_rows("load 0").rows[0].row_id
    assert run.open_trace().history(row).entries[0].source is not None


def test_a_check_that_fails_stops_the_run_before_its_output_and_says_so_everywhere(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [
        {"name": "codes", "not_null": "code", "at": 10},
        {"name": "few", "total": "COUNT_ALL() < 10", "severity": "warn"},
    ]
    shop.project("strict", update(10, "net", "amount * 2"), output(30), checks=checks)
    before = shop.published()
    view = shop.run("strict")
    assert view.snapshot.status == "FAILED"
    assert view.snapshot.error is not None
    assert view.snapshot.error.code == "CheckFailed"
    nulls = sum(row["code"] is None for row in ROWS)
    assert f"{nulls:,} of {len(ROWS):,} rows fail" in view.snapshot.error.message
    assert shop.published() == before
    # Trying the step again does not decide twice, and does not pass either.
    again = shop.retry(view, 30)
    assert again.snapshot.status == "FAILED"
    assert [each.name for each in again.snapshot.checks] == ["codes", "few"]
    run_id = view.record.run_id
    assert command(["checks", run_id, "--rows", "--name", "codes", "--json", "-w", str(shop.root)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["outcome"], each["failed_rows"]) for each in document["checks"]] == [
        ("codes", "failed", nulls)
    ]
    assert len(document["rows"]["codes"]["rows"]) == 20
    assert all(row["code"] is None for row in document["rows"]["codes"]["rows"])
    report = shop.root / "checks.xml"
    assert command(["checks", run_id, "--junit", str(report), "-w", str(shop.root)]) == 1
    assert "rows fail" in capsys.readouterr().out
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert command(["checks", "--project", "strict", "--json", "-w", str(shop.root)]) == 0
    [told] = json.loads(capsys.readouterr().out)["runs"]
    assert [each["outcome"] for each in told["checks"]] == ["failed", "warned"]


def test_quarantined_rows_are_deleted_with_a_reason_and_counted(shop: Shop) -> None:
    checks = [
        {"name": "loaded", "not_null": "amount", "at": "load", "severity": "quarantine"},
        {"name": "known", "in_set": {"column": "currency", "values": ["EUR", "USD"]}, "at": "Set net 10",
         "where": "id > 5", "severity": "quarantine"},
        {"name": "left", "total": "COUNT_ALL() > 0"},
    ]  # fmt: skip
    shop.project("clean", update(10, "net", "amount * 2"), output(30), checks=checks)
    view = shop.run("clean")
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    without = [row for row in ROWS if row["amount"] is not None]
    unknown = [row for row in without if row["currency"] not in {"EUR", "USD", None} and row["id"] > 5]
    found = found_by(view)
    assert {name: (each.failed_rows, each.passed) for name, each in found.items()} == {
        "loaded": (len(ROWS) - len(without), False),
        "known": (len(unknown), False),
        "left": (None, True),
    }
    assert len(shop.read("reports/out30")) == len(without) - len(unknown)
    run = Workspace(shop.root).get_run(view.record.run_id)
    waterfall = run.reconcile().waterfalls[0]
    assert waterfall.ties
    assert [(line.seq, line.rows) for line in waterfall.lines if line.what == "deleted"] == [
        (1, len(ROWS) - len(without)),
        (11, len(unknown)),
    ]
    rows = run.failing_rows("known", limit=500)
    assert len(rows.rows) == len(unknown)
    last = run.open_trace().history(rows.rows[0].row_id).entries[-1]
    assert (last.operation_seq, last.change_type, last.step_name) == (11, "deleted", "Quarantine: known")
    assert run.plan is not None
    [step] = [each for each in run.plan.steps if each.seq == 11]
    assert step.summary == 'the check "known" failed: in_set currency'
    assert {event.body.NAME for event in run.events()} >= {"AlertRaised"}


def test_checks_of_a_dataset_look_at_its_rows_when_they_are_loaded_and_when_they_are_registered(shop: Shop) -> None:
    definition = json.loads((shop.root / "datasets/orders.yaml").read_text())
    targets = json.loads((shop.root / "datasets/targets.yaml").read_text())
    sums = {
        "id": "sums",
        "main_table": {
            "name": "sums",
            "columns": [{"name": "currency", "type": "string"}, {"name": "amount", "type": "decimal(38,2)"}],
        },
        "checks": [{"not_null": "currency", "severity": "warn"}, {"unique": "currency"}],
    }
    shop.write(
        {
            "datasets/orders.yaml": {**definition, "checks": [{"unique": "id", "severity": "warn"}]},
            "datasets/targets.yaml": {
                **targets,
                "checks": [{"range": {"column": "goal", "min": 60}, "severity": "warn", "name": "goals"}],
            },
            "datasets/sums.yaml": sums,
        }
    )
    append = {
        "seq": 20,
        "name": "Goals",
        "type": "append",
        "arguments": {
            "source": {"dataset_id": "targets"},
            "aggregation": {
                "group_by": ["targets.currency"],
                "aggregations": [{"column": "amount", "expression": "SUM(targets.goal)"}],
            },
        },
    }
    written = {
        **output(50, columns=["currency", "amount"], register_as_dataset="sums"),
        "selector": "id IS NULL",
    }
    shop.project("sums", append, written)
    view = shop.run("sums")
    shop.write({"datasets/orders.yaml": definition, "datasets/targets.yaml": targets})
    assert view.snapshot.status == "COMPLETED", view.snapshot.error
    assert {name: (each.failed_rows, each.passed) for name, each in found_by(view).items()} == {
        "orders: unique id": (duplicates(ROWS, "id"), False),
        "targets: goals": (1, False),
        "sums: not_null currency": (0, True),
        "sums: unique currency": (0, True),
    }


def test_rows_without_a_match_tell_of_the_columns_that_they_are_matched_by(shop: Shop) -> None:
    rates = json.loads((shop.root / "datasets/rates.yaml").read_text())
    settings = json.loads((shop.root / "clew.yaml").read_text())
    closed = copy.deepcopy(rates)
    closed["main_table"]["columns"][0]["privacy"] = "personal"
    shop.write({"datasets/rates.yaml": closed})
    join = {"alias": "r", "dataset_id": "rates", "on": "orders.currency = r.currency"}
    shop.project("matched", output(30), checks=[{"join_must_match": join, "severity": "warn", "name": "known"}])
    view = shop.run("matched")
    office = copy.deepcopy(settings)
    office["environments"]["dev"]["local_role"] = "operator"
    shop.write({"datasets/rates.yaml": rates, "clew.yaml": office})
    try:
        found = found_by(view)["known"]
        assert found.failed_rows == failing(ROWS, lambda row: row["currency"] not in {"EUR", "USD"})
        assert found.example is None
        run = Workspace(shop.root).get_run(view.record.run_id)
        with pytest.raises(UserError, match="currency"):
            run.failing_rows("known")
    finally:
        shop.write({"clew.yaml": settings})
