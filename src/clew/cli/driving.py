"""Driving a run in the foreground of a command, with its progress, to an exit code."""

import os
import sys
from contextlib import nullcontext

from clew.api.run_view import RunView
from clew.api.starting import Drive, RunStarter, drive_in_foreground
from clew.captures.worker import CaptureWorker
from clew.cli.failure import DONE, FAILED, INTERRUPTED
from clew.cli.output import say, write_json
from clew.cli.run_site import RunSite, short
from clew.cli.session import Session
from clew.cli.views.captures import capture_lines
from clew.cli.views.page import plain
from clew.cli.views.progress import LiveWatch, PlainWatch, RunProgress, watch_for_output
from clew.cli.views.run import end_lines
from clew.cli.views.tables import StepLines
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import RUN_HELD
from clew.events.snapshot import RunStatus
from clew.events.values import ArtifactRef
from clew.storage.committed import input_part, sources_of


def drive(site: RunSite, run_id: str, session: Session) -> int:
    """Drive a run to its end and tell about it; the exit code is 0 where it has completed."""
    view = site.reader.view(run_id)
    if not session.wants_json:
        say(headline(view, site))
    done = Drive() if view.snapshot.status is RunStatus.COMPLETED else _drive(site, view, session)
    _postlude(site, run_id)
    view = site.reader.view(run_id)
    if session.wants_json:
        write_json(view.to_json())
    else:
        first, *rest = end_lines(view, site)
        for line in (first, *capture_lines(view), *rest):
            say(line)
    if view.snapshot.status is RunStatus.COMPLETED:
        return DONE
    return INTERRUPTED if done.was_interrupted else FAILED


def _postlude(site: RunSite, run_id: str) -> None:
    """What comes after the run, whose result stands by now. Interrupted, it is left to a worker."""
    starter = RunStarter(site.workspace, site.environment, site.state)
    try:
        CaptureWorker(site.environment, site.state, starter.session).after_run(run_id)
    except KeyboardInterrupt:
        sys.stderr.write(f"captures interrupted; `{site.command('worker')}` carries them on\n")


def headline(view: RunView, site: RunSite) -> str:
    """What runs, for when, where."""
    request = view.record.request
    version = request.project_version or ""
    numbered = f"v{version}" if version.isdigit() else version
    return (
        f"{plain(request.project_id)} {numbered}, period {plain(request.period)}, run {short(view.record.run_id)} "
        f"(environment {site.environment.name}, {site.environment.settings.spark.master})"
    )


def _drive(site: RunSite, view: RunView, session: Session) -> Drive:
    run_id = view.record.run_id
    watch = None if session.wants_json or view.plan is None else _watch(site, view)
    try:
        with watch or nullcontext():
            done = drive_in_foreground(
                RunStarter(site.workspace, site.environment, site.state),
                run_id,
                watch=watch.take if watch is not None else lambda _event: None,
                on_interrupt=lambda: watch.tell("cancelling; once more leaves at once") if watch is not None else None,
            )
    except KeyboardInterrupt:
        _leave_at_once(site, run_id)
    if done.status is None:
        hint = f"`{site.command(f'events {short(run_id)} --follow')}` shows how it goes on"
        raise UserError(RUN_HELD.anywhere(run_id=short(run_id), hint=hint))
    return done


def _watch(site: RunSite, view: RunView) -> PlainWatch | LiveWatch:
    assert view.plan is not None  # noqa: S101 - the caller looks
    plan = view.plan

    def sources(artifacts: tuple[ArtifactRef, ...]) -> str:
        part = input_part(site.environment.storage_root, artifacts, plan.input.key)
        return sources_of(part) if part is not None else ""

    return watch_for_output(RunProgress(StepLines(plan), sources))


def _leave_at_once(site: RunSite, run_id: str) -> None:
    """End the process without waiting for Spark. The run is as it was, and goes on where it stopped."""
    sys.stderr.write(f"left at once; `{site.command('worker')}` carries run {short(run_id)} on\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)
