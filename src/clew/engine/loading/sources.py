"""What pinning a dataset takes and gives, which column of a file is which of the dataset, and errors about sources."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions import Datasource, FilesDatasource, Period, PeriodTree
from clew.definitions.dataset import PERIOD_COLUMN
from clew.definitions.storage_addresses import parse_address
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH, SOURCE_UNAVAILABLE
from clew.engine.parts import DraftedPart
from clew.plan.datasets import DatasetUse, TableReader
from clew.plan.file_rules import FileRules
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import Part
from clew.storage.root import StorageRoot
from clew.storage.roots import storage_at
from clew.storage.source_files import RootOf

NOT_UTF8 = "it is not UTF-8 text"
NO_JSON_OBJECT = "it is not one JSON object"
"""What can be wrong with a line as a whole."""

_LONGEST_VALUE = 80


def unavailable(problem: str, hint: str | None = None) -> UserError:
    """Data that cannot be read."""
    return UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem, hint=hint))


def changed_meanwhile(name: str) -> UserError:
    """A file that someone writes to while it is read."""
    return unavailable(f"{name} changed while it was being read", "run again when no other process writes to it")


def mismatch(problem: str, hint: str | None = None) -> UserError:
    """Data that is not as its dataset says."""
    return UserError(SCHEMA_MISMATCH.anywhere(problem=problem, hint=hint))


def shown(value: str) -> str:
    """A value as messages quote it."""
    return f'"{value}"' if len(value) <= _LONGEST_VALUE else f'"{value[: _LONGEST_VALUE - 1]}…"'


def place(file: str, line: int | None, unit: str = "line") -> str:
    """A line of a file in words."""
    return file if line is None else f"{file}, {unit} {line}"


_MOST_LISTED = 20
"""Columns in one message."""
_OTHER_DELIMITERS = {";": ";", "\t": "\\t", "|": "|"}
"""What separates columns where a comma does not, and how it is written."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file or table says about itself."""

    shown: str
    """Its name."""
    period: str | None
    """The period of all its rows, where the rule that led to it ties it to one."""


def positions_of(
    use: DatasetUse, names: Sequence[str], origin: Origin, rules: FileRules | None = None
) -> Mapping[str, int]:
    """The position of each column of a dataset among the columns of a file.

    Order does not matter, other columns are left alone, and upper and lower case are the same where that is not
    ambiguous. `_period` may be missing where all rows are of one period. Rules may say what the file calls a column.
    """
    rules = rules or FileRules()
    exact = {name: position for position, name in reversed(list(enumerate(names)))}
    folded = dict[str, list[int]]()
    for position, name in enumerate(names):
        folded.setdefault(name.casefold(), []).append(position)
    found, missing = dict[str, int](), list[str]()
    for column in use.columns:
        source = rules.source(column.name)
        if names.count(source) > 1:
            raise mismatch(f'{origin.shown} has the column "{source}" twice', "remove or rename one of them")
        near = folded.get(source.casefold(), [])
        if source in exact:
            found[column.name] = exact[source]
        elif len(near) == 1:
            found[column.name] = near[0]
        elif column.name != PERIOD_COLUMN or origin.period is None:
            missing.append(source)
    if missing:
        raise _missing(use, missing, names, origin)
    return found


def _missing(use: DatasetUse, missing: Sequence[str], names: Sequence[str], origin: Origin) -> Exception:
    columns = f"column{'s' if len(missing) > 1 else ''} " + ", ".join(f'"{name}"' for name in missing[:_MOST_LISTED])
    more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
    problem = f'{origin.shown} has no {columns}{more}, which the dataset "{use.name}" has'
    shown_names = [name if name == name.strip() else f'"{name}"' for name in names[:_MOST_LISTED]]
    listed = ", ".join(shown_names) + (", …" if len(names) > _MOST_LISTED else "")
    near = did_you_mean(missing[0], names) if len(missing) == 1 else None
    hint = near or f"its columns are {listed}"
    other = next((mark for mark in _OTHER_DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        hint = f'its header is "{names[0]}": set the option `delimiter` of the rule to "{_OTHER_DELIMITERS[other]}"'
    elif list(missing) == [PERIOD_COLUMN]:
        hint = "add the column to the data, or put {period} into the path of the rule"
    return mismatch(problem, hint)


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """How an environment pins versions of Delta and Iceberg tables."""

    copies: bool = False
    """Whether their rows are copied, so that the run does not depend on how long the tables keep them."""
    copies_short_lived: bool = False
    """Whether that is done where housekeeping of the table may delete files before the run is."""
    tags: bool = False
    """Whether tags hold the snapshots of Iceberg tables."""
    keep_days: int | None = None
    """Days for which runs are kept; None where nothing says so."""


@dataclass(frozen=True, slots=True)
class PinRequest:
    """A dataset, where its data lies, and where it is pinned."""

    use: DatasetUse
    sources: tuple[ResolvedSource, ...]
    datasources: Mapping[str, Datasource]
    workspace_root: Path
    storage_root: StorageRoot
    run_id: str
    period: Period
    periods: PeriodTree
    first_file_ordinal: int
    secrets: Callable[[str], str]
    """The secret that a reference names."""
    storage_of: RootOf | None = None
    """The root of a datasource in an object store; without it, one that the platform's own settings reach."""
    tables: TableReader | None = None
    """Reads tables of PostgreSQL where there is no JDBC driver."""
    may_be_empty: bool = True
    """Whether it is all right that there are no rows for the period."""
    table_policy: TablePolicy = field(default_factory=TablePolicy)
    resolution: Mapping[str, str | int | None] = field(default_factory=dict)
    """Which versions of which definitions have led to the sources, for the record."""

    def root_of(self, datasource: FilesDatasource) -> StorageRoot:
        """The root of a datasource."""
        if self.storage_of is not None:
            return self.storage_of(datasource)
        return storage_at(parse_address(datasource.options.root, self.workspace_root))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A dataset as the run sees it from then on."""

    drafted: DraftedPart
    """Its rows, which count once they are published and named."""
    rows_read: int
    rows_loaded: int
    rows_outside_period: int
    """Rows that were read and left out. Those that a database did not send are not among them."""
    sources: tuple[str, ...]
    """Where the rows came from, in words."""

    @property
    def quarantine(self) -> Part | None:
        """The rows that are not as the dataset says, kept apart; None where such rows fail the run."""
        return self.drafted.beside[0].part if self.drafted.beside else None

    @property
    def part(self) -> Part:
        """What will be described."""
        return self.drafted.part
