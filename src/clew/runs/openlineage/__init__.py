"""Runs as OpenLineage events, built with the classes of its own client. Imported when the first event is sent."""

from clew.runs.openlineage.events import run_event

__all__ = ["run_event"]
