"""`clew plan`."""

from typing import Annotated

import typer

from clew.cli.options import JsonOption, VerboseOption, WorkspaceOption
from clew.cli.output import say, write_json
from clew.cli.session import Session


def plan(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The id or name of a project.")],
    breakpoints: Annotated[
        bool, typer.Option("--breakpoints", help="Only list the breakpoints that a run can capture at.")
    ] = False,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Show what a run of a project would do, step by step.

    For each step: the rows, the joins, the columns it reads and sets, and why. Then where every column of the result
    comes from.
    """
    from clew.plan import plan_to_json
    from clew.plan.json_form import breakpoints_to_json

    session = context.ensure_object(Session)
    planned = session.open(workspace).plan(project)
    if session.wants_json:
        write_json(breakpoints_to_json(planned) if breakpoints else plan_to_json(planned))
        return

    from clew.cli.views.page import show
    from clew.cli.views.plan_page import breakpoint_table, plan_page

    if not breakpoints:
        show(*plan_page(planned))
    elif planned.breakpoints:
        show(breakpoint_table(planned))
    else:
        say(f"{planned.name} has no breakpoints; `assign: LABEL` on an operation makes one")
