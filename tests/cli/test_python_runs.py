"""Runs from Python: the same runs as those of the commands, on an engine without Spark."""

from pathlib import Path

import pytest

import clew
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from tests.cli.cli_fake_engine import FakeEngine


def test_run_waits_and_gives_the_run(sample: Path, engine: FakeEngine) -> None:
    run = clew.open(sample).run("gl-close", period="2026-01")
    assert (run.status, run.project, run.period) == ("COMPLETED", "gl-close", "2026-01")
    assert [(step.seq, step.counts.get("rows_updated")) for step in run.steps if step.name == "Reclassify travel"] == [
        (20, 34)
    ]
    assert [output["path"] for output in run.outputs] == ["out/35", "out/60"]
    assert run.to_json()["run_id"] == run.id
    assert run.raise_if_failed() is run


def test_a_run_shows_itself_in_a_notebook(sample: Path, engine: FakeEngine) -> None:
    run = clew.open(sample).run("gl-close", period="2026-01")
    assert repr(run) == f"<Run {run.id[:8]} of gl-close for 2026-01: COMPLETED>"
    assert "<td>Reclassify travel</td><td>SUCCESS</td><td>34</td>" in run._repr_html_()


def test_a_run_that_fails_is_given_with_its_error(sample: Path, engine: FakeEngine) -> None:
    engine.failing["10"] = UserError(JOIN_NOT_UNIQUE.anywhere(problem="2 rows of <fx> match"))
    run = clew.open(sample).run("gl-close", period="2026-01")
    assert run.status == "FAILED"
    assert run.error is not None
    assert (run.error.code, str(run.error.span).split(":")[0]) == ("JoinNotUnique", "fragments/fx-to-usd.yaml")
    assert "2 rows of &lt;fx&gt; match" in run._repr_html_()
    with pytest.raises(UserError, match="JoinNotUnique"):
        run.raise_if_failed()


def test_runs_are_found_by_project_period_state_and_id(sample: Path, engine: FakeEngine) -> None:
    workspace = clew.open(sample)
    first = workspace.run("gl-close", period="2026-01")
    second = workspace.run("group-report", period="2026-02", request_id="february")
    assert [run.id for run in workspace.runs()] == [second.id, first.id]
    assert [run.id for run in workspace.runs(project="gl-close", period="2026-01", status="completed")] == [first.id]
    assert workspace.get_run(second.id[:8]).id == second.id
    assert workspace.run("group-report", period="2026-02", request_id="february").id == second.id
    with pytest.raises(UserError, match="RunNotFound"):
        workspace.get_run("0000")


def test_a_project_written_in_python_runs_as_a_draft(sample: Path, engine: FakeEngine) -> None:
    made = clew.project("small", input="journal-lines").delete("Drop", where="amount_local = 0")
    run = clew.open(sample).run(made, period="2026-01")
    assert (run.status, run.to_json()["project_version"]) == ("COMPLETED", "draft")
    assert engine.executed == ["load", "10"]
