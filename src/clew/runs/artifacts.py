"""References to what steps leave behind. The state store keeps these, never the content."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """Where an artifact lies, what it is, and how to tell that it is unchanged."""

    uri: str
    kind: str
    sha256: str | None = None
    size_bytes: int | None = None
    expires_at: datetime | None = None


def artifact_of_file(path: Path, *, kind: str, expires_at: datetime | None = None) -> ArtifactRef:
    """A reference to a file as it is now, with digest and size."""
    return ArtifactRef(path.resolve().as_uri(), kind, sha256_of_file(path), path.stat().st_size, expires_at)


def sha256_of_file(path: Path) -> str:
    """The digest of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
