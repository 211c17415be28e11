"""`clew verify`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.options import argument, command, environment_option, option, workspace_option
from clew.cli.output import bad, good, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.verification import Verification

_ORDER = ("entries", "checkpoints", "records", "runs", "events", "parts", "files")
_WORDS = {
    "entries": ("ledger entry", "ledger entries"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "records": ("record", "records"),
    "runs": ("run", "runs"),
    "events": ("event", "events"),
    "parts": ("part", "parts"),
    "files": ("file", "files"),
}


@command
@argument("run", metavar="RUN", help="The id of a run, or its first characters.", required=False)
@option("--all", "everything", is_flag=True, help="Verify the ledger, all records and all runs.")
@environment_option
@workspace_option
def verify(
    context: click.Context, run: str | None, everything: bool, environment: str | None, workspace: Path | None
) -> None:
    """Check that what is recorded is what was written.

    For a run: its request, every event, its state, its plan, and every byte of its files. With --all: every run, the
    ledger of the environment, and the tokens, versions and reads that it vouches for. Exits with 1 if anything differs.
    """
    session = context.ensure_object(Session)
    if (run is None) != everything:
        raise UserError(WRONG_USAGE.anywhere(problem="name a run, or write --all"))
    with session.open(workspace, environment) as opened:
        found = opened.verify() if run is None else opened.find_run(run).verification()
    if session.wants_json:
        write_json(found.to_json())
    else:
        _tell(found)
    if not found.is_intact:
        raise click.exceptions.Exit(FAILED)


def _tell(found: "Verification") -> None:
    from clew.cli.formatting import counted, size

    for each in found.findings:
        say(f"{each.subject}: {each.problem}")
    counts = [f"{number:,} {_WORDS[kind][number != 1]}" for kind in _ORDER if (number := found.checked.get(kind, 0))]
    checked = f"{', '.join(counts)}, {size(found.checked.get('bytes', 0))} in {found.seconds:.1f} s"
    if found.is_intact:
        say(f"{good('intact')}: {checked}")
    else:
        say(f"{bad('not intact')}: {counted(len(found.findings), 'finding')} in {checked}")
