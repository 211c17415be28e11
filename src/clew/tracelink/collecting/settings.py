"""Where a collector listens and how it works."""

import ipaddress
import socket
from dataclasses import dataclass

from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import ADDRESS_UNUSABLE, REMOTE_NOT_ALLOWED
from clew.tracelink.sender import Address

_LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings:
    """How a collector works."""

    batch_ms: int = 50
    """How long a transaction gathers what comes."""
    buffer_bytes: int = 64 << 20
    """How much waits while the store is slow or away."""
    flush_s: float = 10.0
    """How long the end waits for a store that is away."""


def bind_address(text: str, *, allow_remote: bool) -> Address:
    """The address that `HOST:PORT` names. One that other machines reach has to be allowed: senders are not asked who
    they are."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason="it is not of the form HOST:PORT"))
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason=str(error))) from error
    places = [str(place[0]) for *_, place in found]
    if not allow_remote and not all(ipaddress.ip_address(p.partition("%")[0]).is_loopback for p in places):
        raise UserError(REMOTE_NOT_ALLOWED.anywhere(address=text))
    return places[0], int(port)
