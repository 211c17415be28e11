"""The workspace as the one door: opened once or for each question, for the user of the process or for others."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api import opened_environment
from clew.api.opened_environment import Principal
from clew.api.state import open_state
from clew.auth.access_log import Subject
from clew.auth.roles import AccessRole
from clew.diagnostics import UserError
from clew.runs.signals import SignalType
from tests.cli.cli_fake_engine import FakeEngine


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often state stores were opened, and closed again."""
    said = list[str]()

    @contextmanager
    def noted(environment: Any) -> Iterator[Any]:
        said.append("open")
        with open_state(environment) as state:
            yield state
        said.append("close")

    monkeypatch.setattr(opened_environment, "open_state", noted)
    return said


def test_without_entering_each_question_opens_the_state_store_and_closes_it(sample: Path, opened: list[str]) -> None:
    workspace = clew.open(sample)
    assert workspace.projects.all()
    assert workspace.find_runs() == []
    assert opened == ["open", "close", "open", "close"]


def test_an_entered_workspace_keeps_the_state_store_open_to_the_last_exit(sample: Path, opened: list[str]) -> None:
    with clew.open(sample) as workspace:
        assert workspace.projects.all()
        with workspace:
            assert workspace.find_runs() == []
        assert workspace.datasets.find("journal-lines").versions == ()
        assert opened == ["open"]
    assert opened == ["open", "close"]


def test_a_check_opens_nothing(sample: Path, opened: list[str]) -> None:
    assert clew.open(sample).check().is_ok
    assert opened == []


def test_a_run_can_be_asked_for_now_and_driven_later(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        run = workspace.submit("gl-close", "2026-01", request_id="january")
        assert (run.status, workspace.submit("gl-close", "2026-01", request_id="january").id) == ("PENDING", run.id)
        names = list[str]()
        assert run.drive(watch=lambda event: names.append(type(event.body).__name__)).status == "COMPLETED"
        assert names[-1] == "RunCompleted"
        assert run.status == "PENDING"
        assert run.refreshed().status == "COMPLETED"
        assert [event.run_seq for event in run.events()] == list(range(1, len(run.events()) + 1))
        assert run.event_page(after=2).events == run.events(after=2)
        assert run.verify().is_intact


def test_runs_come_in_pages_newest_first(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        runs = [workspace.submit("gl-close", f"2026-0{month}") for month in (1, 2, 3)]
        newest, second = workspace.find_runs(limit=2)
        assert [newest.id, second.id] == [runs[2].id, runs[1].id]
        assert [run.id for run in workspace.find_runs(before=second.id)] == [runs[0].id]


def test_others_act_in_their_own_name_and_role(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        tenant = workspace.run_environment.settings.tenant
        viewer = workspace.acting_as(Principal(name="vi", role=AccessRole.VIEWER, tenant_id=tenant))
        engineer = workspace.acting_as(Principal(name="ada", role=AccessRole.ENGINEER, tenant_id=tenant))
        for act in (lambda: viewer.submit("gl-close", "2026-01"), lambda: viewer.projects.deactivate("gl-close")):
            with pytest.raises(UserError, match="the role viewer may not"):
                act()
        run = engineer.submit("gl-close", "2026-01")
        assert run.record.request.requested_by == "ada"
        refused = viewer.find_run(run.id).signal(SignalType.CANCEL).refused
        assert refused is not None
        assert refused.refusal.value == "NOT_AUTHORIZED"
        assert workspace.find_run(run.id).signal(SignalType.CANCEL).is_accepted
        assert engineer.projects.deactivate("gl-close").deactivated_by == "ada"
        viewer.operations.record_access(Subject.TRACE, run.id, "row 1")
        [record] = workspace.operations.access_records()
        assert (record.actor, record.role, record.subject_id) == ("vi", "viewer", run.id)


@pytest.mark.slow
def test_runs_of_other_tenants_do_not_exist_and_the_workspace_is_refused(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        run = workspace.run("gl-close", "2026-01")
        stranger = workspace.acting_as(Principal(name="eve", tenant_id="elsewhere"))
        assert stranger.find_runs() == []
        with pytest.raises(UserError, match="RunNotFound"):
            stranger.find_run(run.id)
        for forbidden in (
            lambda: stranger.loaded,
            lambda: stranger.plan("gl-close"),
            stranger.projects.all,
            stranger.datasets.all,
            stranger.captures,
            lambda: stranger.lineage(1),
            lambda: stranger.submit("gl-close", "2026-01"),
            lambda: stranger.kept_plan(run.record.request.plan.digest or ""),
            lambda: stranger.projects.activate("gl-close"),
        ):
            with pytest.raises(UserError, match="Forbidden"):
                forbidden()


def test_a_plan_that_ran_is_found_by_its_digest(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        run = workspace.run("gl-close", "2026-01")
        assert workspace.kept_plan(run.record.request.plan.digest or "") == run.plan
        assert workspace.kept_plan("0" * 64) is None


def test_a_workspace_that_follows_its_files_sees_edits(sample: Path) -> None:
    with clew.open(sample).following_files() as workspace:
        before = workspace.plan("gl-close").digest
        file = sample / "projects" / "gl-close.yaml"
        file.write_text(file.read_text(encoding="utf-8").replace("Reclassify travel", "Reclassify flights"))
        assert workspace.projects.activate("gl-close").digest != before
        assert workspace.plan("gl-close").digest != before


def test_a_worker_drives_what_waits_until_it_is_stopped(sample: Path, engine: FakeEngine) -> None:
    with clew.open(sample) as workspace:
        run, stop = workspace.submit("gl-close", "2026-01"), threading.Event()
        worker = threading.Thread(target=workspace.work, args=(stop,))
        worker.start()
        try:
            for _ in range(600):
                if workspace.find_run(run.id).record.status.is_terminal:
                    break
                stop.wait(0.05)
        finally:
            stop.set()
            worker.join()
        assert workspace.get_run(run.id).status == "COMPLETED"
