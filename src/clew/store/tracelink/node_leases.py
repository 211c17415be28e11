"""Leases of node ids in a database: every transition is a transaction, and every lease ever granted stays."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.store.database import Database
from clew.store.tracelink.trace_tables import node_leases
from clew.tracelink.node_leases import (
    ConfiguredNode,
    LeaseEnd,
    NodeHolder,
    NodeLease,
    NodeLeasePolicy,
    choose_node_id,
    grant,
    lost,
    number_of,
    release,
    renew,
    revoke,
)

_LOCK = "node-leases"
_LONGEST_HOST = 255


class SqlNodeLeases:
    """The authority on the node ids of a deployment. Its clock is that of the database."""

    def __init__(self, database: Database, policy: NodeLeasePolicy) -> None:
        self._database = database
        self._policy = policy

    def acquire(
        self, holder: NodeHolder, *, reserve_until_ms: int, node_id: int | ConfiguredNode | None = None
    ) -> NodeLease:
        """Lease this node id, or any free one; `NodeIdTaken` if there is none."""
        with self._database.write(lock=_LOCK) as connection:
            now_ms = self._now_ms(connection)
            if node_id is None:
                latest = map(_lease_of, connection.execute(_latest()))
                node_id = choose_node_id(latest, now_ms=now_ms, policy=self._policy)
            lease = grant(
                _latest_of(connection, number_of(node_id)),
                node_id=node_id,
                holder=holder,
                now_ms=now_ms,
                reserve_until_ms=reserve_until_ms,
                policy=self._policy,
            )
            connection.execute(sa.insert(node_leases).values(_values(lease)))
            return lease

    def keepalive(self, lease: NodeLease, *, reserve_until_ms: int) -> NodeLease:
        """Prolong a lease and its window; `NodeLeaseLost` if it expired, was revoked, or is not the latest term."""
        with self._database.write(lock=_LOCK) as connection:
            current = _latest_of(connection, lease.node_id)
            if current is None or current.term != lease.term:
                raise lost(lease.node_id, "another process holds it")
            now_ms = self._now_ms(connection)
            renewed = renew(current, now_ms=now_ms, reserve_until_ms=reserve_until_ms, policy=self._policy)
            _update(connection, renewed)
            return renewed

    def release(self, lease: NodeLease, *, used_until_ms: int) -> None:
        """Return a node id. Nothing happens if the lease is already lost."""
        with self._database.write(lock=_LOCK) as connection:
            current = _latest_of(connection, lease.node_id)
            if current is not None and current.term == lease.term:
                now_ms = self._now_ms(connection)
                _update(connection, release(current, now_ms=now_ms, used_until_ms=used_until_ms))

    def revoke(self, node_id: int) -> None:
        """End the lease of a node id, whoever holds it."""
        with self._database.write(lock=_LOCK) as connection:
            current = _latest_of(connection, node_id)
            if current is not None:
                _update(connection, revoke(current, now_ms=self._now_ms(connection)))

    def record(self) -> tuple[NodeLease, ...]:
        """Every lease ever granted, in the order of granting."""
        order = (node_leases.c.granted_at_ms, node_leases.c.node_id, node_leases.c.term)
        with self._database.read() as connection:
            return tuple(map(_lease_of, connection.execute(sa.select(node_leases).order_by(*order))))

    def _now_ms(self, connection: sa.Connection) -> int:
        now = connection.scalar(sa.select(self._database.now()))
        assert isinstance(now, datetime)  # noqa: S101 -- for the type checker
        return int(now.timestamp() * 1000)


def _latest() -> sa.Select[Any]:
    newest = sa.select(node_leases.c.node_id, sa.func.max(node_leases.c.term)).group_by(node_leases.c.node_id)
    return sa.select(node_leases).where(sa.tuple_(node_leases.c.node_id, node_leases.c.term).in_(newest))


def _latest_of(connection: sa.Connection, node_id: int) -> NodeLease | None:
    statement = (
        sa.select(node_leases).where(node_leases.c.node_id == node_id).order_by(node_leases.c.term.desc()).limit(1)
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else _lease_of(row)


def _update(connection: sa.Connection, lease: NodeLease) -> None:
    this_one = (node_leases.c.node_id == lease.node_id) & (node_leases.c.term == lease.term)
    connection.execute(sa.update(node_leases).where(this_one).values(_values(lease)))


def _values(lease: NodeLease) -> dict[str, object]:
    return {
        "node_id": lease.node_id,
        "term": lease.term,
        "process_id": lease.holder.process_id,
        "start_time_ms": lease.holder.start_time_ms,
        "host": lease.holder.host[:_LONGEST_HOST],
        "granted_at_ms": lease.granted_at_ms,
        "expires_at_ms": lease.expires_at_ms,
        "first_ms": lease.first_ms,
        "reserved_until_ms": lease.reserved_until_ms,
        "ended_at_ms": lease.ended_at_ms,
        "end_reason": None if lease.end is None else lease.end.value,
    }


def _lease_of(row: sa.Row[Any]) -> NodeLease:
    return NodeLease(
        node_id=row.node_id,
        term=row.term,
        holder=NodeHolder(process_id=row.process_id, start_time_ms=row.start_time_ms, host=row.host),
        granted_at_ms=row.granted_at_ms,
        expires_at_ms=row.expires_at_ms,
        first_ms=row.first_ms,
        reserved_until_ms=row.reserved_until_ms,
        ended_at_ms=row.ended_at_ms,
        end=None if row.end_reason is None else LeaseEnd(row.end_reason),
    )
