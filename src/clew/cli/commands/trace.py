"""`clew trace`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import NOT_FOUND
from clew.cli.options import WholeNumber, argument, command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.privacy.seen_trace import SeenTrace
    from clew.trace.records import RowState
    from clew.trace.results import RowHistory
    from clew.trace.trace_records import TraceRecords


@command
@run_argument
@argument("row", metavar="ROW", required=False, help="A row id; or use --where or --step.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="Show the state after this step.")
@option("--step", metavar="SEQ", type=WholeNumber(), help="Show all rows that this step changed.")
@option("--where", metavar="EXPR", help="Find rows by their values after --at, --step or the last step.")
@option("--records", is_flag=True, help="Show trace records, one JSON object per line: of ROW, --step or all steps.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of rows.")
@option("--after", metavar="ROW", help="Start after this row.")
@environment_option
@workspace_option
def trace(
    context: click.Context,
    run: str,
    row: str | None,
    at: int | None,
    step: int | None,
    where: str | None,
    records: bool,
    limit: int,
    after: str | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show what the steps of a run did to its rows.

    With ROW, shows the history of one row. With --where, shows the matching rows, or the history if only one row
    matches. With --step, shows what one step did (to the rows of --where). With --at, shows the state after a step.
    With --records, shows trace records with the values before and after. Without any of these, shows the counts of
    each step.
    """
    session = context.ensure_object(Session)
    _check(row=row, step=step, at=at, where=where, after=after, records=records or None)
    if where is not None:
        session.typed("<where>", where)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run)
        if records:
            _records(found.records(row, step=step, limit=limit, after=after), session)
            return
        traced = found.open_trace()
        if row is not None:
            _one_row(traced, row, at, session)
        elif step is not None:
            _one_step(traced, step, TraceQuestion(limit, after, where), session)
        elif where is not None or at is not None:
            _many_rows(traced, at, TraceQuestion(limit, after, where), session)
        else:
            _counts(traced, session)


@dataclass(frozen=True, slots=True)
class TraceQuestion:
    """Which rows, and how many of them."""

    limit: int
    after: str | None
    where: str | None


def _check(**given: object) -> None:
    """Refuse options that do not go together: ignoring one would answer a different question."""
    names = {"row": "ROW"} | {name: f"--{name}" for name in ("step", "at", "where", "after", "records")}
    refused = {"row": ("step", "where", "after"), "step": ("at",), "records": ("at", "where")}
    for first, others in refused.items():
        for other in others:
            if given[first] is not None and given[other] is not None:
                problem = f"{names[first]} and {names[other]} cannot be combined"
                raise UserError(WRONG_USAGE.anywhere(problem=problem))


def _one_row(traced: "SeenTrace", row: str, at: int | None, session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace import state_page

    if at is not None:
        state = traced.state(row, at)
        _answer_nothing(state, session)
        if session.wants_json:
            write_json(state.to_json())
        else:
            show(state_page(state))
        return
    history = traced.history(row)
    _answer_nothing(history, session)
    if session.wants_json:
        write_json(history.to_json())
    else:
        _show_history(traced, history)


def _show_history(traced: "SeenTrace", history: "RowHistory") -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace import history_page

    name = traced.name(history.row_id, history.entries[-1].full_state)
    show(history_page(history, name, traced.run.last))


def _one_step(traced: "SeenTrace", step: int, wanted: TraceQuestion, session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace import step_page

    records = traced.step_rows(step, wanted.limit, wanted.after, wanted.where)
    if session.wants_json:
        write_json(records.to_json())
    else:
        show(step_page(records, traced.plan, traced.keys_of(records)))


def _many_rows(traced: "SeenTrace", at: int | None, wanted: TraceQuestion, session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace import found_page

    found = traced.search(wanted.where, at, wanted.limit, wanted.after)
    if len(found.rows) == 1 and at is None and not found.has_more:
        history = traced.history(found.rows[0].row_id)
        if session.wants_json:
            write_json(history.to_json() | found.to_json())
        else:
            _show_history(traced, history)
    elif session.wants_json:
        write_json(found.to_json())
    elif found.rows:
        asked = traced.columns_in(wanted.where, found.at) if wanted.where is not None else []
        show(found_page(found, traced.plan, asked))
    else:
        say("no matching rows")


def _records(found: "TraceRecords", session: Session) -> None:
    if session.wants_json:
        write_json(found.to_json())
        return
    for record in found.json_records():
        say(json.dumps(record, ensure_ascii=False))
    if found.next is not None:
        click.echo(f"more records: --after {found.next}", err=True)


def _counts(traced: "SeenTrace", session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.trace import counts_page

    counts = traced.counts()
    if session.wants_json:
        write_json({"run_id": traced.run_id, "steps": [each.to_json() for each in counts]})
    else:
        show(counts_page(counts))


def _answer_nothing(found: "RowHistory | RowState", session: Session) -> None:
    """Report an empty result and its reason, as a document with --json. The exit code says not found."""
    if found.diagnostic is None:
        return
    if not session.wants_json:
        raise UserError(found.diagnostic)
    write_json(found.to_json())
    raise click.exceptions.Exit(NOT_FOUND)
