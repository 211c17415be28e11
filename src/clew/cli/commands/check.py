"""`clew check`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.formatting import counted, enumerated
from clew.cli.options import argument, command, environment_option, given_parameters, param_option, workspace_option
from clew.cli.output import bad, error_text, good, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.checking import Check


@command
@argument("project", metavar="PROJECT", required=False, help="Check only this project and what it uses.")
@param_option
@workspace_option
@environment_option
def check(
    context: click.Context,
    project: str | None,
    param: tuple[str, ...],
    workspace: Path | None,
    environment: str | None,
) -> None:
    """Compile everything and report all errors.

    Reads every file of the workspace. Does not start Spark and changes nothing. If the environment has a state store,
    projects are also compared with the versions of datasets in it.
    """
    session = context.ensure_object(Session)
    opened = session.open(workspace, environment)
    opened.require_environment()
    given = given_parameters(param)
    if given and project is None:
        raise UserError(WRONG_USAGE.anywhere(problem="--param needs a project", hint="name the project to check"))
    found = opened.check(project)
    if given and project is not None and found.is_ok:
        opened.plan(project, given)
    if session.wants_json:
        write_json({"workspace": opened.name, "project": project, **found.to_json()})
    else:
        _print(found, session)
    if not found.is_ok:
        raise click.exceptions.Exit(FAILED)


def _print(found: "Check", session: Session) -> None:
    for diagnostic in found.diagnostics:
        say(error_text(diagnostic, session.source_of, sys.stdout))
    for note in found.notes:
        say(f"note: {note}")
    checked = _in_words(found.counts)
    time = f"({session.seconds:.1f} s)"
    if found.is_ok:
        say(f"{good('ok')}: {checked} {time}")
    else:
        say(f"{bad(counted(len(found.diagnostics), 'error'))} in {checked} {time}")


def _in_words(counts: Mapping[str, int]) -> str:
    return enumerated([counted(number, folder.removesuffix("s")) for folder, number in counts.items()]) or "no projects"
