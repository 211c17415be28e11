"""`clew contract`."""

from pathlib import Path

import click

from clew.cli.formatting import counted
from clew.cli.options import argument, command, option, workspace_option
from clew.cli.output import say, write_bytes, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import WRONG_USAGE

_ACTIONS = ("export", "import")


@command
@argument("action", metavar="export|import", help="The action.")
@argument("subject", metavar="NAME", help="For export: a dataset. For import: a file with a contract.")
@option("--out", metavar="FILE", type=Path, help="For export: write the contract to this file.")
@option("--replace", is_flag=True, help="For import: replace datasets that are defined already.")
@workspace_option
def contract(
    context: click.Context, action: str, subject: str, out: Path | None, replace: bool, workspace: Path | None
) -> None:
    """Write a dataset as a data contract, or datasets from one.

    Contracts are YAML files of the Open Data Contract Standard: columns with their types, keys and classes, and checks
    as rules of data quality. `import` writes files into datasets/, and says what datasets cannot express.
    """
    session = context.ensure_object(Session)
    if action not in _ACTIONS:
        hint = did_you_mean(action, _ACTIONS) or f"the actions are {', '.join(_ACTIONS)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint=hint))
    opened = session.open(workspace)
    if action == "export":
        text = opened.export_contract(subject)
        if out is not None:
            write_bytes(out, text.encode())
        if session.wants_json:
            write_json({"dataset": subject, "file": None if out is None else str(out), "contract": text})
        else:
            say(text.removesuffix("\n") if out is None else f"written to {out}")
        return
    written = opened.import_contract(Path(subject), replace=replace)
    if session.wants_json:
        write_json({"datasets": [each.to_json() for each in written]})
        return
    for each in written:
        say(f"{each.file} written")
        for note in each.notes:
            say(f"  note: {note}")
    say(f"{counted(len(written), 'dataset')}; next: {session.command('check')}")
