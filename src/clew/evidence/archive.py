"""An evidence pack as a file: its members, a statement with their digests, and the signature of the statement.

The statement is an in-toto statement (v1) in a DSSE envelope, so that other tools than ours can read it.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from clew.deferred import dataclass
from clew.events.codec import canonical_json
from clew.evidence import pack_verifier
from clew.evidence.signing import EvidenceKey

VERIFIER = "verify.py"
_READABLE = 0o644 << 16


@dataclass(frozen=True, slots=True)
class EvidencePack:
    """A signed pack."""

    members: Mapping[str, bytes]
    """By name, the statement among them."""
    fingerprint: str
    """Of the key that signed it: what a verifier must know from elsewhere."""
    made_at: datetime
    summary: Mapping[str, int]
    """How many explanations, rows and events it contains."""

    def to_bytes(self) -> bytes:
        """The pack as a ZIP file."""
        written = io.BytesIO()
        moment = self.made_at.astimezone(UTC).timetuple()[:6]
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.members.items():
                entry = zipfile.ZipInfo(name, moment)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, _READABLE
                archive.writestr(entry, content)
        return written.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write the pack to a file. OSError where that is not possible."""
        target = Path(path)
        target.write_bytes(self.to_bytes())
        return target

    def to_json(self) -> dict[str, object]:
        """The form of `clew evidence --json`."""
        return {
            "key": self.fingerprint,
            "made_at": self.made_at.isoformat(),
            "members": {name: hashlib.sha256(content).hexdigest() for name, content in self.members.items()},
            **self.summary,
        }


def verifier_source() -> bytes:
    """The program that verifies a pack without Clew."""
    return Path(pack_verifier.__file__).read_bytes()


def signed_pack(
    members: Mapping[str, bytes],
    key: EvidenceKey,
    *,
    made_at: datetime,
    predicate: Mapping[str, object],
    summary: Mapping[str, int],
) -> EvidencePack:
    """Members with the verifier, the public key, and the signed statement that names them all."""
    complete = {**members, VERIFIER: verifier_source(), pack_verifier.PUBLIC_KEY: key.public_pem}
    statement = {
        "_type": pack_verifier.STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}
            for name, content in sorted(complete.items())
        ],
        "predicateType": pack_verifier.PREDICATE_TYPE,
        "predicate": dict(predicate),
    }
    complete[pack_verifier.ENVELOPE] = _envelope(canonical_json(statement).encode(), key)
    return EvidencePack(complete, key.fingerprint, made_at, summary)


def _envelope(payload: bytes, key: EvidenceKey) -> bytes:
    kind = pack_verifier.PAYLOAD_TYPE.encode()
    signature = key.sign(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload))
    envelope = {
        "payload": base64.b64encode(payload).decode("ascii"),
        "payloadType": pack_verifier.PAYLOAD_TYPE,
        "signatures": [{"keyid": key.fingerprint, "sig": base64.b64encode(signature).decode("ascii")}],
    }
    return canonical_json(envelope).encode()
