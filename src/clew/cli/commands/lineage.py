"""`clew lineage`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.formatting import counted
from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.window_expansion import Expanded
    from clew.api.workspace import Workspace
    from clew.tracelink import Lineage

_MOST_TRACES = 10_000
_ALL_RUNS = "all"


def lineage(
    context: typer.Context,
    trace_id: Annotated[
        str | None, typer.Argument(metavar="[TRACE_ID]", help="A trace id; left out with --expand.", show_default=False)
    ] = None,
    up: Annotated[bool, typer.Option("--up", help="To what the trace came from; so if left out.")] = False,
    down: Annotated[bool, typer.Option("--down", help="To what came from it.")] = False,
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="Follow at most so many links.", min=0)] = 100,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="Show at most so many traces.", min=1)
    ] = _MOST_TRACES,
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph for Graphviz.")] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Write the links that windows in the state store stand for.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help='With --expand: a run whose windows to work out on Spark, or "all".'),
    ] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Follow a trace id through runs, projects and processes.

    A tree from the trace to the rows it came from, down to the line of a source file, or with --down to all that was
    made from it. Each trace stands in the tree once; `…` marks where a limit ended the search.
    """
    session = context.ensure_object(Session)
    _check_usage(trace_id, is_both_ways=up and down, expands=expand, names_run=run is not None)
    with session.open(workspace, environment) as opened:
        if trace_id is None:
            _expand(opened, run, session)
            return
        answer = opened.lineage(_number(trace_id), "down" if down else "up", depth=depth, limit=limit)
    if session.wants_json:
        write_json(answer.to_json())
    elif dot:
        write(answer.to_dot())
    else:
        _print_tree(answer)


def _check_usage(trace_id: str | None, *, is_both_ways: bool, expands: bool, names_run: bool) -> None:
    if is_both_ways:
        raise UserError(WRONG_USAGE.anywhere(problem="--up and --down are two questions"))
    if expands == (trace_id is not None):
        raise UserError(WRONG_USAGE.anywhere(problem="give a trace id, or --expand"))
    if names_run and not expands:
        raise UserError(WRONG_USAGE.anywhere(problem="--run goes with --expand: a trace id is known without its run"))


def _number(trace_id: str) -> int:
    if not trace_id.isascii() or not trace_id.isdecimal() or not 0 < int(trace_id) < 1 << 64:
        raise UserError(WRONG_USAGE.anywhere(problem=f'"{trace_id}" is not a trace id: they are numbers of 64 bits'))
    return int(trace_id)


def _expand(workspace: "Workspace", run: str | None, session: Session) -> None:
    done = workspace.expand_lineage()
    steps = _expanded_runs(workspace, run) if run is not None else []
    if session.wants_json:
        write_json(
            {
                "windows": done.windows,
                "links": done.links,
                "transactions": done.transactions,
                "runs": [{"run_id": s.run_id, "operation_seq": s.operation_seq, "links": s.links} for s in steps],
            }
        )
        return
    say(f"{counted(done.links, 'new link')} from {counted(done.windows, 'window')} in the state store")
    for step in steps:
        say(f"{counted(step.links, 'new link')} of step {step.operation_seq} of run {step.run_id[:8]}")


def _expanded_runs(workspace: "Workspace", run: str) -> "list[Expanded]":
    return workspace.expand_windows(None if run == _ALL_RUNS else run)


def _print_tree(answer: "Lineage") -> None:
    for line in answer.tree().splitlines():
        say("".join(character if character.isprintable() else "�" for character in line))
    found = f"{counted(len(answer.graph.nodes), 'trace')}, {counted(len(answer.graph.links), 'link')}"
    say(found + ("" if answer.is_complete else "; a limit ended the search"))
