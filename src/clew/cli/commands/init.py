"""`clew init`."""

from pathlib import Path
from shlex import quote

import click

from clew.cli.formatting import counted
from clew.cli.options import argument, command
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@argument("folder", metavar="DIR", type=Path, default=Path(), required=False, help="An empty or new folder.")
@click.option(
    "--sample",
    type=click.Choice(["ledger", "insurance"]),
    default="ledger",
    help="Which one: the close of a general ledger (default), or claims of an insurer.",
)
def init(context: click.Context, folder: Path, sample: str) -> None:
    """Create a sample workspace, ready to check.

    The sample is the month-end close of a general ledger: three months of data, two projects and their scenarios.
    That of an insurer has dirty files of several kinds, and projects for payments, claims, triangles and loss ratios.
    """
    from clew.api.workspace_files import write_sample_workspace

    session = context.ensure_object(Session)
    files = write_sample_workspace(folder, sample)
    if session.wants_json:
        write_json({"path": str(folder.absolute()), "files": [file.as_posix() for file in files]})
        return
    here = folder == Path()
    say(f"{counted(len(files), 'file')} written{'' if here else f' to {folder}'}; README.md describes them")
    say(f"next: {'' if here else f'cd {quote(str(folder))} && '}clew check")
