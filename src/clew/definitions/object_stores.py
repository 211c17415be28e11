"""How object stores are reached, as environments and datasources say it, and checks of addresses and settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from clew.definitions.shapes import FLAG, NAME, SECRET, Located, key, record
from clew.definitions.storage_addresses import Address, BadAddress, RemoteAddress, is_remote, overlap, parse_address
from clew.diagnostics import Diagnostic, Span
from clew.diagnostics.codes.workspace import INVALID_VALUE

_HERE = Path("/")


@record("the object store settings")
class ObjectStoreSettings(Located):
    """How the object stores of an environment are reached. What is not set is left to the store's own library."""

    endpoint: str | None = key(
        NAME, "The http or https address of a store that speaks the protocol of another, such as MinIO.", default=None
    )
    region: str | None = key(NAME, "The region of the buckets.", default=None)
    path_style: bool | None = key(
        FLAG,
        "Whether the bucket stands in the path rather than in the host name; true if there is an endpoint.",
        default=None,
    )
    credential_ref: str | None = key(
        SECRET,
        "The secret with the credentials, for S3 as ACCESS_KEY:SECRET_KEY; without it, the platform's own.",
        default=None,
    )

    def check(self) -> Iterator[Diagnostic]:
        """The endpoint is an address without a path."""
        yield from problems_of_endpoint(self.endpoint, self.place("endpoint"))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is set."""
        return (self.endpoint, self.region, self.path_style, self.credential_ref) == (None, None, None, None)


def problems_of_endpoint(endpoint: str | None, place: Span | None) -> Iterator[Diagnostic]:
    """What is wrong with the address of a server."""
    if endpoint is None:
        return
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
        hint = "write https://HOST:PORT, without a path"
        yield INVALID_VALUE.at(place, problem=f'"{_without_user(endpoint)}" is not the address of a server', hint=hint)
    elif parts.username is not None:
        hint = "remove them, and name a secret as credential_ref instead"
        yield INVALID_VALUE.at(place, problem="the endpoint contains credentials", hint=hint)


def _without_user(endpoint: str) -> str:
    before, at, after = endpoint.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else endpoint


def problems_of_address(text: str, place: Span | None) -> Iterator[Diagnostic]:
    """What is wrong with the address of a place for files."""
    try:
        parse_address(text, _HERE)
    except BadAddress as error:
        yield INVALID_VALUE.at(place, problem=str(error), hint=error.hint)


def problems_of_local_path(text: str, place: Span | None, what: str) -> Iterator[Diagnostic]:
    """What is wrong with a path that must be one of this machine."""
    if is_remote(text):
        hint = "name a file of this machine, local or mounted"
        yield INVALID_VALUE.at(place, problem=f"{what} cannot be in an object store", hint=hint)


def parsed(text: str, base: Path = _HERE) -> Address | None:
    """An address, None where it is not one: that is reported elsewhere."""
    try:
        return parse_address(text, base)
    except BadAddress:
        return None


def problems_of_roots(roots: Mapping[str, tuple[str, Span | None]], base: Path = _HERE) -> Iterator[Diagnostic]:
    """Roots inside each other: what one environment removes would be another's. They may share one.

    Addresses and their places, by names such as `storage_root of "prod"`. Relative paths can be compared with absolute
    ones where `base` is the folder that they begin at.
    """
    known = [(name, parsed(text, base), place) for name, (text, place) in roots.items()]
    for index, (name, address, place) in enumerate(known):
        for other, other_address, _ in known[:index]:
            if address is not None and other_address is not None and overlap(address, other_address):
                hint = "keep the roots of environments apart, or let them share one"
                yield INVALID_VALUE.at(place, problem=f"the {name} and the {other} are inside each other", hint=hint)
                break


def remote(text: str) -> RemoteAddress | None:
    """The place in an object store that an address names; None for one of this machine."""
    found = parsed(text)
    return found if isinstance(found, RemoteAddress) else None
