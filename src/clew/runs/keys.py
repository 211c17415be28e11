"""Keys that make a repeated write or request recognisable as the same one."""

import hashlib

RUN_STEP = "RUN"
"""Stands for the step in events of the run as a whole."""

_SEPARATOR = "|"


def idempotency_key(
    run_id: str, step_id: str, logical_attempt_id: str | int, event_type: str, plan_version: str | int
) -> str:
    """What makes an event the same event, however often a platform retries: 64 hex digits."""
    return _digest(run_id, step_id, logical_attempt_id, event_type, plan_version)


def request_key(
    *, tenant_id: str, project_id: str, environment_id: str, plan_id: str, plan_version: str, request_id: str
) -> str:
    """What makes a request for a run the same request: 64 hex digits."""
    return _digest(tenant_id, project_id, environment_id, plan_id, plan_version, request_id)


def signal_step(signal_id: str) -> str:
    """Stands for the step in the events that record a signal."""
    return f"SIGNAL:{signal_id}"


def alert_step(alert: str, scope: str = "") -> str:
    """Stands for the step in the events that raise an alert."""
    return f"ALERT:{alert}:{scope}" if scope else f"ALERT:{alert}"


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(_SEPARATOR.join(str(part) for part in parts).encode()).hexdigest()
