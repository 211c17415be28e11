"""`clew trace`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.failure import NOT_FOUND
from clew.cli.options import EnvironmentOption, JsonOption, RunArgument, VerboseOption, WorkspaceOption
from clew.cli.output import say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.diagnostics import Diagnostic
    from clew.trace.reader import RunTrace


def trace(
    context: typer.Context,
    run: RunArgument,
    row: Annotated[str | None, typer.Argument(metavar="[ROW]", help="A row id; or use --where or --step.")] = None,
    at: Annotated[int | None, typer.Option("--at", metavar="SEQ", help="The state after this step.")] = None,
    step: Annotated[int | None, typer.Option("--step", metavar="SEQ", help="All rows that this step changed.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="EXPR", help="Rows by their values, after --at or the last step.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many rows.", min=1)] = 20,
    after: Annotated[str | None, typer.Option("--after", metavar="ROW", help="The page behind this row.")] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Show what the steps of a run did to its rows.

    With ROW the history of one row, with --where the rows that a condition finds (the history where it is one), with
    --step everything that one step did, with --at the state after a step; without any of them the counts of each step.
    """
    from clew.app.running.tracing import open_trace
    from clew.cli.run_site import open_site

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        traced = open_trace(site.reader.view(run), site.environment)
    if row is not None:
        _one_row(traced, row, at, session)
    elif step is not None:
        _one_step(traced, step, limit, after, session)
    elif where is not None or at is not None:
        _many_rows(traced, where, at, limit, after, session)
    else:
        _counts(traced, session)


def _one_row(traced: "RunTrace", row: str, at: int | None, session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace_page import history_page, state_page

    if at is not None:
        state = traced.state(row, at)
        if session.wants_json:
            write_json(state.to_json())
        else:
            show(state_page(state))
        _exit_if(state.diagnostic)
        return
    history = traced.history(row)
    if session.wants_json:
        write_json(history.to_json())
    else:
        show(history_page(history, traced.plan))
    _exit_if(history.diagnostic)


def _one_step(traced: "RunTrace", step: int, limit: int, after: str | None, session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace_page import step_page

    records = traced.step_rows(step, limit, after)
    if session.wants_json:
        write_json(records.to_json())
    else:
        show(step_page(records, traced.plan))


def _many_rows(
    traced: "RunTrace", where: str | None, at: int | None, limit: int, after: str | None, session: Session
) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace_page import found_page, history_page

    found = traced.search(where, at, limit, after)
    if len(found.rows) == 1 and at is None and not found.has_more:
        history = traced.history(found.rows[0].row_id)
        if session.wants_json:
            write_json(history.to_json() | found.to_json())
        else:
            show(history_page(history, traced.plan))
    elif session.wants_json:
        write_json(found.to_json())
    elif found.rows:
        show(found_page(found, traced.plan))
    else:
        say("no row matches")


def _counts(traced: "RunTrace", session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace_page import counts_page

    counts = traced.counts()
    if session.wants_json:
        write_json({"run_id": traced.run_id, "steps": [each.to_json() for each in counts]})
    else:
        show(counts_page(counts))


def _exit_if(diagnostic: "Diagnostic | None") -> None:
    """An empty answer with a reason is an answer, and still not what was looked for."""
    if diagnostic is not None:
        raise typer.Exit(NOT_FOUND)
