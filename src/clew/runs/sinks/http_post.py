"""Posting a document and waiting for the answer. Redirects are not followed: they could lead anywhere."""

import http.client
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

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
