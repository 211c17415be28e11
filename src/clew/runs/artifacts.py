"""References to what steps leave behind. The state store keeps these, never the content."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_CHUNK = 1 << 20


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
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return ArtifactRef(path.resolve().as_uri(), kind, digest.hexdigest(), size, expires_at)
