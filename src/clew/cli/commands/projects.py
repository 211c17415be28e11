"""`clew projects`, `clew activate` and `clew deactivate`."""

from typing import Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

ProjectArgument = Annotated[str, typer.Argument(metavar="PROJECT", help="The id or name of a project.")]


def projects(
    context: typer.Context,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """List projects and which version of each runs.

    A project is a draft until it is activated; modified means that its file has changed since.
    """
    from clew.api.projects import list_projects
    from clew.cli.run_site import open_site
    from clew.cli.views.page import show
    from clew.cli.views.tables import project_table

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        views = list_projects(site.workspace, site.state)
        if session.wants_json:
            write_json({"projects": [view.to_json() for view in views]})
        elif views:
            show(project_table(views))
        else:
            say("no projects; projects/*.yaml define them")


def activate(
    context: typer.Context,
    project: ProjectArgument,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Check a project and freeze it as the version that runs.

    Later edits of its file do not run before it is activated again.
    """
    from clew.api.projects import activate as activate_project
    from clew.cli.run_site import open_site
    from clew.runs.signals import actor_name

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        before = site.state.projects.active(site.workspace.plan(project).name)
        version = activate_project(site.workspace, site.state, project, actor_name())
        if session.wants_json:
            write_json(version.to_json())
        elif before is not None and before.version == version.version:
            say(f"{version.project} v{version.version} is active already, with the same digest")
        else:
            say(f"{version.project} v{version.version} is active (digest {version.digest[:12]})")
            say(f"next: {site.command(f'run {version.project} --period PERIOD')}")


def deactivate(
    context: typer.Context,
    project: ProjectArgument,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Take a project out of use: it does not run any more."""
    from clew.api.projects import deactivate as deactivate_project
    from clew.cli.run_site import open_site
    from clew.runs.signals import actor_name

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        version = deactivate_project(site.workspace, site.state, project, actor_name())
        if session.wants_json:
            write_json(version.to_json())
        else:
            say(f"{version.project} v{version.version} is not active any more")
