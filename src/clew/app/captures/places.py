"""Where captures and emissions lie."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from clew.app.running.environment import RunEnvironment

DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of an environment that captures go to."""

    environment: RunEnvironment

    def captures(self, store: str | None, *, project_version: str | None = None) -> Path:
        """The folder of a capture store, of the environment's own storage where none is named."""
        return self.environment.storage_root / "captures" if store is None else self.sink(store, project_version)

    def sink(self, sink: str, project_version: str | None) -> Path:
        """The folder of a sink. A draft has one of its own in the sandbox."""
        if project_version == DRAFT:
            return self.environment.sandbox_root / "sinks" / sink
        return self.environment.root / self.environment.settings.sinks[sink].path

    def shown(self, path: Path) -> str:
        """A path as manifests name it: from the workspace on."""
        return Path(os.path.relpath(path, self.environment.root)).as_posix()

    def path(self, shown: str) -> Path:
        """The path that `shown` gave."""
        return Path(os.path.normpath(self.environment.root / shown))

    def salt(self) -> str:
        """What digests of masked values are made with: known to this environment only, and always the same."""
        path = self.environment.storage_root / "captures" / "salt"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text(encoding="ascii")
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(16))
        return path.read_text(encoding="ascii")
