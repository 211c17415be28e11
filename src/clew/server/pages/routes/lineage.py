"""Lineage of runs and datasets, and of single values."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.server.access.visit import AskingVisit, Visit
from clew.server.pages import addresses
from clew.server.pages.drawing.graph import Graph, drawn
from clew.server.pages.drawing.picture_file import graph_file
from clew.server.pages.explain_page import explain_page
from clew.server.pages.lineage_page import lineage_page, trace_graph, value_graph
from clew.server.pages.lineage_runs import RunsToDraw, periods_above, run_graph, run_key, versions_in
from clew.server.pages.rendering import AtDesk
from clew.server.pages.routes.rows import title_of
from clew.tracelink import Direction

router = APIRouter()

_USUAL_RUNS, _MOST_RUNS = 60, 250
"""How many runs are drawn; older ones are added where these have read their rows."""
_MOST_COUNTED = 1000
_ROWS_BEHIND = 8
_MOST_TRACES = 200


@router.get("/lineage")
@router.get("/lineage.json")
@router.get("/lineage.svg")
def lineage(
    visit: AskingVisit,
    desk: AtDesk,
    project: str = "",
    period: str = "",
    focus: str = "",
    run: str = "",
    row: str = "",
    column: str = "",
    at: Annotated[int | None, Query(ge=0)] = None,
    trace: Annotated[int | None, Query(ge=1, lt=2**64)] = None,
    direction: Direction = Direction.UP,
    runs: Annotated[int, Query(ge=1, le=_MOST_RUNS)] = _USUAL_RUNS,
) -> Response:
    """A graph of the values that a value was made from, of a trace id, or by default of runs and datasets."""
    if trace is not None:
        return _of_trace(visit, desk, trace, direction)
    if run and row and column:
        return _of_value(visit, desk, run, row, column, at)
    about = visit.workspace.find_run(focus).id if focus else None
    graph, left_out = _of_runs(visit, project.strip(), period.strip(), about, runs)
    if about is not None:
        graph = graph.around(run_key(about))
    if desk.wants_picture:
        return desk.picture(graph_file(drawn(graph), "Lineage"), "lineage")
    asked = {"project": project, "period": period, "focus": focus}
    more = (f"Show {_MOST_RUNS} runs", addresses.lineage(**asked, runs=_MOST_RUNS))
    return desk.page(
        visit,
        "lineage.html",
        section="Lineage",
        page=lambda: lineage_page(
            graph,
            title="Lineage",
            lead=f"What runs read and published, from left to right.{left_out}",
            focus=str(title_of(visit, about)) if about else None,
            project=project,
            period=period,
            projects=visit.project_ids(),
            has_filter=about is None,
            file_address=addresses.as_picture(addresses.lineage(**asked, runs=runs if runs != _USUAL_RUNS else "")),
            more_address=more if left_out and about is None and runs < _MOST_RUNS else None,
        ),
        document=graph.to_json,
        scripts=("graph.js",),
    )


def _of_runs(visit: Visit, project: str, period: str, about: str | None, most: int) -> tuple[Graph, str]:
    """The newest runs and one that is asked about, with the runs whose rows they read; and what is left out."""
    workspace = visit.workspace
    found = workspace.find_runs(project=project or None, period=period or None, limit=_MOST_COUNTED + 1)
    newest = found[:most]
    if about is not None and all(run.id != about for run in newest):
        newest = [workspace.find_run(about), *newest]
    graph = run_graph(RunsToDraw(newest, workspace.find_run, versions_in(workspace), periods_above(workspace)))
    if len(found) <= most:
        return graph, ""
    count = f"{len(found):,}" if len(found) <= _MOST_COUNTED else f"more than {_MOST_COUNTED:,}"
    return graph, f" The newest {most} of {count} runs, and older ones whose rows these have read."


def _of_value(visit: Visit, desk: AtDesk, run: str, row: str, column: str, at: int | None) -> Response:
    visit.caller.require(Permission.READ_ROWS)
    asked = visit.workspace.find_run(run)
    run_id = asked.id
    visit.has_read(Subject.LINEAGE, run_id, f"row {row} column {column}")
    found = explain_page(
        asked.explain(row, column, at=at, top=_ROWS_BEHIND), lambda each: title_of(visit, each), top=_ROWS_BEHIND
    )
    graph = value_graph(found.root, run_id, str(title_of(visit, run_id)))
    if desk.wants_picture:
        return desk.picture(graph_file(drawn(graph), f"{column} of {found.label}"), f"lineage-{run_id[:8]}")
    return desk.page(
        visit,
        "lineage.html",
        section="Lineage",
        page=lambda: lineage_page(
            graph,
            title=f"{column} of {found.label}",
            lead="The values that this one was made from, from the files on the left to the value on the right.",
            back=(
                (f"{found.run_title}, {found.period}", found.run_address),
                (found.label, found.row_address),
                ("Explanation", addresses.explanation(run_id, row, column, at=at)),
            ),
            file_address=addresses.as_picture(addresses.lineage(run=run_id, row=row, column=column, at=at)),
        ),
        document=graph.to_json,
        scripts=("graph.js",),
    )


def _of_trace(visit: Visit, desk: AtDesk, trace: int, direction: Direction) -> Response:
    visit.caller.require(Permission.READ_ROWS)
    visit.require_own_workspace()
    visit.has_read(Subject.LINEAGE, str(trace), direction.value)
    found = visit.workspace.lineage(trace, direction.value, limit=_MOST_TRACES)
    graph = trace_graph(found)
    if desk.wants_picture:
        return desk.picture(graph_file(drawn(graph), f"Trace {trace}"), f"lineage-{trace}")
    upwards = direction is Direction.UP
    rest = "" if found.is_complete else f" Only the nearest {len(graph.nodes)} are shown."
    turned = Direction.DOWN if upwards else Direction.UP
    return desk.page(
        visit,
        "lineage.html",
        section="Lineage",
        page=lambda: lineage_page(
            graph,
            title=f"Trace {trace}",
            lead=("The rows that it came from." if upwards else "What was made from it.") + rest,
            file_address=addresses.as_picture(addresses.lineage(trace=trace, direction=direction.value)),
            turn=("What was made from it" if upwards else "What it came from", _turned(trace, turned)),
        ),
        document=found.to_json,
        scripts=("graph.js",),
    )


def _turned(trace: int, direction: Direction) -> str:
    return addresses.lineage(trace=trace, direction=direction.value)
