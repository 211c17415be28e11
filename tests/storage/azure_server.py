"""Azurite on loopback, which speaks the protocol of Azure's blobs, in a process of its own, in memory.

It is a package of Node.js: `make stores` installs it, and says in CLEW_AZURITE where its command lies.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from clew.definitions.storage_addresses import RemoteAddress
from clew.storage.object_store import ObjectStorage
from clew.storage.store_access import StoreAccess, parse_credential

AZURITE = os.environ.get("CLEW_AZURITE")
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, and its published key."""


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A server that runs."""

    endpoint: str

    @property
    def access(self) -> StoreAccess:
        """How Clew reaches it."""
        return StoreAccess(self.endpoint, credential=parse_credential("abfss", _KEY))

    def storage(self, folder: str = "clew") -> ObjectStorage:
        """A storage root in a container that no other test has."""
        from clew.storage.store_access import file_system

        container = f"container-{uuid4().hex}"
        place = RemoteAddress("abfss", f"{container}@{_ACCOUNT}.dfs.core.windows.net", folder)
        file_system(place.scheme, place.store, self.access).create_dir(container)
        return ObjectStorage(place, self.access)


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    """A server that ends with the block."""
    assert AZURITE, "CLEW_AZURITE does not say where Azurite's command lies: `make stores` does"
    command = [AZURITE, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck"]
    with subprocess.Popen(
        [*command, "--silent", "--disableTelemetry"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = ""
            for line in process.stdout:
                said += line
                if "successfully listen" in line or "successfully listens" in line:
                    yield AzureServer(line.split()[-1].rstrip("/"))
                    return
            raise AssertionError(f"Azurite did not start: {said}")
        finally:
            process.terminate()
            process.wait(timeout=30)
