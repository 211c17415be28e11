"""Signatures that others can verify without being able to make them: Ed25519.

The private key follows from the seal key of the environment, so that machines with the same seal key sign alike and
there is one secret to keep. It cannot be computed back from signatures or from the public key.
"""

import base64
import hashlib
import hmac
from dataclasses import field
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from clew.deferred import dataclass
from clew.events.chain import SealKey

_PURPOSE = b"clew evidence signing key, ed25519, 1"


@dataclass(frozen=True)
class EvidenceKey:
    """Signs evidence packs of an environment."""

    _private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def of(cls, key: SealKey) -> "EvidenceKey":
        """The key that belongs to a seal key."""
        seed = hmac.new(key.secret, _PURPOSE, hashlib.sha256).digest()
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @cached_property
    def public_pem(self) -> bytes:
        """The public half, as `openssl` reads it."""
        der = base64.b64encode(self._public_der).decode("ascii")
        return f"-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n".encode()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the public key in DER: what people compare."""
        return hashlib.sha256(self._public_der).hexdigest()

    @property
    def _public_der(self) -> bytes:
        return self._private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes."""
        return self._private.sign(message)
