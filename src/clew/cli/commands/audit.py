"""`clew audit`."""

from pathlib import Path

import click

from clew.cli.options import WholeNumber, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@option("--actor", metavar="NAME", help="Only by this person or program.")
@option("--of", "subject_id", metavar="ID", help="Only of this run, capture, trace, project, token or session.")
@option("--kind", metavar="KIND", help="trace, explanation, lineage, capture, project, sign-in or token.")
@option("--before", metavar="N", type=WholeNumber(), help="Only records before this one.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=50, help="Maximum number of records.")
@environment_option
@workspace_option
def audit(
    context: click.Context,
    actor: str | None,
    subject_id: str | None,
    kind: str | None,
    before: int | None,
    limit: int,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """List who read rows, signed in or changed something.

    Newest first. Needs the role auditor or admin.
    """
    from clew.auth.access_log import Subject
    from clew.cli.views.page import show
    from clew.cli.views.tables import access_table

    session = context.ensure_object(Session)
    known = [each.value for each in Subject]
    if kind is not None and kind not in known:
        hint = did_you_mean(kind, known) or f"the kinds are {', '.join(known)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no kind "{kind}"', hint=hint))
    with session.open(workspace, environment) as opened:
        found = opened.operations.access_records(
            subject_id=subject_id,
            actor=actor,
            subject=Subject(kind) if kind else None,
            before=before,
            limit=limit + 1,
        )
    listed, has_more = found[:limit], len(found) > limit
    if session.wants_json:
        write_json({"records": [each.to_json() for each in listed], "has_more": has_more})
    elif listed:
        show(access_table(listed))
        if has_more:
            say(f"more: {session.command(f'audit --before {listed[-1].entry_id}')}")
    else:
        say("no records")
