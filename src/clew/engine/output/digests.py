"""One digest for the files of an output, so that the event that names the output also names its content."""

import hashlib
from collections.abc import Sequence

from clew.deferred import dataclass
from clew.engine.output.places import StagedPiece
from clew.events.codec import canonical_json

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class OutputDigest:
    """What was written for an output: SHA-256 over size and SHA-256 of each file in order, and the bytes of all."""

    sha256: str
    size: int


def digest_of(pieces: Sequence[StagedPiece]) -> OutputDigest:
    """The digest of files that Spark wrote. They are read right after they were written, from the machine's memory."""
    found = [_digest(piece) for piece in pieces]
    content = canonical_json([[size, sha256] for size, sha256 in found])
    return OutputDigest(hashlib.sha256(content.encode()).hexdigest(), sum(size for size, _ in found))


def _digest(piece: StagedPiece) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with piece.open() as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()
