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
EnvironmentOption = Annotated[
    str | None,
    typer.Option("--env", metavar="NAME", help="The environment; the usual one if left out."),
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run, or the beginning of it.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
"""Read by the session from the arguments; declared so that the command takes it and its help shows it."""

VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error.")]
"""Read by the session from the arguments; declared so that the command takes it and its help shows it."""
