"""Where a collector listens and how it works."""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.diagnostics import UserError
from clew.diagnostics.codes.tracelink import ADDRESS_UNUSABLE, INVALID_STAGE, REMOTE_NOT_ALLOWED
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
    stages: Mapping[int, int] = field(default_factory=dict)
    """Which stage publishes a stream, by stream; one that is not named is that of the stage with its number."""


def stages_of(texts: Sequence[str]) -> dict[int, int]:
    """The stages that `STREAM=STAGE` texts name, by stream."""
    found = dict[int, int]()
    for text in texts:
        stream, equals, stage = text.partition("=")
        if not (equals and stream.isdecimal() and stage.isdecimal() and int(stream) < 2**32 and int(stage) < 2**63):
            raise UserError(INVALID_STAGE.anywhere(text=text))
        found[int(stream)] = int(stage)
    return found


def reason_of(error: Exception) -> str:
    """What an operating system says, without its number."""
    said = error.strerror if isinstance(error, OSError) else None
    return (said or str(error)).lower()


def bind_address(text: str, *, allow_remote: bool) -> Address:
    """The address that `HOST:PORT` names. One that other machines reach has to be allowed: senders are not asked who
    they are."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal():
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason="it is not of the form HOST:PORT"))
    if int(port) > _LARGEST_PORT:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason=f"ports go up to {_LARGEST_PORT}"))
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UserError(ADDRESS_UNUSABLE.anywhere(address=text, reason=reason_of(error))) from error
    places = [str(place[0]) for *_, place in found]
    if not allow_remote and not all(ipaddress.ip_address(p.partition("%")[0]).is_loopback for p in places):
        raise UserError(REMOTE_NOT_ALLOWED.anywhere(address=text))
    return places[0], int(port)
