"""The names of outputs that are on their way: beside their destination, told apart by run, step, fence and attempt.

Destinations belong to users, so an output has to replace another at last. A worker that was frozen and overtaken cannot
harm it: every operation that publishes takes its source from the folder of the attempt, and whoever publishes later
takes that folder away first. What the late worker then tries fails, and changes nothing.
"""

import re

from clew.deferred import dataclass
from clew.storage.drafts import attempt_name

_SUFFIX = ".staging"
_ATTEMPT = r"(?P<run>[^.]+)-(?P<seq>[0-9]+)\.(?P<fence>[0-9]+)\.(?P<attempt>[0-9a-f]+-[0-9a-f]+)"
_FOLDER = re.compile(_ATTEMPT + re.escape(_SUFFIX))
_PIECE = re.compile(rf"part-{_ATTEMPT}\.[0-9]{{5}}\b.*")
_OLDER_PIECE = re.compile(r"part-(?P<run>[^.]+)-(?P<seq>[0-9]+)-[0-9]{5}\b.*")


@dataclass(frozen=True, slots=True, order=True)
class OutputAttempt:
    """An attempt to write one output. Of one run and step, the one with the higher fence counts."""

    run_id: str
    seq: int
    fence: int
    """The token of the lease under which it is written."""
    attempt: str

    @classmethod
    def of(cls, run_id: str, seq: int, fence: int) -> "OutputAttempt":
        """A new one."""
        return cls(run_id, seq, fence, attempt_name())

    @property
    def owner(self) -> str:
        """Run and step: what the same owner published before is replaced, not doubled."""
        return f"{self.run_id}-{self.seq}"

    def folder_for(self, target: str) -> str:
        """The name of the folder beside a destination."""
        return f".{target}.{self.owner}.{self.fence}.{self.attempt}{_SUFFIX}"

    def piece(self, number: int, suffix: str) -> str:
        """The name of a file that is added to a folder."""
        return f"part-{self.owner}.{self.fence}.{self.attempt}.{number:05}{suffix}"

    def supersedes(self, other: "OutputAttempt") -> bool:
        """Whether another attempt at the same output was begun before this one.

        Under one token there is one worker, which makes its attempts one after the other. So any other of them was
        before this one; the times in their names do not count, since the clock may have been set back in between.
        """
        is_same = (other.run_id, other.seq) == (self.run_id, self.seq)
        return is_same and other.fence <= self.fence and other.attempt != self.attempt


def attempt_of_folder(name: str, target: str) -> OutputAttempt | None:
    """The attempt that a folder beside a destination belongs to; None where it is something else."""
    found = _FOLDER.fullmatch(name.removeprefix(f".{target}.")) if name.startswith(f".{target}.") else None
    return OutputAttempt(found["run"], int(found["seq"]), int(found["fence"]), found["attempt"]) if found else None


def attempt_of_piece(name: str) -> OutputAttempt | None:
    """The attempt that added a file to a folder; None where the file is something else."""
    found = _PIECE.fullmatch(name)
    if found is not None:
        return OutputAttempt(found["run"], int(found["seq"]), int(found["fence"]), found["attempt"])
    older = _OLDER_PIECE.fullmatch(name)
    return OutputAttempt(older["run"], int(older["seq"]), 0, "") if older is not None else None
