"""Writes docs/reference/commands.md from the declarations of the commands.

Run it with `make docs`. A test fails if the page is out of date.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from clew.cli.main import command_line

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"

HEADER = """\
<!-- Written by `make docs` from the declarations in the code. Change those, then run it again. -->

# Commands

`clew COMMAND --help` prints the same. With `--json`, every command prints exactly one JSON document on standard output;
an error is printed as `{"error": {"code", "message", "file", "line", "column", "hint"}}`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or found errors |
| 2 | wrong usage |
| 3 | not found |
| 130 | interrupted |

Output is coloured on terminals only. `NO_COLOR` turns colours off, `FORCE_COLOR` turns them on.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(commands_page(), encoding="utf-8", newline="\n")


def commands_page() -> str:
    """Every command with its arguments and options."""
    group = command_line()
    parts = [HEADER, "## clew\n", *_parameters(group)]
    for name, command in group.commands.items():
        parts += _command(name, command)
    return "\n".join(parts)


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"clew {name}", **command.context_settings)
    yield f"## clew {name}\n"
    yield f"```\n{context.get_usage().removeprefix('Usage: ')}\n```\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    yield from _parameters(command)


def _parameters(command: click.Command) -> Iterator[str]:
    context = click.Context(command, **command.context_settings)
    rows = list[str]()
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Argument):
            rows.append(f"| {_code(parameter.metavar or parameter.name or '')} | {parameter.help} |")
        elif isinstance(parameter, click.Option):
            value = f" {parameter.metavar}" if parameter.metavar else ""
            names = ", ".join(_code(f"{name}{value}") for name in sorted(parameter.opts, key=len, reverse=True))
            rows.append(f"| {names} | {parameter.help} |")
    yield "\n".join(["| argument or option | |", "|---|---|", *rows, ""])


def _code(text: str) -> str:
    """Code in a cell of a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    main()
