"""Questions that cannot be answered, and files that are not what was written."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.diagnostics import ClewError, EngineBug, UserError
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import PartFile
from clew.storage.roots import storage_at
from clew.storage.row_identity import RowIds, ordinal_of
from clew.trace.reader import RunTrace
from tests.trace.random_projects import PERIOD, compiled, interpreted
from tests.trace.trace_writer import RUN, TODAY, Style, Writer

OPERATIONS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "selector": "amount > 1",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    },
    {"seq": 20, "name": "Drop", "type": "delete", "selector": "k = 2"},
    {
        "seq": 30,
        "name": "Totals",
        "type": "aggregate",
        "arguments": {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]},
    },
    {
        "seq": 40,
        "name": "Name totals",
        "type": "update",
        "selector": "total IS NOT NULL",
        "arguments": {"assignments": [{"column": "currency", "expression": '"<b>all</b>"'}]},
    },
    {"seq": 50, "name": "Add", "type": "append", "arguments": {"source": {"dataset_id": "extra"}}},
    {
        "seq": 60,
        "name": "Write",
        "type": "output",
        "arguments": {"destination": {"location": {"format": "parquet", "path": "out"}}, "columns": ["k", "amount"]},
    },
]
PROJECT = {
    "id": "p",
    "name": "p",
    "version": 1,
    "status": "active",
    "input_dataset": "main",
    "operations": OPERATIONS,
}


def row(k: int) -> dict[str, Any]:
    moment = datetime(2026, 1, k, 12, 30, tzinfo=UTC).replace(tzinfo=None)
    cells = {"k": k, "amount": Decimal(k), "currency": "EUR", "flag": k > 1, "day": None, "at": moment, "share": 0.5}
    return cells | {"_period": PERIOD}


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    plan = compiled(tmp_path / "workspace", PROJECT)
    assert plan is not None
    data = {"main": [row(k) for k in range(1, 6)], "dim": [], "extra": [{"k": 9, "amount": None, "currency": "x"}]}
    return Writer(tmp_path / "storage", interpreted(plan, data, TODAY), Style(row_group=2))


@pytest.fixture
def trace(writer: Writer) -> RunTrace:
    return writer.write()


def row_id(trace: RunTrace, index: int) -> str:
    return trace.row_ids.row_id(ordinal_of(0, index))


@pytest.mark.parametrize(
    ("row_id", "problem"),
    [
        (RowIds("another run").row_id(0), "is a row of another run"),
        (RowIds(RUN).row_id(5), "the run has no row"),
        (RowIds(RUN).row_id(ordinal_of(999, 0)), "the run has no row"),
        ("JE-001", '"JE-001" is not a row id'),
        ("", '"" is not a row id'),
    ],
)
def test_a_row_without_records_gives_an_empty_answer_that_says_why(trace: RunTrace, row_id: str, problem: str) -> None:
    history = trace.history(row_id)
    state = trace.state(row_id, 10)
    assert (history.entries, state.state) == ((), None)
    for diagnostic in (history.diagnostic, state.diagnostic):
        assert diagnostic is not None
        assert diagnostic.code == "RowNotFound"
        assert problem in diagnostic.message
    assert history.to_json()["history"] == []
    assert history.to_arrow().num_rows == 0


def test_a_row_that_does_not_exist_yet_says_when_it_does(trace: RunTrace) -> None:
    [total] = trace.search("total IS NOT NULL").rows
    state = trace.state(total.row_id, 20)
    assert state.state is None
    assert state.diagnostic is not None
    assert "was created in step 30, it did not exist yet after step 20" in state.diagnostic.message


@pytest.mark.parametrize("ask", [lambda trace: trace.state(row_id(trace, 0), 15), lambda trace: trace.step_rows(15)])
def test_a_step_that_the_run_does_not_have_is_refused_with_those_that_it_has(
    trace: RunTrace, ask: Callable[[RunTrace], object]
) -> None:
    with pytest.raises(UserError) as caught:
        ask(trace)
    assert caught.value.code == "StepOutOfRange"
    assert caught.value.diagnostic.message == "the run has no step 15; its steps are 10, 20, 30, 40, 50, 60"


def test_step_zero_is_loading_and_an_output_step_has_the_state_before_it(trace: RunTrace) -> None:
    loaded, written = trace.state(row_id(trace, 1), 0).state, trace.state(row_id(trace, 1), 60).state
    assert loaded is not None
    assert written is not None
    assert (loaded["amount"], loaded["_deleted"]) == (Decimal("2.00"), False)
    assert (written["amount"], written["_deleted"]) == (Decimal("4.00"), True)
    assert trace.step_rows(60).records == ()


def test_a_loaded_row_knows_its_file_and_line_and_an_appended_one_too(trace: RunTrace) -> None:
    source = trace.history(row_id(trace, 3)).entries[0].source
    assert source is not None
    assert (source.dataset, source.version, source.file, source.line) == ("main", 1, "t.csv", 5)
    [appended] = trace.search("k = 9").rows
    [entry] = trace.history(appended.row_id).entries
    assert entry.source is not None
    assert (entry.operation_seq, entry.change_type) == (50, "created")
    assert (entry.source.dataset, entry.source.file, entry.source.line) == ("extra", "x.csv", 2)


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("amuont > 1", "UnknownColumn"),
        ("amount >", "SyntaxError"),
        ("amount + 1", "TypeMismatch"),
        ("SUM(amount) > 1", "AggregateNotAllowed"),
        ("other.amount > 1", "UnknownTable"),
    ],
)
def test_a_condition_that_is_wrong_is_refused_as_everywhere(trace: RunTrace, where: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        trace.search(where)
    assert caught.value.code == code


def test_a_column_that_a_later_step_adds_cannot_be_searched_before_it(trace: RunTrace) -> None:
    assert len(trace.search("total > 0", at=30).rows) == 1
    with pytest.raises(UserError, match="UnknownColumn"):
        trace.search("total > 0", at=20)


def test_pages_that_make_no_sense_are_refused(trace: RunTrace) -> None:
    for ask in (lambda: trace.search(None, limit=0), lambda: trace.step_rows(10, after="x")):
        with pytest.raises(UserError) as caught:
            ask()
        assert caught.value.code == "InvalidPage"


# Damage


def files_of(trace: RunTrace) -> list[PartFile]:
    return [file for part in trace.parts for file in part.files]


def answers(trace: RunTrace) -> list[object]:
    """Everything that can be asked, with failures as answers."""
    ids = [row_id(trace, index) for index in range(5)]
    questions: list[Callable[[], object]] = [
        *((lambda each=each: trace.history(each)) for each in ids),
        *((lambda each=each: trace.state(each, 40)) for each in ids),
        lambda: trace.search("amount > 1"),
        lambda: trace.search(None, at=20),
        lambda: trace.step_rows(10),
        lambda: trace.step_rows(30),
        trace.counts,
    ]
    found = list[object]()
    for question in questions:
        try:
            found.append(question())
        except UserError as error:
            found.append(error.diagnostic)
    return found


@pytest.mark.parametrize("damage", ["truncated", "missing", "emptied", "grown"])
@pytest.mark.parametrize("index", range(6))
def test_a_file_that_is_not_as_it_was_written_is_named_and_no_value_is_wrong(
    trace: RunTrace, damage: str, index: int
) -> None:
    right = answers(trace)
    files = files_of(trace)
    if index >= len(files):
        index = 0
    file = files[index]
    path = Path(trace.root.source(file.path))
    content = path.read_bytes()
    match damage:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "missing":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case _:
            path.write_bytes(content + b"x")
    damaged = answers(replace(trace))
    assert any(each != before for each, before in zip(damaged, right, strict=True)) or file.path.count("extra")
    for each, before in zip(damaged, right, strict=True):
        if each != before:
            assert getattr(each, "code", None) == "DamagedTrace"
            assert file.path in getattr(each, "message", "")
    with pytest.raises(UserError, match="DamagedTrace"):
        replace(trace).verify()


def test_bytes_that_were_flipped_are_found_by_verifying(trace: RunTrace) -> None:
    trace.verify()
    for file in files_of(trace):
        path = Path(trace.root.source(file.path))
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0x40
        path.write_bytes(bytes(content))
        with pytest.raises(UserError) as caught:
            replace(trace).verify()
        assert caught.value.code == "DamagedTrace"
        assert [each.params["file"] for each in caught.value.diagnostics] == [file.path]
        content[len(content) // 3] ^= 0x40
        path.write_bytes(bytes(content))
    trace.verify()


def history_or_damage(trace: RunTrace, row_id: str) -> object:
    try:
        return trace.history(row_id)
    except ClewError as error:
        return str(error)


def search_or_damage(trace: RunTrace) -> object:
    try:
        return trace.search("amount = 4")
    except ClewError as error:
        return str(error)


def test_whichever_byte_of_a_small_file_was_flipped_nothing_is_read_from_it(trace: RunTrace) -> None:
    [changes] = [file for part in trace.parts if part.name == "10-20" for file in part.files]
    path = Path(trace.root.source(changes.path))
    content = path.read_bytes()
    for position in range(0, len(content), 29):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :])
        copy = replace(trace)
        for found in (history_or_damage(copy, row_id(copy, 3)), search_or_damage(copy)):
            assert f"DamagedTrace: {changes.path}" in str(found)


def test_in_a_large_file_a_flipped_value_is_found_too(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2 << 20)
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({"__ordinal": [7], "text": [content]}), path, compression="none", write_page_checksum=True)
    stored = bytearray(path.read_bytes())
    place = stored.index(content[: 1 << 10]) + 5
    file = PartFile("large.parquet", 1, len(stored), hashlib.sha256(stored).hexdigest())
    assert TraceFiles(storage_at(tmp_path)).row_with(file, 7, ["text"]) is not None
    stored[place] ^= 1
    path.write_bytes(bytes(stored))
    with pytest.raises(UserError, match=r"DamagedTrace: large\.parquet"):
        TraceFiles(storage_at(tmp_path)).row_with(file, 7, ["text"])


def test_two_parts_that_created_the_same_rows_are_a_contradiction(writer: Writer) -> None:
    trace = writer.write()
    created = next(part for part in trace.parts if part.kind == "created")
    again = replace(created, name="50", seq=55)
    with pytest.raises(EngineBug) as caught:
        replace(trace, parts=(*trace.parts, again))
    assert caught.value.code == "TraceIntegrityError"


def test_a_part_that_the_history_does_not_name_is_missed_by_name(trace: RunTrace) -> None:
    without = tuple(part for part in trace.parts if part.kind != "input")
    with pytest.raises(UserError, match="pinned no dataset main") as caught:
        replace(trace, parts=without).history(row_id(trace, 0))
    assert caught.value.code == "IncompleteTrace"


# Forms


def test_json_has_the_names_that_tools_rely_on(trace: RunTrace) -> None:
    data = trace.history(row_id(trace, 1)).to_json()
    assert data["row_id"] == row_id(trace, 1)
    history: Any = data["history"]
    assert [entry["operation_seq"] for entry in history] == [0, 10, 20]
    assert [entry["change_type"] for entry in history] == ["created", "updated", "deleted"]
    assert history[1]["diff"] == {"amount": {"old": "2.00", "new": "4.00"}}
    assert history[2]["diff"] == {"_deleted": {"old": False, "new": True}}
    assert history[2]["full_state"]["_deleted"] is True
    assert history[0]["full_state"]["at"] == "2026-01-02T12:30:00"
    assert history[0]["source"]["line"] == 3
    step: Any = trace.step_rows(20).to_json()
    assert step["rows"] == [
        {
            "run_id": trace.run_id,
            "operation_seq": 20,
            "row_id": row_id(trace, 1),
            "change_type": "deleted",
            "before": {"_deleted": False},
            "after": None,
        }
    ]
    rows: Any = trace.search("k = 1").to_json()["rows"]
    assert (rows[0]["row_id"], rows[0]["amount"]) == (row_id(trace, 0), "1.00")


def test_tables_are_typed_as_the_plan_has_it(trace: RunTrace) -> None:
    table = trace.search(None).to_arrow()
    assert table.schema.field("amount").type == pa.decimal128(12, 2)
    assert table.schema.field("at").type == pa.timestamp("us")
    assert table.num_rows == 7
    history = trace.history(row_id(trace, 1)).to_arrow()
    assert history["changed"].to_pylist()[1:] == [["amount"], ["_deleted"]]
    assert history["amount"].to_pylist() == [Decimal("2.00"), Decimal("4.00"), Decimal("4.00")]
    step = trace.step_rows(10, limit=1).to_arrow()
    assert step["before.amount"].to_pylist() == [Decimal("2.00")]
    assert step["after.amount"].to_pylist() == [Decimal("4.00")]


def test_html_for_notebooks_escapes_what_users_wrote(trace: RunTrace) -> None:
    [total] = trace.search("total IS NOT NULL").rows
    for shown in (trace.history(total.row_id), trace.search("total IS NOT NULL"), trace.step_rows(40)):
        html = shown._repr_html_()
        assert "&lt;b&gt;all&lt;/b&gt;" in html
        assert "<b>all</b>" not in html


def test_rows_of_other_periods_in_the_files_of_a_managed_dataset_are_not_there(trace: RunTrace) -> None:
    changed = [
        replace(part, details={**(part.details or {}), "periods": "2026-02, 2026-03"}) if part.name == "main" else part
        for part in trace.parts
    ]
    other = replace(trace, parts=tuple(changed))
    assert other.history(row_id(trace, 0)).entries == ()
    assert other.search("k = 1", at=0).rows == ()
    mine = replace(
        trace, parts=tuple(replace(p, details={"periods": PERIOD}) if p.name == "main" else p for p in changed)
    )
    assert mine.search(None, at=0).rows == trace.search(None, at=0).rows


def test_a_column_may_have_the_name_that_duckdb_gives_to_positions(tmp_path: Path) -> None:
    columns = {"k": "integer", "File_Row_Number": "integer"}
    datasets = {"main": {"columns": columns, "mode": "none", "table": "t"}}
    double = {"column": "File_Row_Number", "expression": "File_Row_Number * 2"}
    step = {"seq": 1, "name": "Double", "type": "update", "selector": "k > 1", "arguments": {"assignments": [double]}}
    plan = compiled(tmp_path / "workspace", PROJECT | {"operations": [step]}, datasets)
    assert plan is not None
    rows = [{"k": k, "File_Row_Number": 100 - k} for k in range(7)]
    writer = Writer(tmp_path / "storage", interpreted(plan, {"main": rows}, TODAY), Style(files=2, row_group=2))
    trace = writer.write()
    held = {trace.row_ids.row_id(o): s for o, s in zip(writer.ordinals, writer.recorded.states[1], strict=True)}
    assert {found.row_id: found.state for found in trace.search(None).rows} == held
    assert [found.state["k"] for found in trace.search("File_Row_Number = 192").rows] == [4]
