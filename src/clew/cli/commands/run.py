"""`clew run`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.formatting import counted
from clew.cli.options import (
    command,
    environment_option,
    given_parameters,
    option,
    param_option,
    project_argument,
    workspace_option,
)
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.workspace import Workspace
    from clew.definitions import CaptureWish


_HERE = "run without --server on a machine with access to the workspace and its data"


@command
@project_argument
@option("--period", "-p", metavar="PERIOD", required=True, help="A period of a calendar.")
@environment_option
@option("--request-id", metavar="ID", help="An id for the request: repeating it returns the same run.")
@option(
    "--capture",
    metavar="NAME[=MODE]",
    multiple=True,
    help="Capture the rows at a breakpoint: stats, sample_raw, sample_view, full_raw, full_view. Repeatable.",
)
@param_option
@option(
    "--with-current-definitions",
    is_flag=True,
    help="Activate the files of an active project first, if they have changed.",
)
@option(
    "--as-of",
    metavar="TIME",
    help="Run on what was known then, into the sandbox: 2026-02-03 or 2026-02-03T17:30. Without a time zone: UTC.",
)
@option("--captures", metavar="FILE", type=Path, help="A YAML file that lists captures in detail.")
@option("--server", metavar="URL", help="Run it on this server, started with `clew serve`.")
@option("--token-file", metavar="FILE", type=Path, help="A file with the token for --server. Default: CLEW_TOKEN.")
@option("--dry-run", is_flag=True, help="Find, read and check all data, and write nothing.")
@workspace_option
def run_project(
    context: click.Context,
    project: str,
    period: str,
    environment: str | None,
    request_id: str | None,
    capture: tuple[str, ...],
    param: tuple[str, ...],
    with_current_definitions: bool,
    as_of: str | None,
    captures: Path | None,
    server: str | None,
    token_file: Path | None,
    dry_run: bool,
    workspace: Path | None,
) -> None:
    """Run a project for a period and wait for it.

    Runs the active version; a draft runs as it is and writes only to the sandbox. Ctrl-C cancels the run cleanly; a
    second Ctrl-C quits immediately. The exit code is 0 only if the run completed.

    With --as-of, the run has the version of the project and the data that were known at that time. Files and databases
    keep no versions: of these it takes what the last run of the project and period before that time has read.
    """
    session = context.ensure_object(Session)
    given = given_parameters(param)
    if as_of is not None and (dry_run or with_current_definitions):
        other = "--dry-run" if dry_run else "--with-current-definitions"
        raise UserError(WRONG_USAGE.anywhere(problem=f"--as-of and {other} cannot be combined"))
    if server is not None:
        from clew.cli.remote_run import run_remotely, server_of

        if dry_run:
            raise UserError(WRONG_USAGE.anywhere(problem="--dry-run does not work with --server", hint=_HERE))
        asked = server_of(server, token_file)
        wishes = _wishes(Path.cwd(), list(capture), captures, session)
        anew = with_current_definitions
        code = run_remotely(asked, project, period, request_id, wishes, session, given, anew=anew, as_of=as_of)
        raise click.exceptions.Exit(code)
    if dry_run:
        opened = session.open(workspace, environment)
        _dry_run(opened, project, period, _wishes(opened.root, list(capture), captures, session), given, session)
        return

    from clew.cli.driving import drive

    with session.open(workspace, environment) as opened:
        wishes = _wishes(opened.root, list(capture), captures, session)
        if not with_current_definitions and as_of is None:
            _note_changes(opened, project, session)
        run = opened.submit(
            project,
            period,
            request_id=request_id,
            captures=wishes,
            parameters=given,
            with_current_definitions=with_current_definitions,
            as_of=as_of,
        )
        raise click.exceptions.Exit(drive(opened, run, session, gives_way=request_id is None))


def _dry_run(
    workspace: "Workspace",
    project: str,
    period: str,
    wishes: "Sequence[CaptureWish]",
    parameters: Mapping[str, object],
    session: Session,
) -> None:
    from clew.cli.views.page import grid, plain, show

    found = workspace.dry_run(project, period, captures=wishes, parameters=parameters)
    if session.wants_json:
        write_json(found.to_json())
        return
    version = "draft" if found.version is None else f"v{found.version}"
    say(f"{found.project} {version}, period {period}, dry run (environment {workspace.environment_name})")
    show(
        grid(
            (
                [plain("  "), plain(each.dataset), plain(f"{each.rows:>9,} rows"), plain(each.source)]
                for each in found.datasets
            ),
            fixed=3,
        )
    )
    say(f"all data is complete and valid; {counted(len(found.plan.steps), 'step')} would follow")
    say("nothing was written")
    say(f"next: clew run {found.project} --period {period}")


def _wishes(root: Path, words: list[str], file: Path | None, session: Session) -> "Sequence[CaptureWish]":
    from clew.api.workspace_files import read_capture_wishes

    return read_capture_wishes(words, file, root, session.typed)


def _note_changes(workspace: "Workspace", project: str, session: Session) -> None:
    choice = workspace.projects.choice(project)
    if not session.wants_json and workspace.projects.is_modified(choice):
        activate = session.command(f"activate {choice.project}")
        say(
            f"note: the project or a resolver of it has changed since version {choice.version}, which runs; "
            f"`{activate}` updates it"
        )
