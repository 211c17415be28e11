"""`clew checks`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.run import Run
    from clew.privacy.seen_checks import CheckOutcome
    from clew.trace.results import FoundRows


@command
@argument("run", metavar="RUN", required=False, help="The id of a run, or its first characters.")
@option("--name", metavar="CHECK", help="Only the check of this name.")
@option("--rows", is_flag=True, help="Also show the rows that fail, found in the trace.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of rows, or of runs.")
@option("--after", metavar="ROW", help="With --rows and --name: start after this row.")
@option("--project", metavar="PROJECT", help="Show how the checks of a project went in its runs, newest first.")
@option("--junit", metavar="FILE", type=Path, help="Also write the results of RUN as JUnit XML.")
@environment_option
@workspace_option
def checks(
    context: click.Context,
    run: str | None,
    name: str | None,
    rows: bool,
    limit: int,
    after: str | None,
    project: str | None,
    junit: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show what checks found, in a run or over time.

    Exits with 1 if a check of RUN with `severity: fail` has failed.
    """
    session = context.ensure_object(Session)
    if (run is None) == (project is None):
        raise UserError(WRONG_USAGE.anywhere(problem="give either RUN or --project", hint="`clew runs` lists runs"))
    with session.open(workspace, environment) as opened:
        if project is not None:
            _history(opened.find_runs(project=project, limit=limit), name, session)
            return
        found = opened.find_run(run or "").refreshed()
        checked = found.checks()
        failing = _failing(found, name, limit, after) if rows else {}
        if junit is not None:
            write_junit(checked.to_junit(f"{found.project} {found.period}"), junit)
        if session.wants_json:
            told = {**checked.to_json(), "checks": [each.to_json() for each in checked.named(name)]}
            write_json({**told, **({"rows": {key: each.to_json() for key, each in failing.items()}} if rows else {})})
        else:
            from clew.cli.views.checks import checks_page
            from clew.cli.views.page import show

            show(*checks_page(checked.named(name), failing, found.id, found.plan, session.command))
    if not checked.passed:
        raise click.exceptions.Exit(FAILED)


def _failing(run: "Run", name: str | None, limit: int, after: str | None) -> "dict[str, FoundRows]":
    if name is not None:
        return {name: run.failing_rows(name, limit=limit, after=after)}
    found = [each for each in run.checks().outcomes if each.result is not None and not each.result.passed]
    return {
        each.check.name: run.failing_rows(each.check.name, limit=limit)
        for each in found
        if each.check.of_rows and not each.check.of_dataset
    }


def write_junit(text: str, file: Path) -> None:
    """Write results for a build server. Raises UserError if the file cannot be written."""
    from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=f"{file}: {error.strerror or error}")) from error


def _history(runs: "list[Run]", name: str | None, session: Session) -> None:
    from clew.cli.views.checks import history_table
    from clew.cli.views.page import show

    found = [(run, run.checks().named(name)) for run in runs]
    if session.wants_json:
        write_json({"runs": [_told(run, checks) for run, checks in found]})
    elif any(each for _, each in found):
        show(history_table([(run.id, run.period, each) for run, each in found]))
    else:
        say("no runs with checks")


def _told(run: "Run", outcomes: "Sequence[CheckOutcome]") -> dict[str, object]:
    told = [each.to_json() for each in outcomes]
    return {"run_id": run.id, "period": run.period, "status": run.status, "checks": told}
