"""The parts of a run: what lies in their files, and the description beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal, cast, get_args

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE, NEWER_TRACE_LAYOUT
from clew.storage.row_identity import ordinal_of
from clew.storage.store_reach import StoreReach
from clew.storage.trace_id_bits import node_id_of, tick_of, trace_id_of

LAYOUT_VERSION = 8
"""A reader refuses what a newer Clew wrote with a higher one.

Since 2 files say which trace ids their rows have. Since 3 a mask may leave out rows whose values tell the change. Since
5 an input may name files of a table that is not Clew's, and rows of them that do not count. Since 6 files over 1 MB
have digests of their blocks. Since 7 rows that were not loaded may lie in parts of their own. Since
8 an input may be a file of its source, copied as it is.
"""

ORDINAL = "__ordinal"
SOURCE_FILE = "__source_file"
SOURCE_LINE = "__source_line"
SOURCE_ROW_ID = "__source_row_id"
"""The id that a table itself gives a row: Iceberg's `_row_id`, Delta's row tracking."""
WRITTEN_ROW_ID = "__written_row_id"
"""In the files of a registered table: the row id that a row had in the run that wrote it."""
ORIGIN = "__origin"
"""In the files of a registered dataset: the ordinal that a row had in the run that registered it."""
TRACE_ID = "_trace_id"
"""The trace id of a row where a file holds it: in registered datasets, and of rows that were appended as they were."""
PARENTS = "__parents"
"""In the files of summary rows that were written with their links: the trace ids of the source rows of each,
ascending."""
_GROUP_KEY = "__key"
DELETED_MASK = 1
"""The mask of a deleting step."""

MASK_BITS = 62


def mask_column(seq: int, word: int = 0) -> str:
    """The column that says which assignments of a step changed the row; NULL where none did, or where a value tells."""
    return f"__s{seq}_m" if word == 0 else f"__s{seq}_m{word}"


def after_column(seq: int, position: int) -> str:
    """The column with the value that an assignment gave, by its position in the step."""
    return f"__s{seq}_a{position}"


def in_mask(word: int | None, position: int) -> bool:
    """Whether the word of a mask that the assignment at a position belongs to has its bit."""
    return word is not None and bool(word >> position % MASK_BITS & 1)


def group_key_column(position: int) -> str:
    """In the files of rows summed up from another dataset: a key as groups had it, by its place among the keys.

    Only for keys that lose something by the type of the column that they go to.
    """
    return f"{_GROUP_KEY}{position}"


def mask_words(assignments: int) -> int:
    """How many mask columns a step with so many assignments has."""
    return max(1, -(-assignments // MASK_BITS))


@dataclass(frozen=True, slots=True)
class IdBlock:
    """The trace ids of a file's rows as arithmetic on their positions: consecutive ticks of one node."""

    node_id: int
    first_tick: int

    def trace_id(self, position: int) -> int:
        """The id of the row at a position of the file."""
        return trace_id_of(self.first_tick + position, self.node_id)

    def position(self, trace_id: int) -> int | None:
        """The position of the row that would have an id, None where the id is of another node or of earlier ticks."""
        if node_id_of(trace_id) != self.node_id:
            return None
        position = tick_of(trace_id) - self.first_tick
        return position if position >= 0 else None


CARRIED: Literal["carried"] = "carried"
"""For a file whose rows hold their trace ids in a separate column."""


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a dataset in a file of a table. Without a stored column and a value it is NULL."""

    name: str
    type: str
    """The type of the table's column, as Spark calls it."""
    stored: str | None = None
    """What the file calls it."""
    value: str | None = None
    """What all rows have, as text."""


@dataclass(frozen=True, slots=True)
class FileView:
    """How files that Clew did not write hold rows of a dataset: those of a Delta or Iceberg table, and copies."""

    title: str
    """The table and its version, in words; of a copy, the file that it was copied from."""
    base: str
    """The folder of the table, with which the paths of most of its files begin; empty for a copy."""
    columns: tuple[ViewColumn, ...]
    run_id: str | None = None
    """The run of Clew that has committed the files to the table, where it was one."""
    seq: int | None = None
    """The step by which it has."""
    store: StoreReach | None = None
    """How their store is reached, where it is one that the environment's own settings do not reach."""

    @property
    def is_copy(self) -> bool:
        """Whether the file lies below the storage root, as a copy of one that rows were loaded from."""
        return not self.base

    def column(self, name: str) -> ViewColumn | None:
        """The column that has a column of the dataset; None where the files do not have it."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A Parquet file of a part. Files of input and created parts have ordinals, which make those of their rows."""

    path: str
    """Relative to the storage root of the environment; absolute for a file of a table."""
    rows: int
    size: int
    sha256: str
    """Empty for a file of a table that is read by a resolver: such a table names its files by their paths, and never
    writes one twice."""
    ordinal: int | None = None
    ids: IdBlock | Literal["carried"] | None = None
    """Which trace ids its rows have; None where they have none."""
    view: FileView | None = None
    """For a file of a table, and for one that was copied as it is."""
    skipped: int = 0
    """How many of its rows do not count, since the table says that they are deleted."""
    first_row_id: int | None = None
    """The table's own id of its first row, from which those of the others count on; None where it has none."""
    blocks: tuple[str, ...] = ()
    """The digests of its blocks (see `block_digests`); none for a file that is read at once, or of an older Clew."""

    @property
    def counted(self) -> int:
        """How many rows it has that count."""
        return self.rows - self.skipped

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to a table that is not Clew's."""
        return self.view is not None and not self.view.is_copy

    @property
    def has_row_ids(self) -> bool:
        """Whether the table gives its rows ids, by their positions or in a column."""
        return self.first_row_id is not None or (self.view is not None and self.view.column(SOURCE_ROW_ID) is not None)

    @property
    def shown(self) -> str:
        """A file of a table, or one that was copied, as explanations cite it."""
        if self.view is None:
            return self.path
        if self.view.is_copy:
            return self.view.title
        return f"{self.view.title}: {self.path.removeprefix(self.view.base.rstrip('/') + '/')}"

    @property
    def first_ordinal(self) -> int:
        """The ordinal of its first row, from which those of the others count on."""
        return ordinal_of(self.ordinal or 0, 0)


