"""Where the files of a table lie: below the folder of the table, or at an address that its metadata names."""

# ruff: noqa: PLC0415 - addresses belong to what users write, which reading a trace does not load

import re
from pathlib import Path
from urllib.parse import unquote

from clew.deferred import dataclass
from clew.storage.local import LocalStorage
from clew.storage.root import StorageKey, StorageRoot
from clew.storage.roots import storage_at
from clew.storage.store_reach import StoreReach
from clew.storage.tables.table_snapshot import UnsupportedTable

_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_LOCAL = re.compile(r"^(?:file:)?/+", re.IGNORECASE)

THIS_MACHINE = LocalStorage(Path("/"))
"""Every file of this machine, by its absolute path without the first slash."""


def is_remote(address: str) -> bool:
    """Whether an address is not one of this machine."""
    return _LOCAL.match(address) is None


def local_key(path: str) -> StorageKey:
    """The key of an absolute path below `THIS_MACHINE`."""
    return path.lstrip("/")


def place_at(root: StorageRoot, address: str, reach: StoreReach | None = None) -> "TablePlace":
    """The folder of a table at an address, opened as the environment of a storage root reaches it.

    BadAddress where it is of a kind that nothing here can open.
    """
    if not is_remote(address):
        path = "/" + _LOCAL.sub("", address).rstrip("/")
        return TablePlace(storage_at(Path(path)), path)
    from clew.definitions.storage_addresses import parse_address

    opened = storage_at(parse_address(address, Path("/"))) if root.stores is None else root.stores(address, reach)
    return TablePlace(opened, opened.address)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The folder of a table."""

    root: StorageRoot
    address: str
    """The folder as addresses of its files begin: an absolute path, or an address with a scheme."""

    def below(self, key: StorageKey) -> str:
        """The address of a file in the folder."""
        return f"{self.address.rstrip('/')}/{key}"

    def absolute(self, address: str) -> str:
        """An address as metadata writes it, in the form that all addresses here have."""
        if not is_remote(address):
            return "/" + _LOCAL.sub("", address)
        return re.sub(r"^s3[an]:", "s3:", address)

    def decoded(self, address: str) -> str:
        """The same for one that is written as a URI, with % for special characters; it may be relative."""
        if _SCHEME.match(address) or address.startswith("/"):
            return self.absolute(unquote(address))
        return self.below(unquote(address))

    def opened(self, address: str) -> tuple[StorageRoot, StorageKey]:
        """What reads a file, and its key there."""
        inside = self.address.rstrip("/") + "/"
        if address.startswith(inside):
            return self.root, address[len(inside) :]
        if not is_remote(address):
            return THIS_MACHINE, local_key(address)
        raise UnsupportedTable(f"its file {address} lies outside the folder of the table")

    def read(self, address: str) -> bytes:
        """The content of a file."""
        root, key = self.opened(address)
        return root.read_bytes(key)
