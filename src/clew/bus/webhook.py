"""Events as signed HTTP requests.

Posting a document and waiting for the answer. Redirects are not followed: they could lead anywhere.
"""

import hashlib
import hmac
import http.client
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlsplit

from clew.bus.cloudevents import CONTENT_TYPE, cloud_event_bytes
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.stores import OutboxEntry

_MOST_READ = 1 << 16
_LONGEST_ANSWER = 200


class NotTaken(Exception):
    """The receiver could not be reached, or did not take the document. The text says why."""


def http_address(url: str) -> SplitResult:
    """The parts of an http or https address; ValueError where it is none."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f'"{url}" is not an http address')
    return parts


def post(address: SplitResult, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> None:
    """Post a document. Any answer of the 2xx kind confirms it, everything else is `NotTaken`."""
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=timeout_s)
    target = address.path or "/"
    try:
        connection.request("POST", f"{target}?{address.query}" if address.query else target, body, dict(headers))
        response = connection.getresponse()
        answer = response.read(_MOST_READ).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise NotTaken(str(error) or type(error).__name__) from error
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        raise NotTaken(f"{response.status} {answer[:_LONGEST_ANSWER]}".strip())


SIGNATURE_HEADER = "X-Clew-Signature"


def signature(secret: str, body: bytes) -> str:
    """What the receiver computes too, to know that the body came from somebody who has the secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class WebhookBus:
    """Posts each event as a CloudEvent. Any answer of the 2xx kind confirms it; redirects are not followed."""

    def __init__(
        self, name: str, url: str, *, secret: Callable[[], str] | None = None, timeout_s: float = 10.0
    ) -> None:
        """`secret` is asked at each delivery, so that the value is kept nowhere and may change."""
        self._name = name
        self._address = http_address(url)
        self._secret = secret
        self._timeout_s = timeout_s

    def deliver(self, entry: OutboxEntry) -> None:
        """Post the event and wait for the answer."""
        body = cloud_event_bytes(entry.run, entry.event)
        headers = {"Content-Type": CONTENT_TYPE, "User-Agent": "clew"}
        if self._secret is not None:
            headers[SIGNATURE_HEADER] = signature(self._secret(), body)
        try:
            post(self._address, body, headers, timeout_s=self._timeout_s)
        except NotTaken as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(sink=self._name, reason=str(error))) from error
