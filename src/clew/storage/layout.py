"""All names below a storage root.

    plans/<digest>.json                             the plans of runs
    runs/<run>/<kind>/<name>/<attempt>/part.json    a part, with its files beside it (kinds: see `parts`)
    runs/<run>/links/<step>/part.json               links that were worked out after the run
    runs/<run>/scratch/...                          what steps work on and no event ever names
    runs/<run>/log/driver.jsonl                     what its drivers did and met
    datasets/<dataset>/<run>-<step>/<attempt>/      rows that were registered as a version of a dataset
    captures/<capture>/<attempt>/                   captures without a separate store
    captures/staging/...                            rows that postlude jobs work on, never published
    captures/salt                                   what masked values are hashed with
    captures/salts/<attempt>                        the same in an object store: the oldest counts
    removals.jsonl                                  what was removed

`<attempt>` has a random part, so that no two writers ever share a name (see `drafts`). Runs of older versions have
their parts without it, in `runs/<run>/<kind>/<name>/`.
"""

from clew.storage.drafts import attempt_name
from clew.storage.parts import PartKind
from clew.storage.root import StorageKey

PART_FILE = "part.json"
MANIFEST_FILE = "manifest.json"
"""Describes a capture."""

RUNS, DATASETS, PLANS, CAPTURES = "runs", "datasets", "plans", "captures"
REMOVALS = "removals.jsonl"
SALT, SALTS = "salt", "salts"
"""Beside captures: what digests of masked values are made with; where a store cannot refuse the second of two writers,
each has a file of its own."""
WORKED_ON = "staging"
"""Among captures: what postlude jobs work on."""
_SCRATCH = "scratch"
_OLDER_SCRATCH = "output"


def run_folder(run_id: str) -> StorageKey:
    """Everything of a run."""
    return f"{RUNS}/{run_id}"


def run_of_file(key: StorageKey) -> str | None:
    """The run in whose folder a file lies; None for one that lies elsewhere."""
    top, _, below = key.partition("/")
    return below.partition("/")[0] if top == RUNS else None


def parts_folder(run_id: str, kind: PartKind) -> StorageKey:
    """The parts of a run that have one role."""
    return f"{RUNS}/{run_id}/{kind}"


def part_folder(run_id: str, kind: PartKind, name: str) -> StorageKey:
    """A part of a run."""
    return f"{RUNS}/{run_id}/{kind}/{name}"


def scratch_folder(run_id: str, name: str) -> StorageKey:
    """What a step works on: rows that wait for their table, files on their way to Spark."""
    return f"{RUNS}/{run_id}/{_SCRATCH}/{name}"


def scratch_folders(run_id: str) -> tuple[StorageKey, ...]:
    """Where everything lies that steps have worked on, in older versions too."""
    return f"{RUNS}/{run_id}/{_SCRATCH}", f"{RUNS}/{run_id}/{_OLDER_SCRATCH}"


def driver_log_key(run_id: str) -> StorageKey:
    """What the drivers of a run did and met."""
    return f"{RUNS}/{run_id}/log/driver.jsonl"


def registered_folder(dataset: str, run_id: str, seq: int) -> StorageKey:
    """The rows that an output step has registered for a dataset."""
    return f"{DATASETS}/{dataset}/{run_id}-{seq}"


def dataset_of_file(key: StorageKey) -> str:
    """The dataset that a registered file belongs to; empty where the file is none."""
    _, _, below = key.partition(f"{DATASETS}/")
    return below.partition("/")[0]


def run_that_registered(folder: str) -> str:
    """The run in the name of a folder of registered rows."""
    return folder.rpartition("-")[0]


def is_input(key: StorageKey, name: str) -> bool:
    """Whether a description is one of a pinned input with this name, whichever attempt has written it."""
    folder = key.split("/")
    return folder[2:4] == ["input", name]


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
    """Among captures: what a postlude job works on. Every attempt of the job has a draft of its own below it."""
    return f"{WORKED_ON}/{run_id}-{job_id}-{name}"


def run_worked_on(folder: str) -> str:
    """The run in the name of a folder that a postlude job works on: its id is a UUID."""
    return folder[:36]


# What is still being written

_UNFINISHED = ".staging"


def temporary_name(name: str) -> str:
    """A name beside a file that is being written, which no other writer has."""
    return f".{name}.{attempt_name()}{_UNFINISHED}"


def is_unfinished(name: str) -> bool:
    """Whether a name says that its writer has not finished; older versions gave such names to folders too."""
    return name.endswith(_UNFINISHED)
