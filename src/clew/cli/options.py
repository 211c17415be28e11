"""How commands are declared: click's decorators with Clew's help layout, and the options that commands share.

Every command has `--json` and `--verbose`; the other shared options are optional.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

HELP = {"help_option_names": ["--help", "-h"], "max_content_width": 100, "show_default": True}
"""The context settings of all commands."""

Function = TypeVar("Function", bound=Callable[..., Any])


class WholeNumber(click.IntRange):
    """An integer within bounds."""

    name = "whole number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; fails with a one-sentence message."""
        try:
            number = int(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        if self.min is not None and number < self.min:
            self.fail(f"{number} is less than {self.min:g}.", param, ctx)
        if self.max is not None and number > self.max:
            self.fail(f"{number} is more than {self.max:g}.", param, ctx)
        return number


class _Argument(click.Argument):
    """An argument whose metavar is a bare word; brackets and dots are added from its declaration."""

    def make_metavar(self, ctx: click.Context) -> str:
        """The word as shown in usage lines."""
        word = self.metavar or super().make_metavar(ctx)
        dots = "" if self.nargs == 1 else "..."
        return f"{word}{dots}" if self.required else f"[{word}]{dots}"


class _Command(click.Command):
    """A command whose help lists arguments before options."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments with their help."""
        rows = [
            (each.metavar or "", f"{each.help or ''}{'  [required]' if each.required else ''}")
            for each in self.get_params(ctx)
            if isinstance(each, _Argument)
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)


def command(function: Callable[..., None]) -> click.Command:
    """Declare a command. Its help is the docstring; the function gets the context and every parameter by name.

    The session reads `--json` and `--verbose` from the arguments. They are declared here so that every command
    accepts them and shows them in its help.
    """
    made = click.command(cls=_Command, context_settings=HELP)(click.pass_context(function))
    made.params += [
        click.Option(["--json"], is_flag=True, expose_value=False, help="Print one JSON document and nothing else."),
        click.Option(["--verbose"], is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]
    return made


def argument(name: str, *, metavar: str, help: str, **settings: Any) -> Callable[[Function], Function]:  # noqa: A002, ANN401 - click uses this name
    """Declare an argument."""
    return click.argument(name, cls=_Argument, metavar=metavar, help=help, **settings)


option = click.option

workspace_option = option(
    "--workspace",
    "-w",
    metavar="DIR",
    type=Path,
    help="The workspace folder. Default: the workspace that contains the current folder.",
)


def param_option(function: Function) -> Function:
    """`--param NAME=VALUE`, any number of times."""
    text = "The value of a parameter of the project. Repeatable."
    return option("--param", metavar="NAME=VALUE", multiple=True, help=text)(function)


def given_parameters(words: Sequence[str], flag: str = "--param") -> dict[str, object]:
    """The values of `--param`, by name. Raises UserError where one has no name, or two."""
    given = dict[str, object]()
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or name in given:
            problem = f'"{word}" repeats a parameter' if name in given else f'"{word}" is not NAME=VALUE'
            raise UserError(WRONG_USAGE.anywhere(problem=f"{flag} {problem}", hint=f"write {flag} NAME=VALUE"))
        given[name] = value
    return given


environment_option = option(
    "environment", "--env", metavar="NAME", help="The environment. Default: the one that clew.yaml sets."
)
run_argument = argument("run", metavar="RUN", help="The id of a run, or its first characters.")
project_argument = argument("project", metavar="PROJECT", help="The id or name of a project.")
