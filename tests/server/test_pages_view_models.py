"""What pages show, made of plain values."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from clew.diagnostics import Span
from clew.events.bodies import EventBody, RunFailed, StepFailed, StepStarted
from clew.events.envelope import RawEvent, StoredEvent
from clew.events.snapshot import RunSnapshot, RunStatus, StepSnapshot, StepStatus
from clew.events.values import Failure, FailureCategory
from clew.server.pages import addresses, words
from clew.server.pages.explain_nodes import with_values
from clew.server.pages.lineage_page import trace_graph
from clew.server.pages.run_page import operation_excerpt
from clew.server.pages.timeline import AXIS, timeline
from clew.tracelink import Direction, Lineage, TracePlace
from clew.tracelink.lineage_walk import LineageGraph, LineageNode

START = datetime(2026, 2, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_bars_stand_where_steps_ran_and_a_running_one_reaches_until_now() -> None:
    snapshot = RunSnapshot(
        "r",
        RunStatus.RUNNING,
        started_at=START,
        steps=(
            StepSnapshot("load", 0, "Load", "load", StepStatus.SUCCESS, started_at=START, completed_at=after(5)),
            StepSnapshot("10", 10, "Convert", "update", StepStatus.RUNNING, started_at=after(5)),
            StepSnapshot("20", 20, "Later", "update"),
        ),
    )
    shown = timeline(snapshot, after(20))
    first, second, third = (step.bar for step in shown.steps)
    assert first is not None
    assert second is not None
    assert (first.start, first.length) == (0, AXIS // 4)
    assert (second.start, second.length) == (AXIS // 4, AXIS * 3 // 4)
    assert third is None
    assert [tick.text for tick in shown.ticks] == ["5 s", "10 s", "15 s", "20 s"]
    assert [step.duration for step in shown.steps] == ["5.0 s", "15 s", ""]


def told(seconds: float, step_id: str, body: EventBody, attempt: int = 1) -> StoredEvent:
    raw = RawEvent(
        "r", 1, "e", step_id, attempt, 1, body.NAME, body.VERSION, {}, "k", after(seconds), after(seconds), "a"
    )
    return StoredEvent(raw, body)


def test_the_axis_shows_attempts_that_failed_and_leaves_out_how_long_the_run_waited() -> None:
    failure = Failure("JoinNotUnique", "2 rows match", FailureCategory.USER)
    step = StepSnapshot(
        *("10", 10, "Convert", "update", StepStatus.SUCCESS),
        logical_attempt_id=2,
        started_at=after(7205),
        completed_at=after(7210),
    )
    snapshot = RunSnapshot("r", RunStatus.COMPLETED, started_at=START, completed_at=after(7210), steps=(step,))
    events = (
        told(0, "10", StepStarted(10, "Convert")),
        told(5, "10", StepFailed(failure)),
        told(5, "RUN", RunFailed(failure, "10")),
        told(7205, "10", StepStarted(10, "Convert"), attempt=2),
    )
    shown = timeline(snapshot, after(9000), events)
    [earlier] = shown.steps[0].earlier
    assert (earlier.number, earlier.problem, earlier.duration) == (1, "2 rows match", "5.0 s")
    assert (earlier.bar.start, earlier.bar.length) == (0, AXIS // 2)
    assert shown.steps[0].bar is not None
    assert (shown.steps[0].bar.start, shown.steps[0].bar.length) == (AXIS // 2, AXIS // 2)
    assert (words.duration(shown.worked), shown.waited) == ("10 s", "2 h 0 min")
    assert [tick.text for tick in shown.ticks] == ["2 s", "4 s", "6 s", "8 s", "10 s"]


def test_names_from_right_to_left_do_not_turn_what_follows_around() -> None:
    assert words.isolated("Month close") == "Month close"
    assert words.isolated("إقفال الشهر") == "\u2068إقفال الشهر\u2069"


def test_a_step_says_what_it_did() -> None:
    def outcome(**changes: object) -> str:
        step = StepSnapshot("10", 10, "n", "update", StepStatus.SUCCESS, **changes)  # type: ignore[arg-type]
        return timeline(RunSnapshot("r", steps=(step,)), START).steps[0].outcome

    assert outcome(counts={"rows_updated": 1234}) == "1,234 changed"
    assert outcome(counts={"rows_created": 4, "rows_deleted": 1}) == "4 created, 1 deleted"
    assert outcome(counts={"rows_updated": 0}) == "nothing changed"
    failed = StepSnapshot("10", 10, "n", "update", StepStatus.FAILED, error=Failure("X", "m", FailureCategory.USER))
    assert timeline(RunSnapshot("r", steps=(failed,)), START).steps[0].outcome == ""


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("ROUND(amount * fx.rate, 2)", "ROUND(10.00 * 1.5, 2)"),
        ("t.amount", "10.00"),
        ('IF(kind = "amount", amount, 0)', 'IF("line" = "amount", 10.00, 0)'),
        ("`fx`.`rate` + unknown", "1.5 + unknown"),
        ("SUM(other)", ""),
        ("not ( an expression", ""),
    ],
)
def test_values_stand_in_the_place_of_columns(expression: str, shown: str) -> None:
    pieces = with_values(expression, {"amount": "10.00", "fx.rate": "1.5", "kind": '"line"'})
    assert "".join(piece.text for piece in pieces) == shown


def test_the_lines_of_an_operation_are_those_of_its_item() -> None:
    before = "operations:\n  - seq: 5\n    name: a\n\n  # why\n"
    source = before + "  - seq: 9\n    name: b\n    arguments:\n      x: 1\n  - seq: 10\n"
    for line in (6, 7, 9):
        excerpt = operation_excerpt(source, Span("p.yaml", line, 5))
        assert excerpt is not None
        assert [number for number, _ in excerpt.lines] == [6, 7, 8, 9]
        assert excerpt.lines[0][1] == "- seq: 9"
    assert operation_excerpt(source, Span("p.yaml", 99, 1)) is None


def test_values_are_told_apart() -> None:
    assert words.cell(None).kind == "null"
    assert words.cell("").kind == "empty"
    assert words.cell("NULL").kind == "text"
    assert words.cell(Decimal("1234567.50")).text == "1,234,567.50"
    assert words.cell(2026).text == "2026"
    assert words.cell(-1234567).text == "-1,234,567"
    assert words.cell(1234567.25).text == "1,234,567.25"
    assert words.cell(float("nan")).text == "NaN"
    assert words.cell(True).text == "TRUE"
    assert words.cell("x" * 1000).text.endswith("…")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "40 ms"), (0.42, "0.4 s"), (9.96, "10 s"), (61, "1 min 1 s"), (7800, "2 h 10 min")]
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert words.duration(timedelta(seconds=seconds)) == text


def test_addresses_keep_whatever_names_have_in_them() -> None:
    assert addresses.row("r", "a/b?c") == "/runs/r/rows/a%2Fb%3Fc"
    assert addresses.explanation("r", "x", "a&b=c", at=0) == "/runs/r/explain?row=x&column=a%26b%3Dc&at=0"
    assert addresses.as_json("/runs/r/rows?at=1") == "/runs/r/rows.json?at=1"
    assert addresses.rows("r", where="", columns=["a", "b"]) == "/runs/r/rows?columns=a&columns=b"


def test_a_trace_is_drawn_from_the_lines_of_files_to_the_row() -> None:
    nodes = (LineageNode(7, 0, expanded=True), LineageNode(5, 1, expanded=True), LineageNode(6, 1, expanded=False))
    total = TracePlace(
        trace_id=7, run_id="r", project="gl-close", period="2026-01", operation_seq=40, step_name="Totals", row_id="x"
    )
    loaded = TracePlace(
        trace_id=5,
        run_id="r",
        project="gl-close",
        period="2026-01",
        operation_seq=0,
        row_id="y",
        file="a.csv",
        line=1207,
    )
    lineage = Lineage(LineageGraph(7, Direction.UP, nodes, ((7, 5), (7, 6))), {7: (total,), 5: (loaded,)}, {})
    graph = trace_graph(lineage)
    assert graph.edges == (("5", "7"), ("6", "7"))
    root, source, rest = graph.nodes
    assert (root.title, root.subtitle, root.is_here) == ("step 40 Totals", "gl-close, 2026-01", True)
    assert (source.kind, source.title, source.address) == ("source", "a.csv line 1,207", "/runs/r/rows/y")
    assert (rest.kind, rest.title) == ("rest", "6")
