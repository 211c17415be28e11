"""`clew lineage`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.formatting import counted
from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.window_expansion import Expanded
    from clew.api.workspace import Workspace
    from clew.tracelink import Lineage

_MOST_TRACES = 10_000
_ALL_RUNS = "all"


@command
@argument("trace_id", metavar="TRACE_ID", required=False, help="A trace id; omit it with --expand.")
@option("--up", is_flag=True, help="Follow the trace to what it came from. This is the default.")
@option("--down", is_flag=True, help="Follow the trace to what was made from it.")
@option("--depth", metavar="N", type=WholeNumber(min=0), default=100, help="How many links deep to follow.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=_MOST_TRACES, help="Maximum number of traces to show.")
@option("--dot", is_flag=True, help="Print the graph in Graphviz format.")
@option("--expand", is_flag=True, help="Write the links that windows in the state store represent.")
@option("--run", metavar="RUN", help='With --expand: the run whose windows to expand on Spark, or "all".')
@environment_option
@workspace_option
def lineage(
    context: click.Context,
    trace_id: str | None,
    up: bool,
    down: bool,
    depth: int,
    limit: int,
    dot: bool,
    expand: bool,
    run: str | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Follow a trace id through runs, projects and processes.

    Prints a tree from the trace to the rows it came from, down to the line or row of a source, or with --down to
    everything made from it. Each trace appears once; `…` marks where a limit ended the search.
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
        raise UserError(WRONG_USAGE.anywhere(problem="use either --up or --down"))
    if expands == (trace_id is not None):
        raise UserError(WRONG_USAGE.anywhere(problem="give a trace id, or --expand"))
    if names_run and not expands:
        raise UserError(WRONG_USAGE.anywhere(problem="--run needs --expand: a trace id does not need a run"))


def _number(trace_id: str) -> int:
    if not trace_id.isascii() or not trace_id.isdecimal() or not 0 < int(trace_id) < 1 << 64:
        raise UserError(WRONG_USAGE.anywhere(problem=f'"{trace_id}" is not a trace id: trace ids are 64-bit numbers'))
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
