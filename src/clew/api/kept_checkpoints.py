"""The file in which checkpoints of the ledger are kept, for those who read it: also without opening the state store."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from clew.deferred import dataclass
from clew.events.chain import SealKey
from clew.events.codec import canonical_json
from clew.runs.environment import RunEnvironment

_END = 64_000
"""Bytes at the end of the file that hold its last lines for sure."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An entry of the ledger as it was."""

    tenant: str
    environment: str
    seq: int
    hash: str
    at: str
    seal: str = ""
    occasion: str = ""
    """The run that ended, or the environment; told to event buses. It is not sealed."""

    def sealed(self, key: SealKey) -> str:
        """The seal that it must have."""
        return key.seal(canonical_json(["checkpoint", self.tenant, self.environment, self.seq, self.hash, self.at]))


def checkpoint_file(environment: RunEnvironment) -> Path:
    """The file with the checkpoints of an environment."""
    return environment.root / environment.settings.evidence.checkpoints / f"{environment.name}.jsonl"


def kept_checkpoints(path: Path) -> Iterator[Checkpoint | str]:
    """The checkpoints of a file in order, and what is wrong with lines that are none."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            yield Checkpoint(**json.loads(line))
        except (ValueError, TypeError):
            yield f"line {number} is not a checkpoint"


def last_checkpoint(path: Path, key: SealKey) -> Checkpoint | None:
    """The newest checkpoint that holds, from the end of the file; None if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _END))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, TypeError):
            found = Checkpoint(**json.loads(line))
            if found.seal == found.sealed(key):
                return found
    return None
