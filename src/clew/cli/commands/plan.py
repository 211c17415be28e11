"""`clew plan`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.options import (
    command,
    environment_option,
    given_parameters,
    option,
    param_option,
    project_argument,
    workspace_option,
)
from clew.cli.output import error_text, say, write_json
from clew.cli.session import Session
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.checking import Conflicts
    from clew.plan import Plan


@command
@project_argument
@option("--breakpoints", is_flag=True, help="List only the breakpoints where a run can capture rows.")
@option("--against", metavar="RUN", help="Show what the project, as edited, would have changed in this run.")
@option("--fail-if", metavar="EXPR", help="With --against: exit with 1 if true for a total: 'ABS(delta) > 1000'.")
@option("--markdown", is_flag=True, help="With --against: a summary for a pull request.")
@param_option
@workspace_option
@environment_option
def plan(
    context: click.Context,
    project: str,
    breakpoints: bool,
    against: str | None,
    fail_if: str | None,
    markdown: bool,
    param: tuple[str, ...],
    workspace: Path | None,
    environment: str | None,
) -> None:
    """Show what a run of a project would do, step by step.

    Shows the rows, joins and columns of each step, and why it reads them, then where each column of the result comes
    from. If the environment has a state store, the plan is followed by the versions of datasets that do not fit it.

    With --against, the steps that differ from those of a run are evaluated on the rows of the run that they reach,
    without Spark, and the rows and totals of each output that would move are shown, with the checks that would
    fail. Parameters have the values of the run, unless --param gives others. A condition of --fail-if may use
    output, column, before, after, delta, rows_changed, rows_gone and rows_new.
    """
    if against is not None:
        if breakpoints:
            problem = "--breakpoints lists where a run can capture rows, and --against asks about rows"
            raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="ask one after the other"))
        tried = OnRun(against, given_parameters(param), fail_if, markdown)
        _try_on_run(context, project, tried, workspace, environment)
        return
    if fail_if is not None or markdown:
        problem = f"{'--fail-if' if fail_if is not None else '--markdown'} needs --against"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="name a run with --against RUN"))
    from clew.plan import plan_to_json
    from clew.plan.json_form import breakpoints_to_json

    session = context.ensure_object(Session)
    opened = session.open(workspace, environment)
    opened.require_environment()
    planned = opened.plan(project, given_parameters(param) or None)
    found = opened.conflicts(planned)
    if session.wants_json:
        document = breakpoints_to_json(planned) if breakpoints else plan_to_json(planned)
        told = {"diagnostics": [each.to_json() for each in found.diagnostics]} if found.diagnostics else {}
        write_json({**document, **told})
    else:
        _print(planned, breakpoints)
    _tell(found, session)


@dataclass(frozen=True, slots=True)
class OnRun:
    """How an edited project is tried on a run."""

    run: str
    parameters: dict[str, object]
    fail_if: str | None
    markdown: bool


def _try_on_run(
    context: click.Context, project: str, tried: OnRun, workspace: Path | None, environment: str | None
) -> None:
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(tried.run).impact(project, parameters=tried.parameters, fail_if=tried.fail_if)
    if session.wants_json:
        write_json(found.to_json())
    elif tried.markdown:
        say(found.to_markdown().rstrip("\n"))
    else:
        from clew.cli.views.comparison import impact_page
        from clew.cli.views.page import show

        show(impact_page(found))
    if found.failed:
        raise click.exceptions.Exit(FAILED)


def _print(planned: "Plan", breakpoints: bool) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.plan import breakpoint_table, plan_page

    if not breakpoints:
        show(*plan_page(planned))
    elif planned.breakpoints:
        show(breakpoint_table(planned))
    else:
        say(f"{planned.name} has no breakpoints; `assign: LABEL` on an operation sets one")


def _tell(found: "Conflicts", session: Session) -> None:
    """After the plan, write what prevents a run to standard error."""
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")
    for diagnostic in found.diagnostics:
        sys.stderr.write(error_text(diagnostic, session.source_of, sys.stderr) + "\n")
    if found.diagnostics:
        raise click.exceptions.Exit(FAILED)
