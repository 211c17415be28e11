"""`clew nodes`."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.node_ids import LeasedNode, Nodes
    from clew.api.workspace import Workspace

_ACTIONS = ("list", "lease", "revoke")


@command
@argument("action", metavar="list|lease|revoke", default="list", required=False, help="The action.")
@argument("node", metavar="NODE", type=WholeNumber(min=0, max=1023), required=False, help="The node id.")
@environment_option
@workspace_option
def nodes(
    context: click.Context, action: str, node: int | None, environment: str | None, workspace: Path | None
) -> None:
    """List, lease and revoke node ids.

    Every process that mints trace ids holds a node id. `lease` holds one (a given one or any) until Ctrl-C or SIGTERM,
    for a program that mints ids itself; `POST /api/v1/nodes` does the same for programs that renew the lease
    themselves. `revoke` ends a lease, whoever holds it.
    """
    session = context.ensure_object(Session)
    if action not in _ACTIONS:
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint="use list, lease or revoke"))
    with session.open(workspace, environment) as opened:
        if action == "list":
            _list(opened.nodes, session)
        elif action == "lease":
            _lease(opened, session, node)
        elif node is None:
            raise UserError(WRONG_USAGE.anywhere(problem="revoke needs a node id: clew nodes revoke NODE"))
        else:
            _revoke(opened.nodes, session, node)


def _list(held: "Nodes", session: Session) -> None:
    found = held.all()
    if session.wants_json:
        write_json({"nodes": [node.to_json() for node in found]})
        return
    if not found:
        say("no node id has been leased yet")
    for node in found:
        say(_line(node))


def _lease(opened: "Workspace", session: Session, node: int | None) -> None:
    from clew.api.working import stop_on_signals

    with opened.tracing(node_id=node) as tracing, stop_on_signals() as stop:
        lease = tracing.ids.lease
        [held] = [each for each in opened.nodes.all() if each.lease.node_id == lease.node_id]
        if session.wants_json:
            write_json(held.to_json())
        else:
            say(f"node id {lease.node_id}, until Ctrl-C or `kill {os.getpid()}`; ids may have timestamps from")
            say(f"{lease.first_ms} ms since 1970 on, and must stay near the clock")
        stop.wait()


def _revoke(held: "Nodes", session: Session, node: int) -> None:
    revoked = held.revoke(node)
    if session.wants_json:
        write_json(revoked.to_json())
    else:
        say(_line(revoked))


def _line(node: "LeasedNode") -> str:
    lease, holder = node.lease, node.lease.holder
    started = datetime.fromtimestamp(holder.start_time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    who = f"process {holder.process_id} on {holder.host}, started {started} UTC"
    return f"node {lease.node_id:>4}  term {lease.term}  {node.status:<8}  {who}"
