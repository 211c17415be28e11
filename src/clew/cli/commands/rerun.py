"""`clew rerun`."""

from pathlib import Path

import click

from clew.cli.options import (
    command,
    environment_option,
    given_parameters,
    option,
    param_option,
    run_argument,
    workspace_option,
)
from clew.cli.session import Session


@command
@run_argument
@option("--changed-inputs", is_flag=True, help="Look at the sources again, and read those that have changed.")
@param_option
@option("--request-id", metavar="ID", help="An id for the request: repeating it returns the same run.")
@environment_option
@workspace_option
def rerun(
    context: click.Context,
    run: str,
    changed_inputs: bool,
    param: tuple[str, ...],
    request_id: str | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Repeat a run, and take over what is still the same.

    Runs the version of the project that is active now, on the inputs that the run has read. Whatever the same code has
    made from the same rows is taken over, by digests; the rest is computed, and outputs are written. `clew show` says
    what was taken over, and why the rest was not. The exit code is 0 only if the new run completed.
    """
    from clew.cli.driving import drive

    session = context.ensure_object(Session)
    given = given_parameters(param)
    with session.open(workspace, environment) as opened:
        repeated = opened.find_run(run).submit_rerun(
            changed_inputs=changed_inputs, parameters=given, request_id=request_id
        )
        raise click.exceptions.Exit(drive(opened, repeated, session, gives_way=request_id is None))
