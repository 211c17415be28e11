"""Event-sourced runs: events, projection, attempts, signals, leases, queue, outbox, the run loop."""