@dataclass(frozen=True, slots=True)
class SourceRead:
    """A file outside Clew that rows were read from, as it was then."""

    name: str
    """As messages and explanations call it."""
    size: int
    digest: str | None
    """`sha256:...`, or what its store says about its content: `etag:...`. None where nothing is known."""


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A narrow step of a changes part: its columns in the order of the mask bits, none for a deletion."""

    seq: int
    kind: Literal["update", "delete"]
    columns: tuple[str, ...]


def mask_columns(step: TracedStep) -> list[str]:
    """The masks of a step in the file of its part."""
    return [mask_column(step.seq, word) for word in range(mask_words(len(step.columns)))]


def change_columns(step: TracedStep) -> list[str]:
    """All columns of a step in the file of its part."""
    return mask_columns(step) + [after_column(step.seq, position) for position in range(len(step.columns))]


PartKind = Literal["input", "created", "changes", "links", "quarantine"]

PartLineage = Literal["links", "window", "continues"]
"""How created rows lead to their source rows: by ids stored with them, by what their step and keys say, or not at all
since they keep the ids of the rows that they were appended from."""
DELETED_ROWS = "deleted"
"""The detail of a registered input with how many of its rows were deleted before."""
COUNTED_ROWS = "rows"
"""The detail of a pinned table that says how many rows count, where its files have those of other periods too."""
TAKEN_OVER = "taken_over"
"""The detail of a part whose files another run has: which run they were taken over from."""
READ_AS = "read_as"
"""The detail of an input with a digest of how its sources are read: definitions, rules, period. Not their content."""
LINEAGE = "lineage"
"""The detail of a created part that says which."""


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of Parquet files with one role."""

    kind: PartKind
    name: str
    """The dataset of an input or of its rows in quarantine, the seq of created rows, first and last seq of changes."""
    files: tuple[PartFile, ...]
    columns: tuple[tuple[str, str], ...]
    """Data columns and their types; for changes the state columns, where the part holds the state."""
    seq: int = 0
    """The step after which the rows exist, or the last step of changes."""
    steps: tuple[TracedStep, ...] = ()
    details: Mapping[str, str | int | None] | None = None
    """For an input: dataset, version, source description. For created rows: how they were made."""
    sources: tuple[SourceRead, ...] = ()
    """For an input: every file or table that it was read from."""
    excluded: PartFile | None = None
    """For an input from a table: a file with the ordinals of rows that do not count."""
    version: int = LAYOUT_VERSION

    @property
    def counted(self) -> int:
        """How many rows it has that count. Where the period decides, pinning a table has counted them."""
        rows = (self.details or {}).get(COUNTED_ROWS)
        return rows if isinstance(rows, int) else sum(file.counted for file in self.files)


def part_to_json(part: Part) -> dict[str, object]:
    """The part as plain data for `json.dumps`. Files that share a view name it by its number."""
    views = {view: number for number, view in enumerate(dict.fromkeys(file.view for file in part.files if file.view))}
    plain = replace(part, files=tuple(replace(file, view=None) for file in part.files))
    data = asdict(plain)
    for file, found in zip(part.files, data["files"], strict=True):
        found["view"] = None if file.view is None else views[file.view]
    data["views"] = [_view_to_json(view) for view in views]
    data["details"] = None if part.details is None else dict(part.details)
    return data


def _view_to_json(view: FileView) -> dict[str, object]:
    """A view. What only tables in stores have is left out of others, which an older Clew can read."""
    data = asdict(view)
    if view.store is None:
        del data["store"]
    return data


