"""How a run's rows and changes lie in files, for the writer on Spark and the readers without it.

    runs/<run>/input/<dataset>/      rows as they were loaded, pinned: the created state of every loaded row
    runs/<run>/created/<seq>/        rows that an aggregate or append created: their created state
    runs/<run>/changes/<first>-<last>/   one wide row per row, for consecutive narrow steps: ordinal, and for each step
                                     a mask of the columns it changed and their values after it; a segment that closes
                                     a long chain also holds the state after its last step

Every folder has a `part.json` beside its Parquet files. A part exists when an event of the run names it.
A value before a step is the value after the last step that changed the column, else the created one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LAYOUT_VERSION = 1
"""A reader refuses what a newer Clew wrote with a higher one."""

PART_FILE = "part.json"

ORDINAL = "__ordinal"
SOURCE_FILE = "__source_file"
SOURCE_LINE = "__source_line"
ORIGIN = "__origin"
"""In the files of a registered dataset: the ordinal that a row had in the run that registered it."""
DELETED_MASK = 1
"""The mask of a deleting step."""

MASK_BITS = 62


def mask_column(seq: int, word: int = 0) -> str:
    """The column that says which assignments of a step changed the row; NULL where none did."""
    return f"__s{seq}_m" if word == 0 else f"__s{seq}_m{word}"


def after_column(seq: int, position: int) -> str:
    """The column with the value that an assignment gave, by its position in the step."""
    return f"__s{seq}_a{position}"


def mask_words(assignments: int) -> int:
    """How many mask columns a step with so many assignments has."""
    return max(1, -(-assignments // MASK_BITS))


@dataclass(frozen=True, slots=True)
class PartFile:
    """A Parquet file of a part. Files of input and created parts have ordinals, which make those of their rows."""

    path: str
    """Relative to the storage root of the environment."""
    rows: int
    size: int
    sha256: str
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A narrow step of a changes part: its columns in the order of the mask bits, none for a deletion."""

    seq: int
    kind: Literal["update", "delete"]
    columns: tuple[str, ...]


PartKind = Literal["input", "created", "changes"]


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of Parquet files with one role."""

    kind: PartKind
    name: str
    """The dataset of an input, the seq of created rows, first and last seq of changes."""
    files: tuple[PartFile, ...]
    columns: tuple[tuple[str, str], ...]
    """Data columns and their types; for changes the state columns, where the part holds the state."""
    seq: int = 0
    """The step after which the rows exist, or the last step of changes."""
    steps: tuple[TracedStep, ...] = ()
    details: Mapping[str, str | int | None] | None = None
    """For an input: dataset, version, source description. For created rows: how they were made."""
    version: int = LAYOUT_VERSION
