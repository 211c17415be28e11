"""The salt of an environment: digests of masked values are made with it."""

import secrets
from contextlib import suppress

from clew.definitions.storage_addresses import is_remote
from clew.runs.environment import RunEnvironment
from clew.storage.drafts import attempt_name
from clew.storage.layout import CAPTURES, SALT, SALTS
from clew.storage.root import StorageKey, StorageRoot


def salt_of(environment: RunEnvironment) -> str:
    """The salt: known to this environment only, and always the same."""
    place = environment.storage_root.below(CAPTURES)
    if place.exists(SALT):  # in an object store, of an older version
        key = SALT
    elif is_remote(place.address):
        key = _oldest(place)
    else:
        key = SALT
        # If another process creates one at the same time, the first salt stays.
        with suppress(FileExistsError):
            place.write_secret(SALT, _new())
    return place.read_bytes(key).decode("ascii")


def _oldest(place: StorageRoot) -> StorageKey:
    """The oldest salt by the clock of the store. Who has looked, slept, and then written one replaces nothing."""
    found = list(place.files(SALTS))
    if not found:
        place.write_secret(f"{SALTS}/{attempt_name()}", _new())
        found = list(place.files(SALTS))
    return min(found, key=lambda file: (file.modified, file.key)).key


def _new() -> bytes:
    return secrets.token_hex(16).encode()
