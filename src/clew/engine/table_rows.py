"""Rows of Delta and Iceberg tables on Spark, from the files that a pinned version lists; rows of copied files too.

Spark's own Parquet reader says at which position of which file a row is, so a row has the same ordinal whenever it is
read, and no connector of the format is needed. Rows that the table says are deleted are left out by their ordinals.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.engine.names import named
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted, text_literal
from clew.engine.store_settings import make_reachable
from clew.plan.local_files import escaped_path, literal_path
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE, Part, PartFile, ViewColumn
from clew.storage.root import StorageRoot
from clew.storage.tables.table_places import is_remote, place_at

_PATH = "__path"
_POSITION = "__position"
_MOST_LISTED = 16
"""Files up to which a value that differs from file to file is part of the query; a join finds it among more."""
_MOST_BROADCAST = 1_000_000
"""Excluded rows up to which every executor gets all of them."""

PerFile = Mapping[str, tuple[str, Callable[[PartFile], str | int | None]]]
"""Columns with one value for each file: their SQL type, and what gives the value."""


def is_of_table(part: Part) -> bool:
    """Whether a part names files that Clew did not write: of a table, or copied as they are."""
    return any(file.view is not None for file in part.files)


def table_rows(
    spark: SparkSession, root: StorageRoot, part: Part, names: Sequence[str], further: PerFile | None = None
) -> DataFrame:
    """The rows of a part that count: columns in the types of the table, with their places and ordinals."""
    per_file: PerFile = {
        ORDINAL: ("BIGINT", lambda file: file.first_ordinal),
        SOURCE_FILE: ("STRING", lambda file: file.shown),
        **(further or {}),
    }
    _reach_stores(spark, root, part)
    frames = [_group(spark, root, files, names, per_file) for files in _groups(part.files, names)]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    if part.excluded is None:
        return rows
    excluded = spark.read.schema(f"{ORDINAL} BIGINT").parquet(root.spark_uri(part.excluded.path))
    few = part.excluded.rows <= _MOST_BROADCAST
    return rows.join(F.broadcast(excluded) if few else excluded, ORDINAL, "left_anti")


def _reach_stores(spark: SparkSession, root: StorageRoot, part: Part) -> None:
    """Let Spark read the stores that the files of a part lie in. A catalog's were not known when it started."""
    views = dict.fromkeys(file.view for file in part.files if file.is_foreign and is_remote(file.path))
    for base, store in dict.fromkeys((view.base, view.store) for view in views if view is not None):
        make_reachable(spark, place_at(root, base, store).root)


def _groups(files: Sequence[PartFile], names: Sequence[str]) -> Iterator[Sequence[PartFile]]:
    """Files that hold the columns under the same names and in the same types."""
    groups = dict[tuple[tuple[str | None, str | None], ...], list[PartFile]]()
    for file in files:
        columns = [_column(file, name) for name in names]
        layout = tuple((each.stored, each.type if each.stored else None) if each else (None, None) for each in columns)
        groups.setdefault(layout, []).append(file)
    yield from groups.values()


def _column(file: PartFile, name: str) -> ViewColumn | None:
    return file.view.column(name) if file.view is not None else None


