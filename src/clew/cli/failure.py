"""How a failed command reports: message, excerpt, hint and exit code. Tracebacks appear only with --verbose."""

import sys
import traceback
from dataclasses import replace

import click

from clew.cli.output import error_text, write_json
from clew.cli.session import Session
from clew.diagnostics import ClewError, EngineBug, Nature, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.commands import INTERNAL_ERROR, UNWRITABLE_OUTPUT, WRONG_USAGE
from clew.diagnostics.codes.workspace import INVALID_VALUE, UNREADABLE_FILE
from clew.diagnostics.file_system import file_system_failed

DONE, FAILED, WRONG, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 130

_EXIT_CODES = {Nature.WRONG: FAILED, Nature.USAGE: WRONG, Nature.NOT_FOUND: NOT_FOUND}


def report(error: Exception, session: Session) -> int:
    """Show an error to the user. Returns the exit code."""
    if session.is_verbose:
        traceback.print_exception(error)
    known = _with_own_help(_known(error), session)
    if session.wants_json and known.code != UNWRITABLE_OUTPUT.name:
        try:
            write_json(known.to_json())
        except ClewError as unwritable:
            _print(unwritable, session)
    else:
        _print(known, session)
    return _exit_code(known)


def _exit_code(error: ClewError) -> int:
    """Errors outside files are about arguments: an invalid value is wrong usage, a missing file is not found."""
    given = {INVALID_VALUE.name: WRONG, UNREADABLE_FILE.name: NOT_FOUND}
    if error.code in given and all(diagnostic.span is None for diagnostic in error.diagnostics):
        return given[error.code]
    return _EXIT_CODES[CATALOGUE[error.code].nature]


def _print(error: ClewError, session: Session) -> None:
    for diagnostic in error.diagnostics:
        sys.stderr.write(error_text(diagnostic, session.source_of, sys.stderr) + "\n")


def _known(error: Exception) -> ClewError:
    match error:
        case ClewError():
            return error
        case click.ClickException():
            return UserError(WRONG_USAGE.anywhere(problem=_as_sentence(error.format_message()), hint=_help_for(error)))
        case _:
            unforeseen = f"{type(error).__name__}: {error}".rstrip(": ")
            return file_system_failed(error) or EngineBug(INTERNAL_ERROR.anywhere(problem=unforeseen))


def _with_own_help(error: ClewError, session: Session) -> ClewError:
    """If the only hint is to read the help, point to the help of the command that was called."""
    if error.code != WRONG_USAGE.name:
        return error
    hint = f"`{session.help_command}` shows the usage"
    told = [replace(each, hint=hint) if each.hint == WRONG_USAGE.remedy else each for each in error.diagnostics]
    return UserError(*told)


def _as_sentence(message: str) -> str:
    """Click's message in our style: no capital letter, no full stop."""
    return (message[:1].lower() + message[1:]).rstrip(".")


def _help_for(error: click.ClickException) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "clew")
    return f"`{path} --help` shows the usage"
