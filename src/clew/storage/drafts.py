"""Folders in the making, under names that no other writer can have.

A draft lies where it will stay: `<folder>/<attempt>`, where the attempt has a random part. Nothing is renamed at its
end, so a writer that was frozen and overtaken can neither replace nor remove what another has written. Its files count
when an event names their description; until then they are an orphan, which `clew gc` removes.
"""

import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO

from clew.deferred import dataclass
from clew.storage.root import StorageKey, StorageRoot, StoredFile


def attempt_name() -> str:
    """A name that no other writer has: when it began, for people who look at a folder, and a random part."""
    return f"{time.time_ns() // 1_000_000:011x}-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A folder that one writer fills."""

    root: StorageRoot
    folder: StorageKey

    @property
    def spark_uri(self) -> str:
        """Where Spark writes the files: it makes the folder itself."""
        return self.root.spark_uri(self.folder)

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write a file with this name."""
        return self.root.create(f"{self.folder}/{name}")

    def files(self, suffix: str) -> Sequence[StoredFile]:
        """What was written, by name, as far as names end like this. What Spark hides is left out."""
        return [
            file
            for file in self.root.files(self.folder)
            if file.name.endswith(suffix) and not file.name.startswith((".", "_"))
        ]

    def publish(self, name: str, description: bytes) -> StorageKey:
        """Write the file that describes the others, the last of them, and give its key for the event that names it."""
        key = f"{self.folder}/{name}"
        self.root.write_new(key, description)
        return key

    def abandon(self) -> None:
        """Remove what was written, before it was published. After that an event may name it, and it stays."""
        with suppress(OSError):
            self.root.remove(self.folder)


def draft(root: StorageRoot, folder: StorageKey) -> Draft:
    """Start a folder below another one."""
    return Draft(root, f"{folder}/{attempt_name()}")
