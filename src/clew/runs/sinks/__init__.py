"""Receivers of events outside the state store."""

from clew.runs.sinks.file import FileSink
from clew.runs.sinks.sink import Sink
from clew.runs.sinks.webhook import WebhookSink, signature

__all__ = ["FileSink", "Sink", "WebhookSink", "signature"]
