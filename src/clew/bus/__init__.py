"""The event bus: what is sent to receivers outside the state store, and how."""

from clew.bus.event_bus import EventBus
from clew.bus.file import FileBus
from clew.bus.webhook import WebhookBus, signature

__all__ = ["EventBus", "FileBus", "WebhookBus", "signature"]
