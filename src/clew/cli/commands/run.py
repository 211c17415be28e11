"""`clew run`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.formatting import counted
from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.run import Run
    from clew.api.workspace import Workspace
    from clew.definitions import CaptureWish


_HERE = "leave out --server, where the workspace and its data can be reached from here"


def run_project(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The id or name of a project.")],
    period: Annotated[str, typer.Option("--period", "-p", metavar="PERIOD", help="A period of the calendars.")],
    environment: EnvironmentOption = None,
    request_id: Annotated[
        str | None,
        typer.Option("--request-id", metavar="ID", help="Names the request: the same one again gives the same run."),
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            "--capture",
            metavar="NAME[=MODE]",
            help="Keep the rows at a breakpoint: stats, sample_raw, sample_view, full_raw, full_view. Repeatable.",
        ),
    ] = None,
    captures: Annotated[
        Path | None,
        typer.Option("--captures", metavar="FILE", help="A YAML file that lists captures with all details."),
    ] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="Run it on a server of `clew serve`.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="The token for --server; CLEW_TOKEN if left out."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Find, read and check all data, and write nothing.")
    ] = False,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Run a project for a period, and wait for it.

    Runs the active version; a draft runs as it is and writes to the sandbox only. Ctrl-C cancels the run in order, a
    second one leaves at once. The exit code is 0 only where the run has completed.
    """
    session = context.ensure_object(Session)
    if server is not None:
        from clew.cli.remote_run import run_remotely, server_of

        if dry_run:
            raise UserError(WRONG_USAGE.anywhere(problem="--dry-run reads data from here, not on a server", hint=_HERE))
        asked = server_of(server, token_file)
        wishes = _wishes(Path.cwd(), capture or [], captures, session)
        raise typer.Exit(run_remotely(asked, project, period, request_id, wishes, session))
    if dry_run:
        opened = session.open(workspace, environment)
        _dry_run(opened, project, period, _wishes(opened.root, capture or [], captures, session), session)
        return

    from clew.cli.driving import drive

    with session.open(workspace, environment) as opened:
        wishes = _wishes(opened.root, capture or [], captures, session)
        run = _submit(opened, project, period, request_id, wishes, session)
        raise typer.Exit(drive(opened, run, session))


def _dry_run(
    workspace: "Workspace", project: str, period: str, wishes: "Sequence[CaptureWish]", session: Session
) -> None:
    from clew.cli.views.page import grid, plain, show

    found = workspace.dry_run(project, period, captures=wishes)
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
    say(f"everything is there and as it should be; {counted(len(found.plan.steps), 'step')} would follow")
    say("nothing was written")
    say(f"next: clew run {found.project} --period {period}")


def _wishes(root: Path, words: list[str], file: Path | None, session: Session) -> "Sequence[CaptureWish]":
    from clew.api.workspace_files import read_capture_wishes

    return read_capture_wishes(words, file, root, session.typed)


def _submit(
    workspace: "Workspace",
    project: str,
    period: str,
    request_id: str | None,
    wishes: "Sequence[CaptureWish]",
    session: Session,
) -> "Run":
    choice = workspace.projects.choice(project)
    if not session.wants_json and workspace.projects.is_modified(choice):
        activate = session.command(f"activate {choice.project}")
        say(f"note: the file has changed since version {choice.version}, which runs; `{activate}` makes a new one")
    return workspace.submit(project, period, request_id=request_id, captures=wishes)
