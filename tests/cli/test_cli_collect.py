"""`clew collect` and `clew lineage`: what processes send, followed by trace ids."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import clew as clew_package
from clew.api.state import open_state
from clew.api.window_expansion import Expanded
from clew.diagnostics import UserError
from clew.tracelink import Bounds, Emitter, FrameDescriptor, TraceBatch, TracedStream, TraceWindow
from tests.cli.conftest import Clew

PATIENCE = 60


@contextmanager
def collector(workspace: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """A collector in a separate process, and where it listens."""
    command = [sys.executable, "-m", "clew.cli", "collect", "--bind", "127.0.0.1:0", "--json", *options]
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("collecting at 127.0.0.1:"), line
        try:
            yield process, ("127.0.0.1", int(line.partition(";")[0].rpartition(":")[2]))
        finally:
            process.kill()


def stopped(process: subprocess.Popen[str], number: signal.Signals) -> dict[str, int]:
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    counts: dict[str, int] = json.loads(out)
    return counts


@pytest.mark.parametrize(("milliseconds", "problem"), [("9", "9 is less than 10"), ("101", "101 is more than 100")])
def test_writes_are_gathered_for_10_to_100_milliseconds(
    clew: Clew, sample: Path, milliseconds: str, problem: str
) -> None:
    refused = clew("collect", "--batch-ms", milliseconds, cwd=sample)
    assert refused.code == 2
    assert problem in refused.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_collector_that_is_told_to_stop_writes_what_has_come_and_prints_its_counts(
    sample: Path, clew: Clew, number: signal.Signals
) -> None:
    workspace = clew_package.open(sample)
    with collector(sample, "--batch-ms", "100") as (process, address), workspace.tracing() as tracing:
        with Emitter(address) as emitter:
            orders = TracedStream(emitter, tracing.ids, stream_id=1, epoch=1)
            totals = TracedStream(emitter, tracing.ids, stream_id=2, epoch=1)
            parents = [orders.root(seq) for seq in range(3)]
            total = totals.join(0, parents)
            assert emitter.close(PATIENCE).sent == 5
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"\xff" * 100, address)
            stranger.sendto(b"abc", address)
        counts = stopped(process, number)
    assert (counts["received"], counts["written"], counts["dropped"]) == (5, 7, 0)
    assert (counts["unknown_schema"], counts["bad"]) == (1, 1)

    answer = clew("lineage", total, cwd=sample)
    assert answer.code == 0
    assert answer.out.splitlines() == [
        f"{total}  stream 2, epoch 1, seq 0",
        *(f"├─ {parents[n]}  stream 1, epoch 1, seq {n}" for n in range(2)),
        f"└─ {parents[2]}  stream 1, epoch 1, seq 2",
        "4 traces, 3 links",
    ]


def test_a_collector_listens_for_other_machines_only_when_asked_to(sample: Path, clew: Clew) -> None:
    answer = clew("collect", "--bind", "0.0.0.0:0", "--json", cwd=sample)
    assert answer.code == 2
    assert answer.json["error"]["code"] == "RemoteNotAllowed"


def test_counts_are_said_in_words_too(sample: Path, clew: Clew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.cli.commands.collect._announce", lambda *_arguments: signal.raise_signal(signal.SIGTERM))
    answer = clew("collect", "--bind", "127.0.0.1:0", cwd=sample)
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "received 0 messages in 0 datagrams, 0 not traced",
        "written  0 records in 0 transactions, 0 already known",
        "skipped  0 bad, 0 of unknown schemas",
        "dropped  0 messages, 0 datagrams before they were received",
    ]


@pytest.fixture
def traced(sample: Path) -> Path:
    """A workspace in whose store 6 came from 4 and 5, 4 from 1 and 2, and 9 is a window over frames of 1 to 3."""
    with open_state(clew_package.open(sample).run_environment) as state:
        state.tracelink.writer.write(
            TraceBatch(
                frames=[(7, 1, trace_id, 0, 100 + trace_id, trace_id, 0) for trace_id in (1, 2, 3)],
                links=[(6, 4), (6, 5), (4, 1), (4, 2)],
                windows=[TraceWindow(trace_id=9, in_stream_id=7, epoch=1, bounds=Bounds.of_seq(1, 3))],
            )
        )
    return sample


def test_the_way_up_ends_at_leaves_that_say_what_they_are(traced: Path, clew: Clew) -> None:
    document = clew("lineage", "6", "--json", cwd=traced).json
    assert (document["trace_id"], document["direction"], document["complete"]) == (6, "up", True)
    assert {(link["trace_id"], link["parent_trace_id"]) for link in document["links"]} == {
        (6, 4),
        (6, 5),
        (4, 1),
        (4, 2),
    }
    leaves = {node["trace_id"]: node for node in document["nodes"] if node["is_leaf"]}
    assert leaves.keys() == {1, 2, 5}
    assert leaves[1]["frames"] == [
        {"trace_id": 1, "stream_id": 7, "epoch": 1, "seq": 1, "stage_id": 0, "t_ns": 101, "status": 0}
    ]
    assert leaves[1]["depth"] == 2


def test_the_way_down_and_depth_and_limit(traced: Path, clew: Clew) -> None:
    down = clew("lineage", "1", "--down", "--json", cwd=traced).json
    assert {node["trace_id"] for node in down["nodes"]} == {1, 4, 6, 9}
    shallow = clew("lineage", "6", "--up", "--depth", "1", cwd=traced).out
    assert shallow.splitlines() == ["6", "├─ 4 …", "└─ 5 …", "3 traces, 2 links; a limit ended the search"]
    narrow = clew("lineage", "6", "--limit", "2", "--json", cwd=traced).json
    assert (len(narrow["nodes"]), narrow["complete"]) == (2, False)


def test_a_graph_for_graphviz(traced: Path, clew: Clew) -> None:
    out = clew("lineage", "6", "--dot", cwd=traced).out
    assert out.startswith("digraph lineage {")
    assert '  "4" -> "6";' in out
    assert '"1" [label="1\\nstream 7, epoch 1, seq 1"];' in out


def test_expansion_changes_no_answer_and_adds_nothing_twice(traced: Path, clew: Clew) -> None:
    before = clew("lineage", "9", "--json", cwd=traced).json
    first = clew("lineage", "--expand", "--json", cwd=traced).json
    assert first == {"windows": 1, "links": 3, "transactions": 1, "runs": []}
    assert clew("lineage", "--expand", cwd=traced).out == "0 new links from 1 window in the state store\n"
    assert clew("lineage", "9", "--json", cwd=traced).json == before


@pytest.mark.parametrize(("named", "asked"), [("all", None), ("13a86bf9", "13a86bf9")])
def test_windows_of_runs_are_expanded_where_a_run_is_named(
    traced: Path, clew: Clew, monkeypatch: pytest.MonkeyPatch, named: str, asked: str | None
) -> None:
    def expanded(_at: object, run: str | None) -> Iterator[Expanded]:
        assert run == asked
        yield Expanded("13a86bf9-0000", 40, 1455)

    monkeypatch.setattr("clew.api.window_expansion.expand_windows", expanded)
    answer = clew("lineage", "--expand", "--run", named, cwd=traced)
    assert answer.out.splitlines()[1] == "1,455 new links of step 40 of run 13a86bf9"


@pytest.mark.parametrize("command", [["lineage", "77"], ["lineage", "77", "--down"]])
def test_a_trace_that_nobody_knows_is_not_found(traced: Path, clew: Clew, command: list[str]) -> None:
    answer = clew(*command, "--json", cwd=traced)
    assert answer.code == 3
    assert answer.json["error"]["code"] == "TraceNotFound"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["6", "--expand"],
        ["6", "--up", "--down"],
        ["six"],
        ["-1"],
        ["0"],
        ["18446744073709551616"],
        ["٦"],
        ["6", "--run", "all"],
    ],
)
def test_what_makes_no_question_is_wrong_usage(traced: Path, clew: Clew, arguments: list[str]) -> None:
    assert clew("lineage", *arguments, cwd=traced).code == 2


def test_lineage_from_python(traced: Path) -> None:
    workspace = clew_package.open(traced)
    answer = workspace.lineage(6)
    assert answer.leaves == (5, 1, 2)
    assert answer.tree().splitlines()[0] == "6"
    assert answer.to_arrow().column("trace_id").to_pylist() == [6, 4, 5, 1, 2]
    assert list(answer.to_pandas()["depth"]) == [0, 1, 1, 2, 2]
    assert "stream 7, epoch 1, seq 1" in answer._repr_html_()
    assert workspace.lineage(2, "down", depth=1).is_complete is False
    assert workspace.expand_lineage().links == 3
    with pytest.raises(UserError) as unknown:
        workspace.lineage(77)
    assert unknown.value.code == "TraceNotFound"


def test_a_frame_that_is_there_is_known_though_it_has_no_links(traced: Path, clew: Clew) -> None:
    with open_state(clew_package.open(traced).run_environment) as state:
        lonely = FrameDescriptor(3, 1, 8, timestamp_ns=5, trace_id=88)
        state.tracelink.writer.write(TraceBatch(frames=[(3, 1, 8, 0, 5, lonely.trace_id, 0)]))
    assert clew("lineage", "88", cwd=traced).out == "88  stream 3, epoch 1, seq 8\n1 trace, 0 links\n"


def test_a_configured_node_id_is_held_by_one_process_at_a_time(sample: Path) -> None:
    workspace = clew_package.open(sample)
    with workspace.tracing(node_id=17) as tracing:
        assert tracing.ids.node_id == 17
        with pytest.raises(UserError) as taken, workspace.tracing(node_id=17):
            pass
    assert taken.value.code == "NodeIdTaken"
