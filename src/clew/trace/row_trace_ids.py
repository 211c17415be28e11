"""Between the ordinals of rows and their trace ids, in the files of one run."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from clew.lang.types import INTEGER, STRING
from clew.plan.datasets import DatasetUse
from clew.storage.parts import CARRIED, ORDINAL, ORIGIN, PARENTS, TRACE_ID, WRITTEN_ROW_ID, IdBlock, Part, PartFile
from clew.storage.row_identity import ordinal_of, place_of
from clew.trace.json_values import arrow_type, table_of
from clew.trace.row_sets import RowSet
from clew.trace.row_sources import FileRows, FileSource, excluded_from
from clew.trace.run_parts import periods_of
from clew.trace.sql import Sql, joined, parquet
from clew.trace.trace_database import Reading

_WANTED = "__wanted"
PARENT = "parent_trace_id"
"""The column with the parent in links that were derived after a run; the other has the trace id of the row."""

Pair = tuple[int, int]


class RowTraceIds:
    """Reads trace ids. Rows that have none are left out of every answer."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def id_at(self, file: PartFile, position: int) -> int | None:
        """The trace id of one row, read from the row group that holds it; None if the row has none."""
        if isinstance(file.ids, IdBlock):
            return file.ids.trace_id(position)
        if file.ids is None:
            return None
        [found] = self._reading.files.row(file, position, [TRACE_ID])[TRACE_ID].to_pylist()
        return found if isinstance(found, int) else None

    def ids_of(self, part: Part, ordinals: Collection[int]) -> dict[int, int]:
        """The trace ids of rows of a part, by ordinal."""
        found, carried = dict[int, int](), list[int]()
        files = {file.ordinal: file for file in numbered(part)}
        for ordinal in ordinals:
            number, position = place_of(ordinal)
            file = files.get(number)
            if file is None or not 0 <= position < file.rows:
                continue
            if isinstance(file.ids, IdBlock):
                found[ordinal] = file.ids.trace_id(position)
            elif file.ids == CARRIED:
                carried.append(ordinal)
        if carried:
            found |= self._column(part, carried, TRACE_ID)
        return found

    def origins_of(self, part: Part, ordinals: Collection[int]) -> dict[int, int]:
        """For rows of a registered dataset, by their places in it: their ordinals in the run that registered them."""
        return self._column(part, ordinals, ORIGIN) if ordinals else {}

    def rows_of(self, part: Part, trace_ids: Collection[int]) -> list[Pair]:
        """The rows of a part that have one of these ids: pairs of id and ordinal. Several rows may carry one id."""
        found = [
            (trace_id, ordinal_of(file.ordinal or 0, position))
            for file in numbered(part)
            if isinstance(file.ids, IdBlock)
            for trace_id in trace_ids
            if (position := file.ids.position(trace_id)) is not None
            and position < file.rows
            and not self._reading.files.is_excluded(part, file, file.first_ordinal + position)
        ]
        files = [file for file in numbered(part) if file.ids == CARRIED]
        if files and trace_ids:
            selects = [
                FileSource(self._reading.files, self._rows_in(file), (0, None)).select({TRACE_ID: INTEGER})
                for file in files
            ]
            sql = f"SELECT {TRACE_ID}, {ORDINAL} FROM (" + joined(" UNION ALL ", selects) + ")"
            found += self._pairs(sql + f" WHERE {TRACE_ID} IN (SELECT {TRACE_ID} FROM {_WANTED})", files, trace_ids)
        return sorted(found)

    def rows_written(self, part: Part, use: DatasetUse, row_ids: Collection[str]) -> list[tuple[str, int]]:
        """The rows of a registered table that had one of these row ids in the run that wrote them, with ordinals."""
        periods = periods_of(part, use)
        files = [file for file in numbered(part) if file.view is not None and file.view.column(WRITTEN_ROW_ID)]
        if not files or not row_ids:
            return []
        sources = [
            FileSource(
                self._reading.files,
                FileRows(file, self._reading.files.columns(file), (), periods, excluded_from(part, file)),
                (0, None),
            )
            for file in files
        ]
        selects = [source.select({WRITTEN_ROW_ID: STRING}) for source in sources]
        sql = f"SELECT {WRITTEN_ROW_ID}, {ORDINAL} FROM (" + joined(" UNION ALL ", selects) + ")"
        wanted = table_of([(WRITTEN_ROW_ID, arrow_type(STRING), list(row_ids))])
        sql += f" WHERE {WRITTEN_ROW_ID} IN (SELECT {WRITTEN_ROW_ID} FROM {_WANTED})"
        read = [file for source in sources for file in source.read]
        found = self._reading.database.query(sql, read, {_WANTED: wanted})
        return sorted(zip(found[0].to_pylist(), found[1].to_pylist(), strict=True))

    def stored_parents(self, part: Part, ordinals: Collection[int]) -> list[Pair]:
        """The links written with summary rows: pairs of the ordinal of a row and the id of one of its source rows."""
        unnested = [self._unnested(file) for file in numbered(part)]
        if not unnested:
            return []
        sql = f"SELECT {ORDINAL}, {PARENTS} FROM (" + joined(" UNION ALL ", unnested) + ")"
        return self._pairs(sql + f" WHERE {ORDINAL} IN (SELECT {TRACE_ID} FROM {_WANTED})", part.files, ordinals)

    def stored_children(self, part: Part, trace_ids: Collection[int]) -> list[Pair]:
        """The same, for rows that were made from one of these ids."""
        unnested = [self._unnested(file) for file in numbered(part)]
        if not unnested:
            return []
        sql = f"SELECT {ORDINAL}, {PARENTS} FROM (" + joined(" UNION ALL ", unnested) + ")"
        return self._pairs(sql + f" WHERE {PARENTS} IN (SELECT {TRACE_ID} FROM {_WANTED})", part.files, trace_ids)

    def links(self, part: Part, trace_ids: Collection[int], column: str) -> list[Pair]:
        """Links that were worked out after the run: pairs of a trace id and its parent, one of which is asked for."""
        if not part.files:
            return []
        table = parquet([self._reading.files.source(file) for file in part.files])
        where = f" WHERE {column} IN (SELECT {TRACE_ID} FROM {_WANTED})"
        return self._pairs(f"SELECT {TRACE_ID}, {PARENT} FROM " + table + where, part.files, trace_ids)

    def _unnested(self, file: PartFile) -> Sql:
        first = ordinal_of(file.ordinal or 0, 0)
        table = parquet([self._reading.files.source(file)], ", file_row_number = true")
        return f"SELECT {first} + file_row_number AS {ORDINAL}, unnest({PARENTS}) AS {PARENTS} FROM " + table

    def _pairs(self, sql: Sql, files: Sequence[PartFile], wanted: Collection[int]) -> list[Pair]:
        table = table_of([(TRACE_ID, arrow_type(INTEGER), list(wanted))])
        found = self._reading.database.query(sql, files, {_WANTED: table})
        return sorted(zip(found[0].to_pylist(), found[1].to_pylist(), strict=True))

    def _column(self, part: Part, ordinals: Collection[int], column: str) -> dict[int, int]:
        """An internal column in the files that carry ids."""
        rows = RowSet(
            files=self._reading.files,
            database=self._reading.database,
            types=[(column, INTEGER)],
            origins=[self._rows_in(file) for file in numbered(part) if file.ids == CARRIED],
        )
        found = ((ordinal, cells[column]) for ordinal, cells in rows.values(list(ordinals), [column]))
        return {ordinal: value for ordinal, value in found if isinstance(value, int)}

    def _rows_in(self, file: PartFile) -> FileRows:
        return FileRows(file, self._reading.files.columns(file), ())


def numbered(part: Part) -> Iterator[PartFile]:
    """The files of a part with their numbers, by position where they have none."""
    for index, file in enumerate(part.files):
        yield file if file.ordinal is not None else replace(file, ordinal=index)
