"""Pairs of random runs of one project: some rows of the input are changed, and sometimes some operations."""

import copy
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from clew.auth.roles import AccessRole
from clew.definitions import Environment
from clew.plan import Plan
from clew.privacy.eyes import ColumnEyes
from clew.privacy.policy import PrivacyPolicy
from clew.trace.reader import RunTrace
from tests.plan.plan_interpreter import JoinNotUnique
from tests.trace.random_projects import DATASETS, compiled, interpreted, projects, tables
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import TODAY, Style, Writer

Data = dict[str, list[dict[str, Any]]]
RUNS = ("019a7c00-0000-7000-8000-00000000000a", "019a7c00-0000-7000-8000-00000000000b")


def all_clear() -> ColumnEyes:
    """Someone who sees everything."""
    policy = PrivacyPolicy.of("dev", Environment(), AccessRole.ADMIN, marks={}, salt=lambda: "")
    return ColumnEyes(policy, {}, {})


@st.composite
def edited(draw: st.DrawFn, before: Data, fresh: Data) -> Data:
    """The same tables with some rows dropped, some cells taken from other tables, and some rows added."""
    after = dict[str, list[dict[str, Any]]]()
    for name, rows in before.items():
        kept = list[dict[str, Any]]()
        for row in copy.deepcopy(rows):
            fate = draw(st.sampled_from(["same", "same", "same", "changed", "dropped"]))
            if fate == "changed" and fresh[name]:
                other = draw(st.sampled_from(fresh[name]))
                column = draw(st.sampled_from(sorted(set(row) - {"_period", "code"})))
                row[column] = other[column]
            if fate != "dropped":
                kept.append(row)
        codes = {row.get("code") for row in kept}
        added = [row for row in fresh[name][:3] if name != "dim" or row["code"] not in codes]
        after[name] = kept + added
    return after


@dataclass
class Written:
    """One of two runs, as an interpreter knows it and as its files have it."""

    recorded: Recorded
    row_ids: list[str]
    trace: RunTrace

    @property
    def plan(self) -> Plan:
        return self.recorded.plan


@dataclass
class Pair:
    a: Written
    b: Written


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], Data, Data]:
    """Two projects and the tables of each; the projects are often the same."""
    project = draw(projects())
    other = copy.deepcopy(project)
    if draw(st.booleans()):
        more = draw(projects(most_steps=4))
        other["operations"] = other["operations"][: draw(st.integers(0, 3))]
        last = other["operations"][-1]["seq"] if other["operations"] else 0
        for each in more["operations"]:
            each["seq"] += last
            each["name"] = f"step {each['seq']}"
        other["operations"] += more["operations"]
    before = draw(tables())
    if draw(st.booleans()):
        for number, row in enumerate(before["main"]):
            row["k"] = number
    after = draw(edited(before, draw(tables())))
    return project, other, before, after


@contextmanager
def written_pair(
    case: tuple[dict[str, Any], dict[str, Any], Data, Data],
    styles: tuple[Style, Style],
    days: tuple[date, date] = (TODAY, TODAY),
    keys: tuple[Sequence[str], Sequence[str]] = (("k",), ("k",)),
) -> Iterator[Pair]:
    """Both runs, written. `days` are what TODAY() means in them, `keys` the natural keys of their input."""
    project, other, before, after = case
    with tempfile.TemporaryDirectory() as folder:
        found = list[Written]()
        both = zip(RUNS, (project, other), (before, after), styles, days, keys, strict=True)
        for run_id, definition, data, style, today, key in both:
            datasets = {**DATASETS, "main": {**DATASETS["main"], "key": list(key)}}
            plan = compiled(Path(folder, f"workspace {run_id}"), definition, datasets)
            if plan is None:
                reject()  # the random project makes no sense
            try:
                recorded = interpreted(plan, data, today)
            except JoinNotUnique:
                reject()  # as of one of its days, a row finds two
            writer = Writer(Path(folder, "storage"), recorded, style, run_id=run_id)
            trace = writer.write()
            found.append(Written(recorded, [trace.row_ids.row_id(each) for each in writer.ordinals], trace))
        try:
            yield Pair(*found)
        finally:
            for each in found:
                each.trace.close()
