"""The entry point: finds the command, runs it, and returns its exit code."""

import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from types import ModuleType

import click

from clew import __version__
from clew.cli.failure import DONE, FAILED, INTERRUPTED, report
from clew.cli.options import HELP
from clew.cli.output import abandon, say, tolerate_any_text
from clew.cli.session import Session

COMMANDS: Mapping[str, str] = {
    "init": "init:init",
    "check": "check:check",
    "doctor": "doctor:doctor",
    "plan": "plan:plan",
    "test": "test:run_scenarios",
    "run": "run:run_project",
    "rerun": "rerun:rerun",
    "runs": "runs:runs",
    "show": "show:show",
    "events": "events:events",
    "verify": "verify:verify",
    "reconcile": "reconcile:reconcile",
    "quarantine": "quarantine:quarantine",
    "adjustments": "adjustments:adjustments",
    "checks": "checks:checks",
    "check-data": "check_data:check_data",
    "compare": "compare:compare",
    "why-changed": "why_changed:why_changed",
    "what-if": "what_if:what_if",
    "evidence": "evidence:evidence",
    "signal": "signal:signal",
    "rm": "rm:rm",
    "trace": "trace:trace",
    "explain": "explain:explain",
    "lineage": "lineage:lineage",
    "captures": "captures:captures",
    "capture": "capture:capture",
    "gc": "gc:gc",
    "projects": "projects:projects",
    "activate": "projects:activate",
    "deactivate": "projects:deactivate",
    "datasets": "datasets:datasets",
    "worker": "worker:worker",
    "collect": "collect:collect",
    "nodes": "nodes:nodes",
    "serve": "serve:serve",
    "token": "token:token",
    "sessions": "sessions:sessions",
    "audit": "audit:audit",
    "dlq": "dlq:dlq",
    "schema": "schema:schema",
    "contract": "contract:contract",
}
"""Module and name of each command in `clew.cli.commands`, in the order in which a new user meets them."""


_READING = frozenset(
    {"runs", "show", "events", "verify", "trace", "explain", "lineage", "captures", "datasets"}
    | {"compare", "why-changed", "what-if"}
)
"""Commands that only read."""


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name. Imports a module when its command or its help is first needed."""

    def __init__(self) -> None:
        self._added = dict[str, click.Command]()

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._added:
            module, _, command = COMMANDS[name].partition(":")
            found = getattr(import_module(f"clew.cli.commands.{module}"), command)
            assert isinstance(found, click.Command)  # noqa: S101 - a test loads them all
            self._added[name] = found
        return self._added[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._added[name] = command

    def __delitem__(self, name: str) -> None:
        del self._added[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _CommandLine(click.Group):
    """All commands, listed in the order of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """The names as help lists them."""
        return list(COMMANDS)


def command_line() -> click.Group:
    """All commands."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and exit.",
    )
    return _CommandLine(
        name="clew",
        commands=_Commands(),
        params=[version],
        help=(
            "Clew runs data pipelines on Spark and can follow any number in their output back to the rows it came from."
        ),
        epilog="Start with `clew init ledger`, then `cd ledger` and `clew check`.",
        context_settings=HELP,
    )


def _print_version(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        say(f"clew {__version__}")
        context.exit()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command given by the arguments (by default those of the process) and exit."""
    given = sys.argv[1:] if arguments is None else arguments
    if _READING.intersection(given[:1]):
        sys.meta_path.insert(0, _NotForReading())
    sys.exit(run(given))


_NOT_FOR_READING = frozenset({"numpy", "pandas"})


class _NotForReading:
    """PyArrow loads NumPy and pandas where it finds them, for arrays and data frames that no command makes.

    They take longer to load than all that a command does with rows.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as Python calls it
        target: ModuleType | None = None,  # noqa: ARG002 - as Python calls it
    ) -> None:
        """Say that there are none."""
        if fullname in _NOT_FOR_READING:
            raise ModuleNotFoundError(f"{fullname} is not needed to read", name=fullname)


def run(arguments: Sequence[str]) -> int:
    """Run the command given by the arguments. Returns the exit code."""
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
        return _invoke(list(arguments) or ["--help"], session)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        abandon()
        return FAILED
    except Exception as error:  # noqa: BLE001 - users must never see a traceback unless they ask for it
        return report(error, session)


def _invoke(arguments: list[str], session: Session) -> int:
    """Run the command. Unlike `click.Command.main`, this does not exit when the reader closes the pipe."""
    line = command_line()
    try:
        with line.make_context("clew", arguments, obj=session) as context:
            line.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return DONE
