"""Driving a run in the foreground: shows its progress and returns an exit code."""

import os
import sys
from contextlib import nullcontext

from clew.api.run import Run
from clew.api.starting import Drive
from clew.api.workspace import Workspace
from clew.cli.failure import DONE, FAILED, INTERRUPTED
from clew.cli.formatting import counted, short
from clew.cli.output import going_on_unread, say, write_json
from clew.cli.session import Session
from clew.cli.views.captures import capture_lines
from clew.cli.views.page import plain
from clew.cli.views.progress import LiveWatch, PlainWatch, RunProgress, watch_for_output
from clew.cli.views.run import end_lines
from clew.cli.views.tables import StepLines
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_HELD
from clew.events.snapshot import RunStatus
from clew.runs.leases import Wait, WaitReason


def drive(workspace: Workspace, run: Run, session: Session, *, gives_way: bool = False) -> int:
    """Drive a run to its end and report on it, whether or not that is read. Returns exit code 0 if it completed.

    One that `gives_way` does not stay behind where another run of its project and period has started first.
    """
    with going_on_unread():
        return _driven(workspace, run, session, gives_way=gives_way)


def _driven(workspace: Workspace, run: Run, session: Session, *, gives_way: bool) -> int:
    if not session.wants_json:
        say(headline(run, workspace))
    done = None if run.view.snapshot.status is RunStatus.COMPLETED else _drive(run, session, gives_way=gives_way)
    _take_captures(run, session)
    run = run.refreshed()
    if session.wants_json:
        write_json(run.to_json())
    else:
        first, *rest = end_lines(run, session)
        for line in (first, *capture_lines(run.view), *rest):
            say(line)
    if run.view.snapshot.status is RunStatus.COMPLETED:
        return DONE
    return INTERRUPTED if done is not None and done.was_interrupted else FAILED


def _take_captures(run: Run, session: Session) -> None:
    """Take the captures, after the result is final. If interrupted, a worker takes the rest."""
    try:
        run.take_captures(ends_soon=True)
    except KeyboardInterrupt:
        sys.stderr.write(f"captures interrupted; `{session.command('worker')}` continues them\n")


def headline(run: Run, workspace: Workspace) -> str:
    """The line above the steps: project, period, run and environment."""
    numbered = run.record.request.definition
    return (
        f"{plain(run.project)} {numbered}, period {plain(run.period)}, run {short(run.id)} "
        f"(environment {workspace.environment_name}, {workspace.environment.spark.master})"
    )


def _drive(run: Run, session: Session, *, gives_way: bool) -> Drive:
    watch = None if session.wants_json else _watch(run)
    try:
        with watch or nullcontext():
            done = run.drive(
                watch=watch.take if watch is not None else lambda _event: None,
                on_interrupt=lambda: (
                    watch.tell("cancelling; press Ctrl-C again to quit immediately") if watch is not None else None
                ),
                on_wait=lambda wait: watch.tell(_waiting_for(wait, session)) if watch is not None else None,
                gives_way=gives_way,
                ends_soon=True,
            )
    except KeyboardInterrupt:
        _leave_at_once(run, session)
    if done.status is None:
        hint = f"`{session.command(f'events {short(run.id)} --follow')}` shows its progress"
        raise UserError(RUN_HELD.anywhere(run_id=short(run.id), hint=hint))
    return done


def _waiting_for(wait: Wait, session: Session) -> str:
    """The line that says why the run does not start yet."""
    match wait.reason:
        case WaitReason.NO_PLACE:
            running = session.command("runs --status running")
            words = f"{counted(wait.running, 'run')} already running, no place is free; `{running}` lists them"
        case WaitReason.NOT_BEFORE if wait.not_before is not None:
            words = f"the run starts at {wait.not_before.astimezone():%Y-%m-%d %H:%M:%S}"
        case _:
            words = wait.reason.value
    return f"waiting: {words} (Ctrl-C cancels the run)"


def _watch(run: Run) -> PlainWatch | LiveWatch | None:
    return watch_for_output(RunProgress(StepLines(run.plan), run.input_sources)) if run.plan is not None else None


def _leave_at_once(run: Run, session: Session) -> None:
    """End the process without waiting for Spark. The run keeps its state and can continue where it stopped."""
    sys.stderr.write(f"quit; `{session.command('worker')}` continues run {short(run.id)}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)
