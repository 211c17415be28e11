"""An error as a page tells it: what is wrong, without commands to type, and where to go on."""

import re
from urllib.parse import unquote

from clew.deferred import dataclass
from clew.diagnostics import ClewError, Diagnostic
from clew.server.pages import addresses
from clew.trace.results import is_row_of

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COMMAND = re.compile(r"`clew\b|the command\b| --\w")
_LISTS = {
    "runs": ("All runs", "/runs"),
    "projects": ("All projects", "/projects"),
    "datasets": ("All datasets", "/datasets"),
    "captures": ("All captures", "/captures"),
    "lineage": ("Lineage", "/lineage"),
}


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a message; an id of a row leads to the row."""

    text: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class ToldProblem:
    """One of the things that are wrong."""

    message: tuple[TextPart, ...]
    hint: str | None
    """What to do about it; None where that would be a command."""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """An error."""

    title: str
    problems: tuple[ToldProblem, ...]
    code: str
    status: int
    leads: tuple[tuple[str, str], ...]
    """Where to go on: names and addresses."""


def told_error(error: ClewError, path: str, status: int, title: str) -> ErrorPage:
    """The page of an error at an address."""
    run = _run_of(path)
    problems = tuple(ToldProblem(with_row_links(each.message, run), page_hint(each)) for each in error.diagnostics)
    return ErrorPage(title, problems, error.code, status, tuple(_leads(error, path, run)))


def page_hint(diagnostic: Diagnostic) -> str | None:
    """What to do about a problem, if that can be done on a page."""
    hint = diagnostic.hint
    return None if hint is None or _COMMAND.search(hint) else hint


def with_row_links(message: str, run: str | None) -> tuple[TextPart, ...]:
    """A message in which the ids of rows of a run lead to them."""
    parts, done = list[TextPart](), 0
    for found in _ID.finditer(message):
        if run is None or not is_row_of(run, found[0]) or "has no row" in message:
            continue
        parts += [TextPart(message[done : found.start()]), TextPart(found[0], addresses.row(run, found[0]))]
        done = found.end()
    return (*parts, TextPart(message[done:]))


def _run_of(path: str) -> str | None:
    section, _, rest = path.strip("/").partition("/")
    return unquote(rest.partition("/")[0]) if section == "runs" and rest else None


def _leads(error: ClewError, path: str, run: str | None) -> list[tuple[str, str]]:
    section, _, rest = path.strip("/").partition("/")
    found = list[tuple[str, str]]()
    if run is not None and "/" in rest and error.code != "RunNotFound":
        found.append(("The page of the run", addresses.run(run)))
    found.append(_LISTS.get(section, _LISTS["runs"]))
    return found if found[-1] == _LISTS["runs"] else [*found, _LISTS["runs"]]
