"""The entry point: finds the command, runs it, and turns whatever comes of it into an exit code."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from clew import __version__
from clew.cli.commands.capture import capture
from clew.cli.commands.captures import captures
from clew.cli.commands.check import check
from clew.cli.commands.collect import collect
from clew.cli.commands.datasets import datasets
from clew.cli.commands.dlq import dlq
from clew.cli.commands.events import events
from clew.cli.commands.explain import explain
from clew.cli.commands.gc import gc
from clew.cli.commands.init import init
from clew.cli.commands.lineage import lineage
from clew.cli.commands.plan import plan
from clew.cli.commands.projects import activate, deactivate, projects
from clew.cli.commands.rm import rm
from clew.cli.commands.run import run_project
from clew.cli.commands.runs import runs
from clew.cli.commands.schema import schema
from clew.cli.commands.serve import serve
from clew.cli.commands.show import show
from clew.cli.commands.signal import signal
from clew.cli.commands.test import run_scenarios
from clew.cli.commands.token import token
from clew.cli.commands.trace import trace
from clew.cli.commands.worker import worker
from clew.cli.failure import DONE, FAILED, INTERRUPTED, report
from clew.cli.output import abandon, say, tolerate_any_text
from clew.cli.plain_values import commands_of
from clew.cli.session import Session

_PLAIN_HELP = {"help_option_names": ["--help", "-h"], "max_content_width": 100}

_COMMANDS: Mapping[str, Callable[..., None]] = {
    "init": init,
    "check": check,
    "plan": plan,
    "test": run_scenarios,
    "run": run_project,
    "runs": runs,
    "show": show,
    "events": events,
    "signal": signal,
    "rm": rm,
    "trace": trace,
    "explain": explain,
    "lineage": lineage,
    "captures": captures,
    "capture": capture,
    "gc": gc,
    "projects": projects,
    "activate": activate,
    "deactivate": deactivate,
    "datasets": datasets,
    "worker": worker,
    "collect": collect,
    "serve": serve,
    "token": token,
    "dlq": dlq,
    "schema": schema,
}
"""In the order in which one meets them."""


def command_line() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="clew",
        help=(
            "Clew runs data pipelines on Spark and can follow any number in their output back to the rows it came from."
        ),
        epilog="Start with `clew init ledger`, then `cd ledger` and `clew check`.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_PLAIN_HELP,
    )
    app.callback()(_before_commands)
    for name, command in _COMMANDS.items():
        app.command(name, context_settings=_PLAIN_HELP)(command)
    return app


def _print_version(is_asked: bool) -> None:
    if is_asked:
        say(f"clew {__version__}")
        raise typer.Exit


def _before_commands(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """What stands before the command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command of these arguments, those of the process where left out, and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command of these arguments. Gives the exit code."""
    tolerate_any_text()
    code = _run(arguments, Session(arguments))
    try:
        sys.stdout.flush()
    except OSError:
        abandon()
        return code or FAILED
    return code


def _run(arguments: Sequence[str], session: Session) -> int:
    try:
        result = commands_of(command_line()).main(
            list(arguments) or ["--help"], prog_name="clew", standalone_mode=False, obj=session
        )
    except Exception as error:  # noqa: BLE001 - nothing that goes wrong may reach the user as a traceback
        return report(error, session)
    code = result if isinstance(result, int) else DONE
    if code == INTERRUPTED:
        sys.stderr.write("interrupted\n")
    return code
