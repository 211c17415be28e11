"""Addresses of databases in definitions: of which kind they are, and that no password stands in them."""

import re

_PASSWORDS = (
    re.compile(r"://[^/@?#]*:[^/@?#]+@"),  # postgresql://user:password@host
    re.compile(r"[?&;](?:password|pwd|passwd)=[^&;]", re.IGNORECASE),  # ...?password=, ...;password=
    re.compile(r"^jdbc:oracle:[^:]*:[^/@]+/[^@/]+@", re.IGNORECASE),  # jdbc:oracle:thin:user/password@host
)

_STATE_STORES = re.compile(r"sqlite:///.|postgresql(\+psycopg)?://", re.IGNORECASE)

NOT_HERE = "take it out, and say where it is found: secret://env/NAME"


def has_password(address: str) -> bool:
    """Whether an address of a database contains a password, in one of the ways that drivers take it."""
    return any(pattern.search(address) for pattern in _PASSWORDS)


def can_hold_state(address: str) -> bool:
    """Whether an address is one of a database that a state store can be in."""
    return _STATE_STORES.match(address) is not None
