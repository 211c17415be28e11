"""Outputs of one project that would take away what an earlier one of the same run has written."""

from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.model import DatabaseDatasource, FilesDatasource, Workspace
from clew.plan.plan import Plan
from clew.plan.steps import Destination, OutputStep

_HINT = "give each output a place of its own, or let the later one add to it with `mode: append`"


def output_clashes(workspace: Workspace, plan: Plan) -> Iterator[Diagnostic]:
    """Every output that replaces an earlier one: nobody could ever read what that has written.

    Placeholders are compared as they are written, since a run fills them in alike for all of its outputs.
    """
    outputs = [(step, _place(workspace, step.destination)) for step in plan.steps if isinstance(step, OutputStep)]
    for index, (later, place) in enumerate(outputs):
        if later.mode == "append" or place is None:
            continue
        for earlier, other in outputs[:index]:
            if other is not None and other.parts[: len(place.parts)] == place.parts:
                yield _clash(earlier, later)
                break


def _clash(earlier: OutputStep, later: OutputStep) -> Diagnostic:
    where = later.destination.path or later.destination.table
    first = f'step {earlier.seq} "{earlier.name}"' + (f" ({earlier.place})" if earlier.place is not None else "")
    problem = f'the output to "{where}" would replace what {first} writes in the same run'
    if later.place is None:
        return OUTPUT_CONFLICT.anywhere(problem=problem, hint=_HINT)
    return OUTPUT_CONFLICT.at(later.place, problem=problem, hint=_HINT)


def _place(workspace: Workspace, destination: Destination) -> Path | None:
    """Where an output goes, as a path that is the same for the same place; None where that cannot be told."""
    name = destination.datasource_id
    datasource = workspace.datasource(name) if name is not None else None
    if destination.table is not None:
        if not isinstance(datasource, DatabaseDatasource):
            return None
        schema = datasource.options.schema or ""
        return Path("table:", datasource.options.url, f"{schema}.{destination.table}".removeprefix("."))
    if name is None:
        return Path(normpath(workspace.root / (destination.path or "")))
    if not isinstance(datasource, FilesDatasource):
        return None
    return Path(normpath(workspace.root / datasource.options.root / (destination.path or "")))
