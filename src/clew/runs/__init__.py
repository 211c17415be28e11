"""Event-sourced runs: events, projection, attempts, signals, leases, queue, outbox, the run loop."""

from clew.events.envelope import idempotency_key, request_key

__all__ = ["idempotency_key", "request_key"]
