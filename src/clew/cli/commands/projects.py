"""`clew projects`, `clew activate` and `clew deactivate`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, project_argument, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@environment_option
@workspace_option
def projects(context: click.Context, environment: str | None, workspace: Path | None) -> None:
    """List projects and the version of each that runs.

    A project is a draft until you activate it; modified means that its file has changed since.
    """
    from clew.cli.views.page import show
    from clew.cli.views.tables import project_table

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        views = opened.projects.all()
        if session.wants_json:
            write_json({"projects": [view.to_json() for view in views]})
        elif views:
            show(project_table(views))
        else:
            say("no projects; define them in projects/*.yaml")


@command
@project_argument
@environment_option
@workspace_option
def activate(context: click.Context, project: str, environment: str | None, workspace: Path | None) -> None:
    """Check a project and freeze it as the version that runs.

    Later edits of its file do not run until you activate it again.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        before = opened.projects.active(opened.plan(project).name)
        version = opened.projects.activate(project)
        if session.wants_json:
            write_json(version.to_json())
        elif before is not None and before.version == version.version:
            say(f"{version.project} v{version.version} is already active, with the same digest")
        else:
            say(f"{version.project} v{version.version} is active (digest {version.digest[:12]})")
            say(f"next: {session.command(f'run {version.project} --period PERIOD')}")


@command
@project_argument
@environment_option
@workspace_option
def deactivate(context: click.Context, project: str, environment: str | None, workspace: Path | None) -> None:
    """Deactivate a project, so that it no longer runs."""
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        version = opened.projects.deactivate(project)
        if session.wants_json:
            write_json(version.to_json())
        else:
            say(f"{version.project} v{version.version} is no longer active")
