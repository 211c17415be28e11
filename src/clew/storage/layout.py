"""All names below a storage root.

    plans/<digest>.json                       the plans of runs
    runs/<run>/<kind>/<name>/part.json        a part, with its files beside it (kinds: see `parts`)
    runs/<run>/output/<step>                  rows on their way to a table
    datasets/<dataset>/<run>-<step>/          rows that were registered as a version of a dataset
    captures/<capture>/<attempt>/             captures without a separate store
    captures/staging/                         rows that postlude jobs work on, never published
    captures/salt                             what masked values are hashed with
    removals.jsonl                            what was removed

Names of what is still being written carry the time when that started and a random part, so that no two writers ever
share one, and end in `.staging`.
"""

import re
import secrets
import time
from dataclasses import dataclass

from clew.storage.parts import PartKind
from clew.storage.root import StorageKey

PART_FILE = "part.json"
MANIFEST_FILE = "manifest.json"
"""Describes a capture."""

RUNS, DATASETS, PLANS, CAPTURES = "runs", "datasets", "plans", "captures"
REMOVALS = "removals.jsonl"
SALT = "salt"
"""Beside captures: what digests of masked values are made with."""
_WORKED_ON = "staging"
_OUTPUT = "output"


def run_folder(run_id: str) -> StorageKey:
    """Everything of a run."""
    return f"{RUNS}/{run_id}"


def parts_folder(run_id: str, kind: PartKind) -> StorageKey:
    """The parts of a run that have one role."""
    return f"{RUNS}/{run_id}/{kind}"


def part_folder(run_id: str, kind: PartKind, name: str) -> StorageKey:
    """A part of a run."""
    return f"{RUNS}/{run_id}/{kind}/{name}"


def output_folder(run_id: str, seq: int) -> StorageKey:
    """Where the rows of an output step wait for their table."""
    return f"{RUNS}/{run_id}/{_OUTPUT}/{seq}"


def outputs_folder(run_id: str) -> StorageKey:
    """Where the rows of all output steps wait for their tables."""
    return f"{RUNS}/{run_id}/{_OUTPUT}"


def registered_folder(dataset: str, run_id: str, seq: int) -> StorageKey:
    """The rows that an output step has registered for a dataset."""
    return f"{DATASETS}/{dataset}/{run_id}-{seq}"


def dataset_of_file(key: StorageKey) -> str:
    """The dataset that a registered file belongs to; empty where the file is none."""
    _, _, below = key.partition(f"{DATASETS}/")
    return below.partition("/")[0]


def run_that_registered(folder: str) -> str:
    """The run in the name of a folder of registered rows, finished or not."""
    return (target_of_staging(folder) or folder).rpartition("-")[0]


def plan_key(digest: str) -> StorageKey:
    """The plan with a digest."""
    return f"{PLANS}/{digest}.json"


def description_key(folder: StorageKey) -> StorageKey:
    """The description of the part in a folder."""
    return f"{folder}/{PART_FILE}"


def folder_of(key: StorageKey) -> StorageKey:
    """The folder that a file lies in."""
    return key.rpartition("/")[0]


def worked_on_folder(run_id: str, job_id: str, name: str) -> StorageKey:
    """Among captures: what a postlude job works on. Every attempt of the job has the same key, and its own draft."""
    return f"{_WORKED_ON}/{run_id}-{job_id}-{name}"


# What is still being written

_STAGING = ".staging"
_TAKEN = re.compile(r"(?P<target>.+?)(?:\.(?P<begun>[0-9a-f]{16})-[0-9a-f]{12})?\.staging")


@dataclass(frozen=True, slots=True)
class StagingName:
    """A name that no other writer has, for what will have the name `target`."""

    target: str
    begun: int
    """Nanoseconds since 1970; 0 where the name does not tell, as those of an older Clew."""
    text: str


def staging_name(target: str) -> StagingName:
    """A new one."""
    begun = time.time_ns()
    return StagingName(target, begun, f"{target}.{begun:016x}-{secrets.token_hex(6)}{_STAGING}")


def staging_of(name: str) -> StagingName | None:
    """What a name says, where it is one of something that is still being written."""
    found = _TAKEN.fullmatch(name)
    return StagingName(found["target"], int(found["begun"] or "0", 16), name) if found else None


def target_of_staging(name: str) -> str | None:
    """The name that something which is still being written will have; None where a name is not of that kind."""
    found = staging_of(name)
    return found.target if found is not None else None
