"""The event bus: what is sent to receivers outside the state store, and how."""

from clew.bus.file import FileSink
from clew.bus.sink import Sink
from clew.bus.webhook import WebhookSink, signature

__all__ = ["FileSink", "Sink", "WebhookSink", "signature"]
