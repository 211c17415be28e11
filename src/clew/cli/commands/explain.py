"""`clew explain`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.output import (
    EnvironmentOption,
    JsonOption,
    RunArgument,
    VerboseOption,
    WorkspaceOption,
    say,
    terminal_width,
    write,
    write_file,
    write_json,
)
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.cli.run_site import RunSite
    from clew.explain.tree import Explanation
    from clew.explain.why_not import WhyNot

_TOP = 5


def explain(
    context: typer.Context,
    run: RunArgument,
    row: Annotated[
        str | None, typer.Argument(metavar="[ROW]", help="A row id; left out with --where.", show_default=False)
    ] = None,
    column: Annotated[
        str | None, typer.Argument(metavar="COLUMN", help="The column whose value is asked about.", show_default=False)
    ] = None,
    at: Annotated[int | None, typer.Option("--at", metavar="SEQ", help="The value after this step.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPR", help="A condition that names one row.")
    ] = None,
    why_not: Annotated[
        str | None, typer.Option("--why-not", metavar="EXPR", help="Why these rows are not in an output.")
    ] = None,
    output: Annotated[
        int | None, typer.Option("--output", metavar="SEQ", help="The output of --why-not; the last if left out.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every row behind a summary, not the largest only.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the answer as a page of its own.")
    ] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Explain why a value is what it is.

    The step that last set it, the expression with the values that went in, the row of a joined dataset that matched,
    the rows behind a summary, down to the line of the source file, through every project the data passed. Every
    expression is calculated again, and the answer says whether that gives the stored value.
    """
    from clew.cli.run_site import open_site

    session = context.ensure_object(Session)
    for condition in (where, why_not):
        if condition is not None:
            session.typed("<where>", condition)
    with open_site(session, workspace, environment) as site:
        if why_not is not None:
            answer: Explanation | WhyNot = _why_not(site, run, why_not, output)
        else:
            answer = _explained(site, run, _named(row, column, where), at, top=None if everything else _TOP)
    _print(answer, session, html)


def _named(row: str | None, column: str | None, where: str | None) -> tuple[str | None, str | None, str]:
    """Row id, condition and column: with --where the only argument behind the run is the column."""
    if where is not None and row is not None and column is None:
        return None, where, row
    if where is None and row is not None and column is not None:
        return row, None, column
    problem = "give a row id and a column, or --where and a column, or --why-not"
    raise UserError(WRONG_USAGE.anywhere(problem=problem))


def _explained(
    site: "RunSite", run: str, named: tuple[str | None, str | None, str], at: int | None, top: int | None
) -> "Explanation":
    from clew.explain.explaining import explain, row_named
    from clew.explain.other_runs import upstream_runs
    from clew.trace.opening import open_trace

    traced = open_trace(site.reader.view(run), site.environment)
    row, where, column = named
    row_id = row if row is not None else row_named(traced, where or "", at)
    return explain(traced, row_id, column, at, upstream=upstream_runs(site.state, site.environment), top=top)


def _why_not(site: "RunSite", run: str, where: str, output: int | None) -> "WhyNot":
    from clew.explain.elsewhere import why_not_in
    from clew.trace.opening import open_trace

    view = site.reader.view(run)
    trace = open_trace(view, site.environment)
    return why_not_in(
        view,
        trace,
        where,
        output,
        environment=site.environment,
        reader=site.reader,
        workspace=site.workspace.loaded.workspace,
    )


def _print(answer: "Explanation | WhyNot", session: Session, html: Path | None) -> None:
    from clew.explain.views import as_html, as_json, as_text

    if html is not None:
        write_file(html, as_html(answer))
    if session.wants_json:
        write_json(as_json(answer))
    elif html is not None:
        say(f"written to {html}")
    else:
        write(as_text(answer, terminal_width()))