def _group(
    spark: SparkSession, root: StorageRoot, files: Sequence[PartFile], names: Sequence[str], per_file: PerFile
) -> DataFrame:
    columns = {name: _column(files[0], name) for name in names}
    stored = {each.stored: each.type for each in columns.values() if each is not None and each.stored is not None}
    reader = spark.read
    if stored:
        reader = reader.schema(", ".join(f"{quoted(name)} {type_}" for name, type_ in stored.items()))
    read = reader.parquet(*(literal_path(_address(root, file)) for file in files))
    aliases = {name: quoted(f"__stored{index}") for index, name in enumerate(stored)}
    named_by = "file_path" if files[0].is_foreign else "file_name"
    places = [f"_metadata.{named_by} AS {_PATH}", f"_metadata.row_index AS {_POSITION}"]
    rows = select_sql(read, [*(f"{quoted(name)} AS {alias}" for name, alias in aliases.items()), *places])
    constants: dict[str, tuple[str, Callable[[PartFile], str | int | None]]] = {
        name: (_type_of(files, name), _value_of(name))
        for name, each in columns.items()
        if each is None or each.stored is None
    }
    rows, values = _looked_up(spark, rows, files, {**constants, **per_file})
    told = "raise_error('a file of the table that the run has not pinned')"
    chosen = [
        named(aliases[each.stored] if each is not None and each.stored is not None else values[name], name)
        for name, each in columns.items()
    ]
    others = [named(values[name], name) for name in per_file if name != ORDINAL]
    ordinal = f"coalesce({values[ORDINAL]}, {told}) + {_POSITION}"
    return select_sql(rows, [*chosen, *others, named(f"{_POSITION} + 1", SOURCE_LINE), named(ordinal, ORDINAL)])


def _type_of(files: Sequence[PartFile], name: str) -> str:
    found = (_column(file, name) for file in files)
    return next((each.type for each in found if each is not None), "STRING")


def _value_of(name: str) -> Callable[[PartFile], str | int | None]:
    def value(file: PartFile) -> str | None:
        column = _column(file, name)
        return None if column is None else column.value

    return value


def _looked_up(
    spark: SparkSession, rows: DataFrame, files: Sequence[PartFile], per_file: PerFile
) -> tuple[DataFrame, dict[str, str]]:
    """The rows, and SQL over them for each value that depends on the file."""
    values = {name: [of(file) for file in files] for name, (_, of) in per_file.items()}
    differing = [name for name, each in values.items() if len(set(each)) > 1]
    found = {name: _literal(values[name][0], per_file[name][0]) for name in values if name not in differing}
    numbered = list(enumerate(files))
    paths = [(number, form) for number, file in numbered for form in _forms(file)]
    if not differing or len(files) <= _MOST_LISTED:
        for name in differing:
            type_ = per_file[name][0]
            pairs = (f"{text_literal(path)}, {_literal(values[name][number], type_)}" for number, path in paths)
            listed = ", ".join(pairs)
            found[name] = f"element_at(map({listed}), {_PATH})"
        return rows, found
    aliases = {name: f"__value{index}" for index, name in enumerate(differing)}
    texts = [
        (path, *(None if values[name][number] is None else str(values[name][number]) for name in differing))
        for number, path in paths
    ]
    schema = ", ".join(f"{name} STRING" for name in (_PATH, *aliases.values()))
    joined = rows.join(F.broadcast(spark.createDataFrame(texts, schema)), _PATH, "left")
    found |= {name: f"CAST({alias} AS {per_file[name][0]})" for name, alias in aliases.items()}
    return joined, found


def _address(root: StorageRoot, file: PartFile) -> str:
    return spark_address(file.path) if file.is_foreign else root.spark_uri(file.path)


def spark_address(path: str) -> str:
    """A file of a table as Spark names it: Hadoop calls S3 s3a."""
    return f"s3a{path[2:]}" if path.startswith("s3:") else path


def _forms(file: PartFile) -> Sequence[str]:
    """How Spark may name a file: by its path, or a copy, whose name no other has, by that."""
    path = file.path
    if not file.is_foreign:
        return [path.rpartition("/")[2]]
    if not is_remote(path):
        # Versions of Spark differ in how many slashes an address of this machine has.
        return [form + escaped_path(path) for form in ("file:", "file://")]
    scheme, _, rest = spark_address(path).partition("://")
    return [f"{scheme}://{escaped_path(rest)}"]


def _literal(value: str | int | None, type_: str) -> str:
    text = "NULL" if value is None else text_literal(str(value))
    return f"CAST({text} AS {type_})"
