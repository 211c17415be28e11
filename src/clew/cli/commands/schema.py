"""`clew schema`."""

import click

from clew.cli.options import argument, command
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@argument("kind", metavar="KIND", required=False, help="A kind of file. Default: list all kinds.")
def schema(context: click.Context, kind: str | None) -> None:
    """Print the JSON Schema of a kind of file.

    Editors use it to complete keys and to check files as you type.
    """
    from clew.definitions.schemas import SCHEMA_PLACES, schema_of

    session = context.ensure_object(Session)
    if kind is not None:
        write_json(schema_of(kind))
        return
    if session.wants_json:
        write_json({"kinds": [{"kind": name, "files": place} for name, place in SCHEMA_PLACES.items()]})
        return
    for name, place in SCHEMA_PLACES.items():
        say(f"{name:<12}{place}")
    say("`clew schema KIND` prints the JSON Schema of one of them")
