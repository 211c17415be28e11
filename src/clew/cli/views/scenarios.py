"""Readable differences for failed scenarios, and the progress of a test."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from clew.cli.output import bad, error_text, has_colours, say
from clew.cli.views.page import plain
from clew.scenarios.matching import Mismatch, ScenarioRow
from clew.scenarios.scenario_results import ScenarioResult

_MOST_SHOWN = 10
"""How many mismatches of a scenario are shown; the rest are only counted."""


def result_lines(result: ScenarioResult, source_of: Callable[[str], str | None]) -> Iterator[str]:
    """The expected and actual result of a scenario; nothing if it passed."""
    if result.error is not None:
        yield f"{bad('error')} {plain(result.name)} ({plain(result.file)})"
        yield from (f"  {line}" for line in error_text(result.error, source_of, sys.stdout).splitlines())
    if not result.mismatches:
        return
    yield f"{bad('failed')} {plain(result.name)} ({plain(result.file)})"
    for mismatch in result.mismatches[:_MOST_SHOWN]:
        yield from _mismatch_lines(mismatch)
    left = len(result.mismatches) - _MOST_SHOWN
    if left > 0:
        yield f"  ... and {left} more"


def _mismatch_lines(mismatch: Mismatch) -> Iterator[str]:
    if mismatch.kind in {"missing column", "extra column"}:
        yield f"  {mismatch.where}: {mismatch.kind} {', '.join(map(str, mismatch.columns))}"
        return
    said = f": {plain(mismatch.message)}" if mismatch.message else ""
    yield f"  {mismatch.where}: {mismatch.kind}{said}"
    if mismatch.columns:
        yield from _difference(mismatch)
    elif mismatch.expected is not None:
        yield f"    - {_row(mismatch.expected)}"
    elif mismatch.actual is not None:
        yield f"    + {_row(mismatch.actual)}"


def _difference(mismatch: Mismatch) -> Iterator[str]:
    """The columns that differ, below the columns that identify the row."""
    expected, actual = mismatch.expected or {}, mismatch.actual or {}
    same = {name: value for name, value in expected.items() if name not in mismatch.columns}
    if same:
        yield f"      {_row(same)}"
    width = max(len(name) for name in mismatch.columns)
    for name in mismatch.columns:
        yield f"    - {name:<{width}}  {_value(expected.get(name))}"
        yield f"    + {name:<{width}}  {_value(actual.get(name))}"


def _row(row: ScenarioRow) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in row.items())


def _value(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:f}"
        case _:
            return plain(value).plain


class ScenarioProgress:
    """Prints only lines, for pipes and files."""

    def tell(self, line: str) -> None:
        """Show a line."""
        say(line)

    def advance(self, name: str) -> None:
        """Count one more scenario."""


class LiveScenarioProgress(ScenarioProgress):
    """Shows a live line, for terminals."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def tell(self, line: str) -> None:
        """Show a line above the live line."""
        self._bar.console.print(line, soft_wrap=True)

    def advance(self, name: str) -> None:
        """Count one more scenario."""
        self._bar.update(self._task, advance=1, description=plain(name).plain)


@contextmanager
def scenario_progress(count: int) -> Iterator[ScenarioProgress]:
    """The progress display that suits standard output."""
    if not sys.stdout.isatty():
        yield ScenarioProgress()
        return
    console = Console(no_color=not has_colours(sys.stdout), highlight=False, markup=False)
    columns = (BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}", markup=False), console=console, transient=True) as bar:
        yield LiveScenarioProgress(bar, bar.add_task("starting Spark", total=count))
