"""Links between rows that were not written but derived from steps and keys, against groups that are remembered."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.explain.explaining import explain
from clew.explain.row_links import RowLinks
from clew.explain.tree import Summarised
from clew.plan.operations import AggregateStep, AppendStep, Step
from clew.storage.parts import IdBlock, Part
from clew.trace.reader import RunTrace
from clew.tracelink import Link, TraceIdGenerator
from tests.plan.plan_interpreter import Cells, _grouped
from tests.tiers import examples
from tests.trace.random_projects import PERIOD, compiled, projects, tables
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import TODAY, Style, Writer

Behind = list[list[int]]


@dataclass(slots=True)
class Grouping(Recorded):
    """Remembers for each summary row the rows behind it, by index: in the working dataset, or in the source."""

    of_rows: dict[int, Behind] = field(default_factory=dict)
    of_source: dict[int, Behind] = field(default_factory=dict)

    def _take(self, step: Step) -> None:
        if isinstance(step, AggregateStep):
            groups = [group for _, group in _grouped(self._selected(step), step.group_by) if self._has(step, group)]
            self.of_rows[step.seq] = _indexes(self.rows, groups)
        elif isinstance(step, AppendStep) and step.group_by is not None:
            loaded = self._load(step.source)
            chosen = self._matching(step.source_selector, list(loaded), step.source.table)
            self.of_source[step.seq] = _indexes(loaded, [group for _, group in _grouped(chosen, step.group_by)])
        Recorded._take(self, step)


def _indexes(rows: list[Cells], groups: list[list[Cells]]) -> Behind:
    places = {id(row): index for index, row in enumerate(rows)}
    return [[places[id(row)] for row in group] for group in groups]


@st.composite
def styles(draw: st.DrawFn) -> Style:
    return Style(
        files=draw(st.integers(1, 3)),
        row_group=draw(st.sampled_from([2, 100_000])),
        longest_part=draw(st.integers(1, 3)),
        states=draw(st.frozensets(st.integers(0, 2))),
    )


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(projects(most_steps=7), tables(most_rows=7), styles())
def test_derived_links_are_the_groups_of_the_interpreter_in_both_directions(
    project: dict[str, Any], data: dict[str, list[dict[str, Any]]], style: Style
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project)
        assume(plan is not None and any(isinstance(step, AggregateStep | AppendStep) for step in plan.steps))
        assert plan is not None
        grouping = Grouping(plan, data, PERIOD, TODAY)
        grouping.run()
        writer = Writer(Path(folder, "storage"), grouping, style)
        writer.write()
        writer.parts = list(with_ids(writer.parts))
        trace = writer.trace()
        expected = set(links_of(grouping, writer, trace))
        ids = {trace_id for part in trace.parts for trace_id in ids_of(part).values()}
        links = RowLinks(trace)
        assert sorted(links.parents(ids)) == sorted(expected)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("clew.explain.row_links._LOOKUP_IN_ROWS", 0)
            assert sorted(links.parents(ids)) == sorted(expected), "each group looked up by its keys"
        assert sorted(links.children(ids)) == sorted(expected)
        for trace_id in {child for child, _ in expected}:
            assert set(links.parents([trace_id])) == {link for link in expected if link[0] == trace_id}
        for trace_id in {parent for _, parent in expected}:
            assert set(links.children([trace_id])) == {link for link in expected if link[1] == trace_id}
        trace.close()


def with_ids(parts: list[Part]) -> Iterator[Part]:
    """Every file gets a block, as a run reserves them."""
    ids = TraceIdGenerator(5, lambda: 1_700_000_000_000)
    for part in parts:
        if part.kind == "changes":
            yield part
            continue
        blocks = [ids.reserve_block(file.rows) for file in part.files]
        files = (
            replace(file, ids=IdBlock(block.node_id, block.first_tick))
            for file, block in zip(part.files, blocks, strict=True)
        )
        yield replace(part, files=tuple(files))


def ids_of(part: Part) -> dict[int, int]:
    """Trace ids by ordinal, counted out."""
    return {
        (file.ordinal or 0) * 2**40 + position: file.ids.trace_id(position)
        for file in part.files
        if isinstance(file.ids, IdBlock)
        for position in range(file.rows)
    }


def links_of(grouping: Grouping, writer: Writer, trace: RunTrace) -> Iterator[Link]:
    ids = {ordinal: trace_id for part in trace.parts for ordinal, trace_id in ids_of(part).items()}
    of_rows = [ids[ordinal] for ordinal in writer.ordinals]
    for part in trace.run.created:
        children = list(ids_of(part).values())
        for child, indexes in zip(children, grouping.of_rows.get(part.seq, []), strict=False):
            yield from ((child, of_rows[index]) for index in indexes)
        step = trace.run.step(part.seq)
        if isinstance(step, AppendStep) and step.group_by is not None:
            source = list(ids_of(trace.run.pinned(step.source)).values())
            for child, indexes in zip(children, grouping.of_source[part.seq], strict=True):
                yield from ((child, source[index]) for index in indexes)


def test_groups_whose_keys_become_equal_keep_their_own_rows(tmp_path: Path) -> None:
    """1.231 and 1.234 are two groups, and both are 1.23 in the working dataset."""
    totals = [{"column": "k", "expression": "SUM(k)"}]
    arguments = {"source": {"dataset_id": "finer"}, "aggregation": {"group_by": ["f.amount"], "aggregations": totals}}
    operations = [{"seq": 10, "name": "sum up", "type": "append", "arguments": arguments}]
    project = {"id": "p", "name": "p", "input_dataset": "main", "status": "active", "operations": operations}
    plan = compiled(tmp_path / "workspace", project)
    assert plan is not None
    rows = [("1.231", 1), ("1.234", 10), ("1.231", 100), (None, 1000)]
    finer = [
        {"amount": amount and Decimal(amount), "k": Decimal(k), "share": None, "currency": None} for amount, k in rows
    ]
    grouping = Grouping(plan, {"main": [], "finer": finer, "extra": [], "dim": []}, PERIOD, TODAY)
    grouping.run()
    writer = Writer(tmp_path / "storage", grouping)
    writer.write()
    writer.parts = list(with_ids(writer.parts))
    trace = writer.trace()
    found = trace.search(None).rows
    assert [(row.state["amount"], row.state["k"]) for row in found] == [
        (Decimal("1.23"), 101),
        (Decimal("1.23"), 10),
        (None, 1000),
    ]
    behind = [[parent for _, parent in RowLinks(trace).parents([trace.trace_id(row.row_id) or 0])] for row in found]
    source = list(ids_of(trace.run.pinned(plan.steps[0].source)).values())  # type: ignore[union-attr]
    assert behind == [[source[0], source[2]], [source[1]], [source[3]]]
    causes = [explain(trace, row.row_id, column).cause for row in found for column in ("k", "amount")]
    assert all(isinstance(cause, Summarised) and cause.recomputed.outcome == "equal" for cause in causes)
    assert [cause.group["amount"] for cause in causes[::2] if isinstance(cause, Summarised)] == [
        Decimal("1.231000"),
        Decimal("1.234000"),
        None,
    ]
    trace.close()
