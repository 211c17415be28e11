"""HTTP requests that Clew itself sends: with the environment's proxies and the system's certificates.

Redirects are not followed: they could lead anywhere, and would carry secrets with them. HTTP_PROXY, HTTPS_PROXY,
ALL_PROXY and NO_PROXY have their usual meaning.
"""

import os
import time
from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2

_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_MOST_READ = 1 << 16
_LONGEST_ANSWER = 200
_LONGEST_DOCUMENT = 1 << 20


class NotTaken(Exception):
    """The receiver could not be reached, or did not accept the document. The text says why."""


def http_address(url: str) -> str:
    """The address itself; ValueError unless it begins with http:// or https:// and names a host."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f'"{url}" is not an http address')
    return url


def http_client(*, timeout_s: float) -> "httpx2.Client":
    """A client for one exchange. OSError if the environment names a proxy that cannot be used."""
    import httpx2  # noqa: PLC0415 - takes a quarter of a second, and most commands send nothing

    variables = [os.environ.get(name) for name in _CERTIFICATE_VARIABLES]
    try:
        return httpx2.Client(
            timeout=timeout_s,
            verify=_certificates(*variables),
            follow_redirects=False,
        )
    except (ImportError, ValueError) as error:
        raise OSError(f"the proxy that the environment names cannot be used: {error}") from error


@cache
def _certificates(*_variables: str | None) -> SSLContext:
    """The certificates that the system trusts, or those of the variables. Reading them takes a tenth of a second."""
    import httpx2  # noqa: PLC0415 - as above

    return httpx2.create_ssl_context()


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> None:
    """Post a document. Any answer of the 2xx kind confirms it, everything else is `NotTaken`."""
    import httpx2  # noqa: PLC0415 - as above

    sent = {"Accept-Encoding": "identity", "User-Agent": "clew", **headers}
    try:
        with (
            http_client(timeout_s=timeout_s) as client,
            client.stream("POST", url, content=body, headers=sent) as response,
        ):
            answer = _beginning(response, time.monotonic() + timeout_s)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise NotTaken(str(error) or type(error).__name__) from error
    if not response.is_success:
        raise NotTaken(f"{response.status_code} {answer[:_LONGEST_ANSWER]}".strip())


def fetch(
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    basic: tuple[str, str] | None = None,
    timeout_s: float,
) -> tuple[int, bytes]:
    """The status and the body of an answer, whatever the status. `NotTaken` if there is none, or if it is too long."""
    import httpx2  # noqa: PLC0415 - as above

    sent = {"Accept-Encoding": "identity", "User-Agent": "clew", **headers}
    ends_at, read = time.monotonic() + timeout_s, b""
    try:
        with (
            http_client(timeout_s=timeout_s) as client,
            client.stream(method, url, content=body, headers=sent, auth=basic) as response,
        ):
            for part in response.iter_raw():
                read += part
                if len(read) > _LONGEST_DOCUMENT or time.monotonic() > ends_at:
                    raise NotTaken("its answer is too long, or takes too long")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise NotTaken(str(error) or type(error).__name__) from error
    return response.status_code, read


def _beginning(response: "httpx2.Response", ends_at: float) -> str:
    """As much of the answer as a message can show, and as arrives in time; the rest stays unread."""
    read = b""
    for part in response.iter_raw():
        read += part
        if len(read) >= _MOST_READ or time.monotonic() > ends_at:
            break
    return read.decode("utf-8", "replace")
