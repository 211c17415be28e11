"""`clew signal`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import DONE, FAILED
from clew.cli.options import argument, command, environment_option, option, run_argument, workspace_option
from clew.cli.output import bad, good, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.api.signalling import SignalOutcome
    from clew.runs.signals import SignalType


@command
@run_argument
@argument("name", metavar="SIGNAL", help="PAUSE, RESUME, CANCEL, RETRY_STEP, SKIP_STEP, RETRY_RUN or APPROVE.")
@option("--step", metavar="SEQ", help="The step for RETRY_STEP or SKIP_STEP; 0 loads the input.")
@option("--reason", metavar="TEXT", help="The reason, for the record.")
@option("--signal-id", metavar="ID", help="An id for the signal: repeating it has no further effect.")
@option(
    "--with-current-definitions",
    is_flag=True,
    help="For RETRY_RUN: use the files as they are now; those of an active project become its next version.",
)
@option("--no-drive", is_flag=True, help="If the run continues, leave it to a worker.")
@environment_option
@workspace_option
def signal(
    context: click.Context,
    run: str,
    name: str,
    step: str | None,
    reason: str | None,
    signal_id: str | None,
    with_current_definitions: bool,
    no_drive: bool,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Send a signal to a run, such as PAUSE or RETRY_STEP.

    The signal is recorded with its reason. If it makes the run continue and the state store is a local file, this
    command drives the run, like `clew run`.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        type_ = _type(name)
        outcome = opened.find_run(run).signal(
            type_,
            step=step,
            reason=reason,
            signal_id=signal_id,
            with_current_definitions=with_current_definitions,
        )
        if not session.wants_json:
            say(_words(outcome, type_, step))
        next_run = outcome.next_run
        if next_run is not None and not no_drive and opened.run_environment.embedded_store is not None:
            from clew.cli.driving import drive

            raise click.exceptions.Exit(drive(opened, opened.find_run(next_run), session))
        if session.wants_json:
            write_json(outcome.to_json())
        raise click.exceptions.Exit(DONE if outcome.is_accepted else FAILED)


def _type(name: str) -> "SignalType":
    from clew.diagnostics import UserError, did_you_mean
    from clew.diagnostics.codes.commands import WRONG_USAGE
    from clew.runs.signals import SignalType

    wanted = name.upper().replace("-", "_")
    known = [each.value for each in SignalType]
    if wanted not in known:
        hint = did_you_mean(wanted, known) or f"the signals are {', '.join(known)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no signal "{name}"', hint=hint))
    return SignalType(wanted)


def _words(outcome: "SignalOutcome", type_: "SignalType", step: str | None) -> str:
    about = f" of step {step}" if step is not None else ""
    if outcome.refused is None:
        return f"{good('accepted')}: {type_}{about}"
    return f"{bad('refused')}: {type_}{about}: {outcome.refused.refusal}, {outcome.refused.detail}"
