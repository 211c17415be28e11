"""Where captures and emissions lie."""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clew.runs.environment import RunEnvironment

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
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_name(f"salt-{secrets.token_hex(8)}")
            new.touch(mode=0o600)
            new.write_text(secrets.token_hex(16), encoding="ascii")
            # A link is made once and complete, whoever else is at it.
            with suppress(FileExistsError):
                path.hardlink_to(new)
            new.unlink()
        return path.read_text(encoding="ascii")
