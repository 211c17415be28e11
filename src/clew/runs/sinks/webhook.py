"""Events as signed HTTP requests."""

import hashlib
import hmac
import http.client
from collections.abc import Callable
from urllib.parse import urlsplit

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.runs.cloudevents import CONTENT_TYPE, cloud_event_bytes
from clew.runs.stores import OutboxEntry

SIGNATURE_HEADER = "X-Clew-Signature"
_MOST_READ = 1 << 16


def signature(secret: str, body: bytes) -> str:
    """What the receiver computes too, to know that the body came from somebody who has the secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class WebhookSink:
    """Posts each event as a CloudEvent. Any answer of the 2xx kind confirms it; redirects are not followed."""

    def __init__(
        self, name: str, url: str, *, secret: Callable[[], str] | None = None, timeout_s: float = 10.0
    ) -> None:
        """`secret` is asked at each delivery, so that the value is kept nowhere and may change."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f'"{url}" is not an http address')
        self._name = name
        self._parts = parts
        self._secret = secret
        self._timeout_s = timeout_s

    def deliver(self, entry: OutboxEntry) -> None:
        """Post the event and wait for the answer."""
        body = cloud_event_bytes(entry.run, entry.event)
        headers = {"Content-Type": CONTENT_TYPE, "User-Agent": "clew"}
        if self._secret is not None:
            headers[SIGNATURE_HEADER] = signature(self._secret(), body)
        try:
            status, answer = self._post(body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(str(error) or type(error).__name__) from error
        if not 200 <= status < 300:
            raise self._failed(f"{status} {answer[:200]}".strip())

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout_s)
        try:
            target = self._parts.path or "/"
            connection.request("POST", f"{target}?{self._parts.query}" if self._parts.query else target, body, headers)
            response = connection.getresponse()
            return response.status, response.read(_MOST_READ).decode("utf-8", "replace")
        finally:
            connection.close()

    def _failed(self, reason: str) -> TransientFailure:
        return TransientFailure(DELIVERY_FAILED.anywhere(sink=self._name, reason=reason))
