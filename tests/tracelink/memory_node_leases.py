"""Node leases in memory: the reference for what a store has to do."""

from clew.tracelink import ClockMs, NodeHolder, NodeLease, NodeLeasePolicy
from clew.tracelink.node_leases import ConfiguredNode, choose_node_id, grant, lost, number_of, release, renew, revoke


class MemoryNodeLeases:
    def __init__(self, policy: NodeLeasePolicy, clock_ms: ClockMs) -> None:
        self._policy = policy
        self._clock_ms = clock_ms
        self._granted: dict[tuple[int, int], NodeLease] = {}
        self._latest: dict[int, NodeLease] = {}

    def acquire(
        self, holder: NodeHolder, *, reserve_until_ms: int, node_id: int | ConfiguredNode | None = None
    ) -> NodeLease:
        now_ms = self._clock_ms()
        if node_id is None:
            node_id = choose_node_id(self._latest.values(), now_ms=now_ms, policy=self._policy)
        return self._keep(
            grant(
                self._latest.get(number_of(node_id)),
                node_id=node_id,
                holder=holder,
                now_ms=now_ms,
                reserve_until_ms=reserve_until_ms,
                policy=self._policy,
            )
        )

    def keepalive(self, lease: NodeLease, *, reserve_until_ms: int) -> NodeLease:
        current = self._latest[lease.node_id]
        if current.term != lease.term:
            raise lost(lease.node_id, "another process holds it")
        return self._keep(
            renew(current, now_ms=self._clock_ms(), reserve_until_ms=reserve_until_ms, policy=self._policy)
        )

    def release(self, lease: NodeLease, *, used_until_ms: int) -> None:
        current = self._latest[lease.node_id]
        if current.term == lease.term:
            self._keep(release(current, now_ms=self._clock_ms(), used_until_ms=used_until_ms))

    def revoke(self, node_id: int) -> None:
        self._keep(revoke(self._latest[node_id], now_ms=self._clock_ms()))

    def record(self) -> tuple[NodeLease, ...]:
        return tuple(self._granted.values())

    def _keep(self, lease: NodeLease) -> NodeLease:
        self._granted[lease.node_id, lease.term] = lease
        self._latest[lease.node_id] = lease
        return lease
