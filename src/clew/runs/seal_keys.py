"""Where the key comes from that seals what an environment records: a secret, or a file that Clew makes once."""

import os
import secrets
from pathlib import Path

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import INVALID_SEAL_KEY
from clew.events.chain import LEAST_BYTES, SealKey
from clew.runs.environment import PRIVATE_FOLDER, RunEnvironment
from clew.runs.secrets import SecretRef
from clew.storage.private_folders import make_private

_FOLDER = "keys"
_BYTES = 32


def known_seal_key(environment: RunEnvironment) -> SealKey | None:
    """The key of an environment, for those who only read; None where this machine or user does not have it."""
    path = _file(environment)
    try:
        if environment.settings.evidence.key_ref is None and not path.exists():
            return None
        return seal_key(environment)
    except UserError:
        return None


def seal_key(environment: RunEnvironment) -> SealKey:
    """The key of an environment. UserError where it cannot be had, or is too short to be one."""
    reference = environment.settings.evidence.key_ref
    if reference is not None:
        value = environment.secrets().resolve([SecretRef.parse(reference)], environment.scope)[reference]
        return _parsed(value, reference)
    path = _file(environment)
    try:
        if not path.exists():
            _make(path)
        return _parsed(path.read_text(encoding="ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise UserError(INVALID_SEAL_KEY.anywhere(place=path, problem=problem)) from error


def _file(environment: RunEnvironment) -> Path:
    return environment.root / PRIVATE_FOLDER / _FOLDER / f"{environment.name}.key"


def _parsed(text: str, place: str) -> SealKey:
    value = text.strip()
    try:
        secret = bytes.fromhex(value)
    except ValueError:
        secret = value.encode()
    if len(secret) < LEAST_BYTES:
        raise UserError(INVALID_SEAL_KEY.anywhere(place=place, problem=f"it has fewer than {LEAST_BYTES} bytes"))
    return SealKey(secret)


def _make(path: Path) -> None:
    """Write a new key. Of several processes that do this at once, the first one's counts."""
    make_private(path.parent.parent)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_hex(_BYTES)}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
