"""Node ids: who holds which, and leases for programs that mint trace ids without this library."""

import time
from collections.abc import Sequence

from clew.api.opened_environment import EnvironmentAccess, OpenedEnvironment
from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import NO_SUCH_NODE
from clew.tracelink import NodeHolder, NodeLease

_WINDOWS_AHEAD = 2


@dataclass(frozen=True, slots=True)
class LeasedNode:
    """The last lease of a node id, and whether it is live."""

    lease: NodeLease
    is_live: bool

    @property
    def status(self) -> str:
        """live, expired, released or revoked."""
        if self.is_live:
            return "live"
        return "expired" if self.lease.end is None else self.lease.end.value

    def to_json(self) -> dict[str, object]:
        """The form of `clew nodes --json`. Timestamps in trace ids lie in [first_ms, reserved_until_ms)."""
        lease, holder = self.lease, self.lease.holder
        return {
            "node_id": lease.node_id,
            "term": lease.term,
            "status": self.status,
            "host": holder.host,
            "process_id": holder.process_id,
            "start_time_ms": holder.start_time_ms,
            "granted_at_ms": lease.granted_at_ms,
            "expires_at_ms": lease.expires_at_ms,
            "first_ms": lease.first_ms,
            "reserved_until_ms": lease.reserved_until_ms,
            "ended_at_ms": lease.ended_at_ms,
        }


class Nodes:
    """The node ids of a deployment. They belong to the state store, so other tenants are refused."""

    def __init__(self, access: EnvironmentAccess) -> None:
        self._access = access

    def all(self) -> Sequence[LeasedNode]:
        """Every node id that was ever leased, with its last lease, by node id."""
        with self._access.opened() as at:
            at.require_own_tenant()
            latest = {lease.node_id: lease for lease in at.state.tracelink.node_leases.record()}
            return [_seen(latest[node_id]) for node_id in sorted(latest)]

    def lease(self, *, host: str, process_id: int, start_time_ms: int, node_id: int | None = None) -> LeasedNode:
        """Lease a node id for a process, any free one if none is named. Raises UserError NodeIdTaken."""
        holder = NodeHolder(process_id=process_id, start_time_ms=start_time_ms, host=host)
        with self._access.opened() as at:
            at.require_own_tenant()
            at.principal.require(Permission.LEASE_NODES)
            leases = at.state.tracelink.node_leases
            return _seen(leases.acquire(holder, reserve_until_ms=_ahead(at), node_id=node_id))

    def keepalive(self, node_id: int, term: int) -> LeasedNode:
        """Prolong a lease and its window. Raises TransientFailure NodeLeaseLost."""
        with self._access.opened() as at:
            at.require_own_tenant()
            lease = _lease(at, node_id, term)
            return _seen(at.state.tracelink.node_leases.keepalive(lease, reserve_until_ms=_ahead(at)))

    def release(self, node_id: int, term: int, *, used_until_ms: int) -> LeasedNode:
        """Give a node id back, with the part of its window from `used_until_ms` on."""
        with self._access.opened() as at:
            at.require_own_tenant()
            at.state.tracelink.node_leases.release(_lease(at, node_id, term), used_until_ms=used_until_ms)
            return _seen(_lease(at, node_id, term))

    def revoke(self, node_id: int) -> LeasedNode:
        """End the lease of a node id, whoever holds it. Its holder cannot mint beyond its window any more."""
        with self._access.opened() as at:
            at.require_own_tenant()
            at.principal.require(Permission.REVOKE_NODES)
            _lease(at, node_id, None)
            at.state.tracelink.node_leases.revoke(node_id)
            return _seen(_lease(at, node_id, None))


def _lease(at: OpenedEnvironment, node_id: int, term: int | None) -> NodeLease:
    """A lease of a node id, the last one if no term is given. Raises UserError NoSuchNode."""
    found = [lease for lease in at.state.tracelink.node_leases.record() if lease.node_id == node_id]
    chosen = [lease for lease in found if term in {None, lease.term}]
    if not chosen:
        raise UserError(NO_SUCH_NODE.anywhere(node_id=node_id))
    return chosen[-1]


def _ahead(at: OpenedEnvironment) -> int:
    return _now_ms() + _WINDOWS_AHEAD * at.state.tracelink.lease_policy.duration_ms


def _seen(lease: NodeLease) -> LeasedNode:
    return LeasedNode(lease, lease.is_live(_now_ms()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
