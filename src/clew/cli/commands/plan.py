"""`clew plan`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.colour import error_text
from clew.cli.failure import FAILED
from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.api.recorded_state import Conflicts
    from clew.plan import Plan


def plan(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The id or name of a project.")],
    breakpoints: Annotated[
        bool, typer.Option("--breakpoints", help="Only list the breakpoints that a run can capture at.")
    ] = False,
    workspace: WorkspaceOption = None,
    environment: EnvironmentOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Show what a run of a project would do, step by step.

    For each step: the rows, the joins, the columns it reads and sets, and why. Then where every column of the result
    comes from. Where the environment has a state store, versions of datasets that do not fit are named behind it.
    """
    from clew.plan import plan_to_json
    from clew.plan.json_form import breakpoints_to_json

    session = context.ensure_object(Session)
    opened = session.open(workspace, environment)
    opened.require_environment()
    planned = opened.plan(project)
    found = opened.conflicts(planned)
    if session.wants_json:
        document = breakpoints_to_json(planned) if breakpoints else plan_to_json(planned)
        told = {"diagnostics": [each.to_json() for each in found.diagnostics]} if found.diagnostics else {}
        write_json({**document, **told})
    else:
        _print(planned, breakpoints)
    _tell(found, session)


def _print(planned: "Plan", breakpoints: bool) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.plan import breakpoint_table, plan_page

    if not breakpoints:
        show(*plan_page(planned))
    elif planned.breakpoints:
        show(breakpoint_table(planned))
    else:
        say(f"{planned.name} has no breakpoints; `assign: LABEL` on an operation makes one")


def _tell(found: "Conflicts", session: Session) -> None:
    """What keeps a run from following the plan goes where errors go, behind the plan."""
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")
    for diagnostic in found.diagnostics:
        sys.stderr.write(error_text(diagnostic, session.source_of, sys.stderr) + "\n")
    if found.diagnostics:
        raise typer.Exit(FAILED)
