"""Node ids over HTTP, for programs that mint trace ids without Clew's Python library."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from clew.auth.roles import Permission
from clew.server.access.visit import RunVisit, Visit, may
from clew.server.api.documents import NodeDocument, NodesDocument

router = APIRouter(tags=["operations"])

_LARGEST = 2**62
NodeId = Annotated[int, Path(ge=0, le=1023)]
LeasingVisit = Annotated[Visit, may(Permission.LEASE_NODES)]


class _Wish(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LeaseWish(_Wish):
    """The process that will mint under the node id."""

    host: str = Field(min_length=1, max_length=255)
    process_id: StrictInt = Field(ge=0, le=_LARGEST)
    start_time_ms: StrictInt = Field(ge=0, le=_LARGEST, description="When the process started, in ms since 1970.")
    node_id: StrictInt | None = Field(default=None, ge=0, le=1023, description="By default any free one.")


class KeepaliveWish(_Wish):
    """The lease to prolong."""

    term: StrictInt = Field(ge=1, le=_LARGEST)


class ReleaseWish(KeepaliveWish):
    """The lease to give back."""

    used_until_ms: StrictInt = Field(ge=0, le=_LARGEST, description="No id has this timestamp or a later one.")


@router.get("/nodes", summary="List node ids", responses={200: {"model": NodesDocument}})
def list_nodes(visit: RunVisit) -> JSONResponse:
    """Every node id that was ever leased, with its last lease."""
    visit.require_own_workspace()
    return JSONResponse({"nodes": [node.to_json() for node in visit.workspace.nodes.all()]})


@router.post("/nodes", status_code=201, summary="Lease a node id", responses={201: {"model": NodeDocument}})
def lease_node(wish: LeaseWish, visit: LeasingVisit) -> JSONResponse:
    """The timestamps of trace ids must lie in [first_ms, reserved_until_ms). Send a keepalive every ten seconds."""
    visit.require_own_workspace()
    leased = visit.workspace.nodes.lease(
        host=wish.host, process_id=wish.process_id, start_time_ms=wish.start_time_ms, node_id=wish.node_id
    )
    return JSONResponse(leased.to_json(), 201)


@router.post("/nodes/{node}/keepalive", summary="Prolong a lease", responses={200: {"model": NodeDocument}})
def keep_node(node: NodeId, wish: KeepaliveWish, visit: LeasingVisit) -> JSONResponse:
    """Moves `expires_at_ms` and `reserved_until_ms`; 409 if the lease is lost. Then stop minting and lease again."""
    visit.require_own_workspace()
    return JSONResponse(visit.workspace.nodes.keepalive(node, wish.term).to_json())


@router.post("/nodes/{node}/release", summary="Give a node id back", responses={200: {"model": NodeDocument}})
def release_node(node: NodeId, wish: ReleaseWish, visit: LeasingVisit) -> JSONResponse:
    """What was not used of the window is free for the next holder."""
    visit.require_own_workspace()
    return JSONResponse(visit.workspace.nodes.release(node, wish.term, used_until_ms=wish.used_until_ms).to_json())


@router.post("/nodes/{node}/revoke", summary="End a lease", responses={200: {"model": NodeDocument}})
def revoke_node(node: NodeId, visit: Annotated[Visit, may(Permission.REVOKE_NODES)]) -> JSONResponse:
    """Whoever holds it: its next keepalive is refused."""
    visit.require_own_workspace()
    return JSONResponse(visit.workspace.nodes.revoke(node).to_json())
