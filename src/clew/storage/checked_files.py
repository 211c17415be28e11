"""The files of a run, read with care: a file that is not as it was written is named, and nothing is read from it."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING

from clew.diagnostics import UserError
from clew.diagnostics.codes.trace import DAMAGED_TRACE, TABLE_VERSION_GONE
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.storage.block_digests import CheckedBlocks, NotAsWritten
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID, Part, PartFile, ViewColumn
from clew.storage.root import RemoteSource, StorageKey, StorageRoot
from clew.storage.scan_ahead import ColumnChunks, column_spans
from clew.storage.shared_files import SMALL, SharedFiles
from clew.storage.tables.table_places import THIS_MACHINE, TablePlace, is_remote, local_key, place_at

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from clew.storage.duckdb_files import QueriedFile
    from clew.storage.local_copies import LocalCopies
    from clew.storage.store_reach import StoreReach

_BATCH = 1 << 13
_AT_ONCE = 16
"""Remote files that are opened at the same time."""
OnDamage = Callable[[UserError], None]


def damaged(file: PartFile, problem: str) -> UserError:
    """The error that names a damaged file. Those of a table belong to others, who may delete what they need no more."""
    if file.is_foreign:
        return UserError(TABLE_VERSION_GONE.anywhere(file=file.shown, problem=problem))
    return UserError(DAMAGED_TRACE.anywhere(file=file.path, problem=problem))


class TraceFiles:
    """Parquet files below a storage root. What their footers say is remembered, since files never change.

    What is read has the digest that it was written with: small files as a whole, larger ones block by block as far as
    they are read. What was found right is not checked again, until size, times or inode of the file say that it is
    another. Files of a registered dataset, or of an older Clew, have no digests of blocks; if they lie on this machine
    they are checked as a whole, and else by the checksums of their pages.
    """

    def __init__(
        self, root: StorageRoot, copies: "LocalCopies | None" = None, on_damage: "OnDamage | None" = None
    ) -> None:
        """Small files and footers are read from copies, where this machine may keep some of these rows.

        `on_damage` is told of every file that is not as it was written, before the question is refused.
        """
        self._on_damage = on_damage
        self._root = root
        self._copies = copies
        self._shared = SharedFiles(self._place, copies)
        self._tables: dict[tuple[str, StoreReach | None], TablePlace] = {}
        self._identities: dict[str, str] = {}
        self._checked: dict[str, set[int]] = {}
        self._footers: dict[str, pq.FileMetaData] = {}
        self._ranges: dict[str, list[tuple[int, int] | None]] = {}

    def _damaged(self, file: PartFile, problem: str) -> UserError:
        error = damaged(file, problem)
        if self._on_damage is not None and not file.is_foreign:
            self._on_damage(error)
        return error

    def source(self, file: PartFile) -> str:
        """A file for DuckDB."""
        root, key = self._place(file)
        return root.source(key)

    def _place(self, file: PartFile) -> tuple[StorageRoot, StorageKey]:
        """Where a file lies: below the storage root, or where a table has it."""
        view = file.view
        if view is None or view.is_copy:
            return self._root, file.path
        if not is_remote(file.path):
            return THIS_MACHINE, local_key(file.path)
        known = self._tables.get((view.base, view.store))
        if known is None:
            known = self._tables.setdefault((view.base, view.store), place_at(self._root, view.base, view.store))
        return known.opened(file.path)

    def queried(self, file: PartFile) -> "QueriedFile":
        """A remote file that DuckDB reads too. It has the size, and a small one the content, that was written."""
        from clew.storage.duckdb_files import QueriedFile

        footer = self.footer(file)
        with self._told(file):
            opened = self._shared.opened(file)
        assert opened is not None  # noqa: S101 - DuckDB opens those itself that are not remote
        return QueriedFile(opened, ColumnChunks(footer))

    def footer(self, file: PartFile) -> "pq.FileMetaData":
        """The footer of a file that has the size and the rows that it was written with."""
        root, key = self._place(file)
        with self._told(file):
            is_elsewhere = self._shared.opened(file) is not None
            found = None if is_elsewhere else root.stat(key)
        if found is not None and found.size != file.size:
            raise self._damaged(file, f"it has {found.size:,} bytes, {file.size:,} were written")
        if found is not None and self._identities.get(file.path) != found.version:
            self._identities[file.path], self._checked[file.path] = found.version, set()
            self._footers.pop(file.path, None)
            self._ranges.pop(file.path, None)
        if file.path not in self._footers:
            with self._told(file):
                footer = self._footer(file, is_elsewhere=is_elsewhere)
            if footer.num_rows != file.rows:
                raise self._damaged(file, f"it has {footer.num_rows:,} rows, {file.rows:,} were written")
            if not is_elsewhere and not file.is_foreign and not file.blocks:
                self._require_content(file)
            self._footers[file.path] = footer
        return self._footers[file.path]

    def _footer(self, file: PartFile, *, is_elsewhere: bool) -> "pq.FileMetaData":
        import pyarrow.parquet as pq

        copies = self._copies if is_elsewhere and file.size > SMALL and file.sha256 else None
        name = f"footer {file.sha256}"
        content = copies.get(name) if copies is not None else None
        if content is not None:
            return pq.read_metadata(BytesIO(content))
        with self._parquet(file, None) as opened:
            footer = opened.metadata
        if copies is not None:
            written = BytesIO()
            footer.write_metadata_file(written)
            copies.put(name, written.getvalue())
        return footer

    def open_all(self, files: Iterable[PartFile]) -> None:
        """Have the footers of files at hand: of remote ones, several are asked for at once."""
        unknown = {file.path: file for file in files if not file.is_foreign and file.path not in self._footers}
        remote = [file for file in unknown.values() if isinstance(self._root.source(file.path), RemoteSource)]
        if len(remote) > 1:
            with ThreadPoolExecutor(min(_AT_ONCE, len(remote))) as threads:
                for opened in [threads.submit(self.footer, file) for file in remote]:
                    opened.result()

    def require_whole(self, file: PartFile) -> None:
        """Compare all of a file with what was written, once: for readers of which nobody knows what they read."""
        self.footer(file)
        if not file.blocks or self._shared.opened(file) is not None:
            return
        if len(self._checked[file.path]) < len(file.blocks):
            with self._told(file), self._blocks(file) as opened:
                opened.check_all()

    @contextmanager
    def _blocks(self, file: PartFile) -> "Iterator[CheckedBlocks]":
        """A large file on this machine."""
        with self._root.open(file.path) as opened:

            def read_at(position: int, count: int) -> bytes:
                opened.seek(position)
                return opened.read(count)

            yield CheckedBlocks(read_at, file.size, file.blocks, self._checked.setdefault(file.path, set()))

    @contextmanager
    def _parquet(self, file: PartFile, footer: "pq.FileMetaData | None") -> "Iterator[pq.ParquetFile]":
        import pyarrow as pa
        import pyarrow.parquet as pq

        shared = self._shared.opened(file)
        if shared is not None:
            with shared.for_arrow() as opened:
                yield pq.ParquetFile(opened, metadata=footer, pre_buffer=True, page_checksum_verification=True)
        elif file.blocks:
            with self._blocks(file) as blocks, pa.PythonFile(blocks, mode="r") as opened:
                yield pq.ParquetFile(opened, metadata=footer, page_checksum_verification=True)
        else:
            root, key = self._place(file)
            with root.open_parquet(key, footer) as parquet:
                yield parquet

    @contextmanager
    def _told(self, file: PartFile) -> "Iterator[None]":
        """Blame the file for what is wrong with it, and the store for what is wrong with that."""
        import pyarrow as pa

        try:
            yield
        except NotAsWritten as error:
            raise self._damaged(file, str(error)) from error
        except OSError as error:
            root, key = self._place(file)
            reason = root.reason(key, error)
            if isinstance(reason, OutOfReach):
                raise unavailable(reason) from error
            raise self._damaged(file, reason.strerror or str(reason)) from error
        except pa.ArrowException as error:
            raise self._damaged(file, str(error)) from error

    def columns(self, file: PartFile) -> frozenset[str]:
        """The columns that a file has; of a file of a table, those of the dataset, and where its rows stand."""
        if file.view is None:
            return self.stored_columns(file)
        places = {SOURCE_FILE, SOURCE_LINE, *([SOURCE_ROW_ID] if file.has_row_ids else [])}
        return frozenset({*places, *(column.name for column in file.view.columns)})

    def stored_columns(self, file: PartFile) -> frozenset[str]:
        """The columns as the file itself calls them."""
        return frozenset(self.footer(file).schema.names)

    def row(self, file: PartFile, position: int, columns: Sequence[str]) -> "pa.Table":
        """The row at a position, as a table of one row."""
        if file.view is not None:
            return viewed(file, lambda stored: self._stored_row(file, position, stored), columns, position)
        return self._stored_row(file, position, columns)

    def whole(self, file: PartFile, columns: Sequence[str]) -> "pa.Table":
        """All rows of a file, whether they count or not."""

        def read(names: Sequence[str]) -> "pa.Table":
            groups = range(self.footer(file).num_row_groups)
            with self._opened(file, groups, names) as opened:
                return opened.read(columns=list(names))

        return read(columns) if file.view is None else viewed(file, read, columns, 0)

    def is_excluded(self, part: Part, file: PartFile, ordinal: int) -> bool:
        """Whether a row of a pinned table does not count."""
        excluded = part.excluded
        return bool(file.skipped) and excluded is not None and self.row_with(excluded, ordinal, [ORDINAL]) is not None

    def _stored_row(self, file: PartFile, position: int, columns: Sequence[str]) -> "pa.Table":
        footer = self.footer(file)
        for group in range(footer.num_row_groups):
            rows = footer.row_group(group).num_rows
            if position < rows:
                return self._row_at(file, group, position, columns)
            position -= rows
        raise IndexError(position)

    def row_with(self, file: PartFile, ordinal: int, columns: Sequence[str]) -> "pa.Table | None":
        """The row of changes that has an ordinal. Only row groups that can hold it are read."""
        for group, bounds in enumerate(self._ordinals(file)):
            if bounds is not None and not bounds[0] <= ordinal <= bounds[1]:
                continue
            found = _position(self._read(file, group, [ORDINAL])[ORDINAL], ordinal)
            if found is not None:
                return self._row_at(file, group, found, columns)
        return None

    def _ordinals(self, file: PartFile) -> list[tuple[int, int] | None]:
        """The least and the greatest ordinal in each row group, None where the file does not say."""
        footer = self.footer(file)
        if file.path not in self._ranges:
            column = footer.schema.names.index(ORDINAL)
            statistics = [footer.row_group(group).column(column).statistics for group in range(footer.num_row_groups)]
            self._ranges[file.path] = [
                (each.min, each.max) if each is not None and each.has_min_max else None for each in statistics
            ]
        return self._ranges[file.path]

    def _row_at(self, file: PartFile, group: int, position: int, columns: Sequence[str]) -> "pa.Table":
        """A row of a row group. What follows it is not decoded."""
        import pyarrow as pa

        with self._opened(file, [group], columns) as opened:
            for batch in opened.iter_batches(_BATCH, row_groups=[group], columns=list(columns)):
                if position < batch.num_rows:
                    return pa.Table.from_batches([batch.slice(position, 1)])
                position -= batch.num_rows
        raise self._damaged(file, "a row group has fewer rows than its footer says")

    def _read(self, file: PartFile, group: int, columns: Sequence[str]) -> "pa.Table":
        with self._opened(file, [group], columns) as opened:
            return opened.read_row_group(group, columns=list(columns))

    @contextmanager
    def _opened(self, file: PartFile, groups: Iterable[int], columns: Iterable[str]) -> "Iterator[pq.ParquetFile]":
        """A file from which columns of row groups are about to be read: those of a remote one are all there then."""
        footer = self.footer(file)
        with self._told(file), self._parquet(file, footer) as opened:
            shared = self._shared.opened(file)
            if shared is not None:
                shared.fetch(column_spans(footer, groups, columns))
            yield opened

    def first_unreadable(self, files: Iterable[PartFile]) -> UserError | None:
        """What is wrong with the first of these files that cannot be read as a whole."""
        for file in files:
            try:
                footer = self.footer(file)
                for group in range(footer.num_row_groups):
                    self._read(file, group, footer.schema.names)
            except UserError as error:
                return error
        return None

    def verify(self, parts: Iterable[Part]) -> None:
        """Compare every byte of the files of parts with what was written. Raises UserError for all that differ."""
        problems = list[UserError]()
        named = [file for part in parts for file in (*part.files, part.excluded) if file is not None]
        for file in {file.path: file for file in named}.values():
            try:
                self.footer(file)
                if file.sha256:
                    self._require_content(file)
            except UserError as error:
                problems.append(error)
        if problems:
            raise UserError(*(error.diagnostic for error in problems))

    def _require_content(self, file: PartFile) -> None:
        root, key = self._place(file)
        with self._told(file):
            digest = root.sha256(key)
        if digest != file.sha256:
            raise self._damaged(file, "its content is not what was written")


def viewed(
    file: PartFile, read: "Callable[[Sequence[str]], pa.Table]", columns: Sequence[str], first_position: int
) -> "pa.Table":
    """Columns of a dataset in rows of a table's file, given what reads columns by the names that the file has."""
    import pyarrow as pa

    view = file.view
    assert view is not None  # noqa: S101 - the caller asks for files of tables
    wanted = {name: view.column(name) for name in columns}
    stored = list(dict.fromkeys(each.stored for each in wanted.values() if each is not None and each.stored))
    rows = read(stored)
    found = dict[str, pa.Array | pa.ChunkedArray]()
    for name, column in wanted.items():
        if name == SOURCE_FILE:
            found[name] = pa.repeat(file.shown, rows.num_rows)
        elif name == SOURCE_LINE:
            found[name] = pa.array(range(first_position + 1, first_position + 1 + rows.num_rows), pa.int64())
        elif name == SOURCE_ROW_ID:
            found[name] = _row_ids(file, column, rows, first_position)
        elif column is not None and column.stored is not None:
            found[name] = rows.column(column.stored)
        else:
            value = pa.scalar(None if column is None else column.value, pa.string())
            found[name] = pa.repeat(value, rows.num_rows)
    return pa.table(found)


def _row_ids(file: PartFile, column: ViewColumn | None, rows: "pa.Table", first_position: int) -> "pa.Array":
    """The table's own ids of rows: those that they were moved with, or those of their positions."""
    import pyarrow as pa

    first = None if file.first_row_id is None else file.first_row_id + first_position
    counted = [None if first is None else first + index for index in range(rows.num_rows)]
    if column is None or column.stored is None:
        return pa.array(counted, pa.int64())
    kept = rows.column(column.stored).to_pylist()
    return pa.array([other if own is None else own for own, other in zip(kept, counted, strict=True)], pa.int64())


def _position(ordinals: "pa.ChunkedArray", ordinal: int) -> int | None:
    """The position of an ordinal. They usually ascend; where they do not, all of them are looked at.

    What Arrow has for this imports pandas, where it is installed, which takes longer than everything else here.
    """
    before = 0
    for chunk in ordinals.chunks:
        values = memoryview(chunk.buffers()[1]).cast("q")[chunk.offset : chunk.offset + len(chunk)]
        found = bisect_left(values, ordinal)
        if found < len(values) and values[found] == ordinal:
            return before + found
        with suppress(ValueError):
            return before + array("q", values).index(ordinal)
        before += len(chunk)
    return None
