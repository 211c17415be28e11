"""Events as signed HTTP requests."""

import hashlib
import hmac
from collections.abc import Callable

from clew.bus.event_bus import CONTENT_TYPE, cloud_event_bytes
from clew.bus.http import NotTaken, http_address, post
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.stores import OutboxEntry

SIGNATURE_HEADER = "X-Clew-Signature"


def signature(secret: str, body: bytes) -> str:
    """What the receiver computes too, to know that the body came from a sender who has the secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class WebhookBus:
    """Posts each event as a CloudEvent. Any answer of the 2xx kind confirms it; redirects are not followed."""

    def __init__(
        self, name: str, url: str, *, secret: Callable[[], str] | None = None, timeout_s: float = 10.0
    ) -> None:
        """`secret` is called for each delivery, so that the value is not kept and may change."""
        self._name = name
        self._url = http_address(url)
        self._secret = secret
        self._timeout_s = timeout_s

    def deliver(self, entry: OutboxEntry) -> None:
        """Post the event and wait for the answer."""
        self.announce(cloud_event_bytes(entry.run, entry.event))

    def announce(self, body: bytes) -> None:
        """The same for a document that is not about a run."""
        headers = {"Content-Type": CONTENT_TYPE}
        if self._secret is not None:
            headers[SIGNATURE_HEADER] = signature(self._secret(), body)
        try:
            post(self._url, body, headers, timeout_s=self._timeout_s)
        except NotTaken as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus=self._name, reason=str(error))) from error
