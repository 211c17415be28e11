"""Manual corrections: what is wrong with their definition, what a run makes of them, and how they are asked about."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from tests.engine.engine_workspaces import Shop, make_shop
from tests.trace.interpreted_shop import output
from tests.trace.interpreting_engine import InterpretingEngine

ABOUT = ("adjustment", "action", "reason", "made_by", "approved_by")
COLUMNS = [
    *({"name": name, "type": "string"} for name in ABOUT),
    {"name": "id", "type": "integer"},
    {"name": "currency", "type": "string"},
    {"name": "amount", "type": "decimal(12,2)"},
    {"name": "old_amount", "type": "decimal(12,2)"},
]
DATASET: dict[str, Any] = {
    "id": "corrections",
    "adjusts": "orders",
    "natural_key": ["adjustment"],
    "main_table": {"name": "corrections", "temporal_mode": "bitemporal", "columns": COLUMNS},
}
ORDERS = [
    {"id": number, "currency": "EUR", "amount": Decimal(10 * number), "_period": period}
    for period in ("2026-01", "2026-02")
    for number in (1, 2, 3, 4)
]


def correction(name: str, action: str, number: int, **more: Any) -> dict[str, Any]:
    plain = {column["name"]: None for column in COLUMNS}
    about = {"adjustment": name, "action": action, "reason": "booked twice", "made_by": "ada", "approved_by": "bob"}
    days = {"_period_from": date(2026, 1, 1), "_period_to": None}
    return {**plain, **about, "id": number, **days, **more}


CORRECTIONS = [
    correction("A-1", "change", 1, amount=Decimal(5), old_amount=Decimal(10), _period_to=date(2026, 2, 1)),
    correction("A-2", "change", 2, amount=Decimal(7), approved_by=None),
    correction("A-3", "change", 3, amount=Decimal(7), approved_by="ada"),
    correction("A-4", "change", 4, amount=Decimal(7), old_amount=Decimal(99)),
    correction("A-5", "add", 9, amount=Decimal("1.50"), currency="USD"),
]


def shop_with(root: Path, dataset: dict[str, Any]) -> Shop:
    use = {"seq": 10, "use": {"fragment": "corrections", "as": "corrected"}}
    written = output(90, "Write", "out/{period}", columns=["id", "currency", "amount", "adjusted_by"])
    return make_shop(root).write({"datasets/corrections.yaml": dataset}).project("reserves", use, written)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Run, Run]:
    """A workspace with a run for January and one for February."""
    root = tmp_path_factory.mktemp("adjusted")
    shop = shop_with(root, DATASET)
    data = {"orders": ORDERS, "corrections": CORRECTIONS}
    with pytest.MonkeyPatch.context() as patch:

        def engine(_workspace: object, environment: Any, datasets: Any, *_others: object, **_more: object) -> Any:
            return InterpretingEngine(environment.storage_root, datasets, data)

        patch.setattr("clew.api.starting.SparkExecutors", engine)
        patch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
        january = shop.run("reserves", "2026-01").record.run_id
        patch.setattr("tests.trace.interpreting_engine.FIRST_DAY", date(2026, 2, 1))
        february = shop.run("reserves", "2026-02").record.run_id
    workspace = clew.open(root)
    return workspace, workspace.get_run(january), workspace.get_run(february)


def amounts(run: Run) -> dict[object, tuple[object, object]]:
    rows = run.trace(where="id > 0").rows
    return {row.state["id"]: (row.state["amount"], row.state["adjusted_by"]) for row in rows}


def test_rows_are_changed_and_added_as_approved_adjustments_in_force_say(ran: tuple[Workspace, Run, Run]) -> None:
    _, january, february = ran
    unchanged = {number: (Decimal(10 * number), None) for number in (2, 3, 4)}
    assert amounts(january) == {1: (Decimal(5), "A-1"), **unchanged, 9: (Decimal("1.50"), "A-5")}
    assert amounts(february) == {1: (Decimal(10), None), **unchanged, 9: (Decimal("1.50"), "A-5")}


def test_adjustments_of_a_run_are_those_in_force_with_what_became_of_them(ran: tuple[Workspace, Run, Run]) -> None:
    _, january, february = ran
    told = {each.name: each.status for each in january.adjustments()}
    assert told == {
        "A-1": "applied",
        "A-2": "not approved",
        "A-3": "not approved",
        "A-4": "not applied",
        "A-5": "applied",
    }
    assert [each.name for each in february.adjustments()] == ["A-2", "A-3", "A-4", "A-5"]
    first = january.adjustments()[0]
    assert (first.values, first.old) == ({"id": 1, "amount": Decimal(5)}, {"old_amount": Decimal(10)})
    assert [january.trace(row).entries[-1].diff["amount"].new for row in first.row_ids] == [Decimal(5)]


def test_an_explanation_says_why_there_is_an_adjustment_and_who_made_and_approved_it(
    ran: tuple[Workspace, Run, Run],
) -> None:
    _, january, _ = ran
    text = str(january.explain(january.row_where("id = 1"), "amount"))
    assert 'step 10 "Adjust orders"' in text
    assert "booked twice (made by ada, approved by bob)" in text
    assert "recomputed: equal" in text


def test_the_command_lists_them(
    ran: tuple[Workspace, Run, Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, january, _ = ran
    monkeypatch.chdir(workspace.root)
    assert command(["adjustments", january.id]) == 0
    told = capsys.readouterr().out
    assert "A-1  applied" in told
    assert "change id 1, amount 10.00 -> 5.00" in told
    assert "booked twice; made by ada, approved by no one" in told


def test_each_question_is_on_record(ran: tuple[Workspace, Run, Run]) -> None:
    workspace, january, _ = ran
    january.adjustments()
    [entry] = workspace.operations.access_records(limit=1)
    assert "adjustments" in str(entry.to_json())


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"adjusts": "ordres"}, "UnknownDataset", "ordres"),
        ({"adjusts": "rates"}, "InvalidValue", "has no natural_key"),
        ({"adjusts": "corrections"}, "InvalidValue", "is one of adjustments"),
        ({"temporal_mode": "none"}, "InvalidValue", "in force from one day until another"),
        ({"without": "reason"}, "InvalidValue", "adjustments need the column reason: why"),
        ({"without": "id"}, "InvalidValue", "adjustments need the column id, which identifies rows"),
        ({"type_of": ("amount", "integer")}, "InvalidValue", "decimal(12,2), and integer here"),
        ({"more": "amuont"}, "InvalidValue", '"amuont" is neither one of "orders"'),
    ],
)
def test_what_is_wrong_with_a_dataset_of_adjustments_is_said(
    tmp_path: Path, change: dict[str, Any], code: str, words: str
) -> None:
    columns = [dict(column) for column in COLUMNS if column["name"] != change.get("without")]
    name, type_ = change.get("type_of", ("", ""))
    columns = [{**column, "type": type_} if column["name"] == name else column for column in columns]
    columns += [{"name": change["more"], "type": "string"}] if "more" in change else []
    table = {**DATASET["main_table"], "columns": columns}
    table["temporal_mode"] = change.get("temporal_mode", "bitemporal")
    shop_with(tmp_path, {**DATASET, "adjusts": change.get("adjusts", "orders"), "main_table": table})
    [found] = clew.open(tmp_path).check().diagnostics
    assert found.code == code
    assert words in found.message
    assert found.span is not None
    assert found.span.file == "datasets/corrections.yaml"


def test_a_fragment_of_the_same_id_is_refused(tmp_path: Path) -> None:
    operations = [{"seq": 1, "name": "x", "type": "delete", "selector": "amount < 0"}]
    shop_with(tmp_path, DATASET).write({"fragments/f.yaml": {"id": "corrections", "operations": operations}})
    assert "DuplicateId" in [each.code for each in clew.open(tmp_path).check().diagnostics]
