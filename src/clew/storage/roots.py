"""The storage root at an address, whatever kind of place it is."""

# ruff: noqa: PLC0415 - what object stores need is imported when there is one

import os
from pathlib import Path
from typing import TYPE_CHECKING

from clew.storage.local import LocalStorage
from clew.storage.root import StorageRoot

if TYPE_CHECKING:
    from clew.definitions.storage_addresses import Address
    from clew.storage.local_copies import LocalCopies
    from clew.storage.root import OpenStore
    from clew.storage.store_access import StoreAccess
    from clew.storage.store_reach import StoreReach


def storage_at(
    address: "Address",
    access: "StoreAccess | None" = None,
    *,
    reach: "StoreReach | None" = None,
    stores: "OpenStore | None" = None,
) -> StorageRoot:
    """Files below an address. `reach` says which settings have led to `access`, `stores` opens other stores."""
    if isinstance(address, Path):
        return LocalStorage(address, stores)
    from clew.storage.object_store import ObjectStorage
    from clew.storage.store_access import NO_SETTINGS

    return ObjectStorage(address, access or NO_SETTINGS, _copies(), reach=reach, stores=stores)


def _copies() -> "LocalCopies | None":
    if os.name != "posix":
        return None
    from clew.storage.local_copies import local_copies

    return local_copies(os.environ)
