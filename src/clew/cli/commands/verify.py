"""`clew verify`."""

from functools import partial
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
    from clew.api.pack_verification import PackVerification
    from clew.api.verification import Verification

_ORDER = (
    *("entries", "checkpoints", "records", "removals", "runs", "events", "parts", "files"),
    *("steps", "rows", "expressions"),
)
_WORDS = {
    "entries": ("ledger entry", "ledger entries"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "records": ("record", "records"),
    "removals": ("removal", "removals"),
    "runs": ("run", "runs"),
    "events": ("event", "events"),
    "parts": ("part", "parts"),
    "files": ("file", "files"),
    "steps": ("step", "steps"),
    "rows": ("row", "rows"),
    "expressions": ("expression", "expressions"),
}


@command
@argument("run", metavar="RUN", help="The id of a run, or its first characters; or an evidence pack.", required=False)
@option("--all", "everything", is_flag=True, help="Verify the ledger, all records and all runs.")
@option("--deep", is_flag=True, help="Also evaluate every expression again, for every row, without Spark.")
@option("--key", metavar="HEX", help="Require that the key with this fingerprint signed the pack.")
@environment_option
@workspace_option
def verify(
    context: click.Context,
    run: str | None,
    everything: bool,
    deep: bool,
    key: str | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Check that what is recorded is what was written.

    For a run: its request, every event, its state, its plan, and every byte of its files. With --all: every run, the
    ledger of the environment, and the tokens, versions and reads that it vouches for. For an evidence pack: its
    signature, the digest of every member, its events, and every value that it explains, calculated again; no workspace
    is needed. Exits with 1 if anything differs. The result for runs is recorded in the ledger.
    """
    from clew.api.pack_verification import is_pack

    session = context.ensure_object(Session)
    if (run is None) != everything:
        raise UserError(WRONG_USAGE.anywhere(problem="name a run or a pack, or write --all"))
    if run is not None and is_pack(Path(run)):
        pack = _verified_pack(session, Path(run), key, workspace, environment)
        found: Verification = pack
        tell = partial(_tell_pack, pack)
    else:
        with session.open(workspace, environment) as opened:
            found = opened.verify(deep=deep) if run is None else opened.find_run(run).verification(deep=deep)
        tell = partial(_tell, found)
    if session.wants_json:
        write_json(found.to_json())
    else:
        tell()
    if not found.is_intact:
        raise click.exceptions.Exit(FAILED)


def _verified_pack(
    session: Session, pack: Path, key: str | None, workspace: Path | None, environment: str | None
) -> "PackVerification":
    """The pack, with the seals of its events where there is a workspace that has their key."""
    from clew.api.pack_verification import verify_pack

    try:
        return session.open(workspace, environment).verify_pack(pack, key=key)
    except UserError:
        if workspace is not None or environment is not None:
            raise
        return verify_pack(pack, key=key)


def _tell_pack(found: "PackVerification") -> None:
    from clew.cli.formatting import counted, size

    for each in found.findings:
        say(f"{each.subject}: {each.problem}")
    for kind, number in found.checked.items():
        say(f"{number:>12,} {kind}" if kind != "bytes" else f"{size(number):>12} in all")
    whose = {None: "", True: ", the key of this environment", False: ", which is not the key of this environment"}
    say(f"signed with the key {found.fingerprint or 'unknown'}{whose[found.is_own_key]}")
    if found.is_intact:
        say(good("intact"))
    else:
        say(f"{bad('not intact')}: {counted(len(found.findings), 'finding')}")


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
