"""Options that commands have in common. A command takes those that make sense for it."""

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-w", metavar="DIR", help="The workspace; the one around the present folder if left out."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
"""Read by the session from the arguments; declared so that the command takes it and its help shows it."""

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]
"""Read by the session from the arguments; declared so that the command takes it and its help shows it."""
