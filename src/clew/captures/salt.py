"""The salt of an environment: digests of masked values are made with it."""

import secrets
from contextlib import suppress

from clew.runs.environment import RunEnvironment
from clew.storage.layout import CAPTURES, SALT


def salt_of(environment: RunEnvironment) -> str:
    """The salt: known to this environment only, and always the same."""
    place = environment.storage_root.below(CAPTURES)
    if not place.exists(SALT):
        # If another process creates one at the same time, the first salt stays.
        with suppress(FileExistsError):
            place.write_secret(SALT, secrets.token_hex(16).encode())
    return place.read_bytes(SALT).decode("ascii")