def part_from_json(data: object, file: str) -> Part:
    """The part that `part_to_json` wrote. `file` is where it was read, for messages.

    Raises UserError where a newer Clew wrote it, and where it is not a part.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > LAYOUT_VERSION:
        raise UserError(NEWER_TRACE_LAYOUT.anywhere(file=file, found=version, known=LAYOUT_VERSION))
    try:
        return _part(data)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(DAMAGED_TRACE.anywhere(file=file, problem=problem)) from None


def _part(data: object) -> Part:
    record = _record(data, Part, "views")
    views = [_view(each) for each in _list(record.get("views", ()))]
    excluded = record.get("excluded")
    return Part(
        kind=cast("PartKind", _one_of(record["kind"], get_args(PartKind))),
        name=_text(record["name"]),
        files=tuple(_file(each, views) for each in _list(record["files"])),
        columns=tuple(_pair(each) for each in _list(record["columns"])),
        seq=_number(record["seq"]),
        steps=tuple(_step(each) for each in _list(record["steps"])),
        details=_details(record["details"]),
        sources=tuple(_source(each) for each in _list(record.get("sources", ()))),
        excluded=None if excluded is None else _file(excluded, ()),
        version=_number(record["version"]),
    )


def _file(data: object, views: Sequence[FileView]) -> PartFile:
    record = _record(data, PartFile)
    ordinal, view, first = record["ordinal"], record.get("view"), record.get("first_row_id")
    return PartFile(
        path=_text(record["path"]),
        rows=_number(record["rows"]),
        size=_number(record["size"]),
        sha256=_text(record["sha256"]),
        ordinal=None if ordinal is None else _number(ordinal),
        ids=_ids(record.get("ids")),
        view=None if view is None else views[_number(view)],
        skipped=_number(record.get("skipped", 0)),
        first_row_id=None if first is None else _number(first),
        blocks=tuple(_text(each) for each in _list(record.get("blocks", ()))),
    )


def _view(data: object) -> FileView:
    record = _record(data, FileView)
    columns = tuple(_view_column(each) for each in _list(record["columns"]))
    run_id, seq, store = record.get("run_id"), record.get("seq"), record.get("store")
    return FileView(
        _text(record["title"]),
        _text(record["base"]),
        columns,
        None if run_id is None else _text(run_id),
        None if seq is None else _number(seq),
        None if store is None else _store(store),
    )


def _store(data: object) -> StoreReach:
    record = _record(data, StoreReach)
    path_style = record["path_style"]
    if path_style is not None and not isinstance(path_style, bool):
        raise TypeError(f"expected true or false, found {_shown(path_style)}")
    texts = {name: record[name] for name in ("endpoint", "region", "credential_ref")}
    given = {name: None if value is None else _text(value) for name, value in texts.items()}
    return StoreReach(path_style=path_style, **given)


def _view_column(data: object) -> ViewColumn:
    record = _record(data, ViewColumn)
    stored, value = record["stored"], record["value"]
    return ViewColumn(
        _text(record["name"]),
        _text(record["type"]),
        None if stored is None else _text(stored),
        None if value is None else _text(value),
    )


def _source(data: object) -> SourceRead:
    record = _record(data, SourceRead)
    digest = record["digest"]
    return SourceRead(_text(record["name"]), _number(record["size"]), None if digest is None else _text(digest))


def _ids(data: object) -> IdBlock | Literal["carried"] | None:
    if data is None or data == CARRIED:
        return CARRIED if data else None
    record = _record(data, IdBlock)
    return IdBlock(_number(record["node_id"]), _number(record["first_tick"]))


def _step(data: object) -> TracedStep:
    record = _record(data, TracedStep)
    columns = tuple(_text(each) for each in _list(record["columns"]))
    if _one_of(record["kind"], ("update", "delete")) == "update":
        return TracedStep(_number(record["seq"]), "update", columns)
    return TracedStep(_number(record["seq"]), "delete", columns)


def _pair(data: object) -> tuple[str, str]:
    name, type_ = _list(data)
    return _text(name), _text(type_)


def _details(data: object) -> dict[str, str | int | None] | None:
    if data is None:
        return None
    if not isinstance(data, dict):
        raise TypeError(f"expected details, found {_shown(data)}")
    for value in data.values():
        if value is not None and not isinstance(value, str | int):
            raise TypeError(f"expected a string or a number, found {_shown(value)}")
    return data


_Declared = type[Part | PartFile | FileView | ViewColumn | StoreReach | SourceRead | TracedStep | IdBlock]


def _record(data: object, declared: _Declared, *further: str) -> dict[str, object]:
    if not isinstance(data, dict):
        raise TypeError(f"expected {declared.__name__}, found {_shown(data)}")
    unknown = data.keys() - declared.__dataclass_fields__.keys() - set(further)
    if unknown:
        raise ValueError(f"{declared.__name__} has no {', '.join(sorted(unknown))}")
    return data


def _one_of(data: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(data, str) or data not in allowed:
        raise ValueError(f"{_shown(data)} is not one of {', '.join(allowed)}")
    return data


def _list(data: object) -> list[object]:
    if not isinstance(data, list | tuple):
        raise TypeError(f"expected a list, found {_shown(data)}")
    return list(data)


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise TypeError(f"expected a string, found {_shown(data)}")
    return data


def _number(data: object) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or data < 0:
        raise TypeError(f"expected a number, found {_shown(data)}")
    return data


def _shown(data: object) -> str:
    return repr(data)[:80]
