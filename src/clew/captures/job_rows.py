"""The rows of a postlude job: what its tasks have left of the rows at a breakpoint, and what they look like."""

# ruff: noqa: S608 - names are quoted by `clew.trace.sql`

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from clew.captures.captured_rows import DELETED, ROW_ID, questions, row_id_of_ordinal
from clew.captures.manifests import CapturedColumn, CapturedFile
from clew.captures.requests import KeptColumn
from clew.captures.spark_statistics import statistics_in_spark
from clew.captures.statistics import Statistics
from clew.captures.writing import EndedRun, WrittenRows, filtered, raw_rows, sample_of, taken, view_rows, write_rows
from clew.deferred import dataclass
from clew.definitions import Mask
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import BUDGET_EXCEEDED
from clew.engine.types import DataFrame
from clew.events.codec import encode
from clew.lang.types import STRING, Type
from clew.plan.postlude import SerializeTask
from clew.plan.steps import PlannedExpression
from clew.storage.drafts import Draft
from clew.storage.local import sha256_of_file
from clew.storage.parts import ORDINAL
from clew.trace.sql import Sql, parquet, quoted, typed_column


@dataclass(frozen=True, slots=True)
class Payload:
    """Rows as a file, ready to be sent."""

    path: Path
    file: CapturedFile
    columns: tuple[CapturedColumn, ...]
    is_raw: bool


def as_parquet(payload: Payload) -> Payload:
    """The same rows as Parquet, which is what capture stores keep."""
    if payload.path.suffix == ".parquet":
        return payload
    path = payload.path.with_suffix(".parquet")
    with pa.OSFile(str(payload.path), "rb") as source, pa.ipc.open_file(source) as reader:
        pq.write_table(reader.read_all(), path, compression="zstd")
    return replace(payload, path=path, file=_described(path, payload.file.rows))


def _described(path: Path, rows: int) -> CapturedFile:
    return CapturedFile(path.name, rows, path.stat().st_size, sha256_of_file(path))


@dataclass(slots=True)
class JobRows:
    """Rows that tasks narrow down. They are computed when a task looks at them, and once until the next one that
    changes them."""

    ended: EndedRun
    rows: DataFrame
    types: Mapping[str, Type]
    """Of the columns that are left."""
    hidden: Mapping[str, Mask | None]
    """Restricted columns: how they are masked; None means left out."""
    begin: Callable[[str], Draft]
    """Begins a draft, by name, that is never published."""
    salt: str
    max_rows: int
    """The most that may be written."""
    max_bytes: int
    may_handle: int | None = None
    """The most that may be looked at; None if any number may."""
    _written: WrittenRows | None = None
    _folders: int = 0
    _drafts: list[Draft] = field(default_factory=list)
    _payloads: "TemporaryDirectory[str]" = field(default_factory=lambda: TemporaryDirectory(prefix="clew-job-"))
    """Files on their way to sinks. They are bounded by the budget of the job."""

    def discard(self) -> None:
        """Remove everything that was written."""
        for draft in self._drafts:
            draft.abandon()
        self._payloads.cleanup()

    def filter(self, condition: PlannedExpression) -> None:
        """Keep the rows for which a condition is true."""
        self._change(filtered(self.rows, self.ended.expressing, condition))

    def take(self, count: int) -> None:
        """Keep the first rows that are not deleted."""
        self._change(taken(self.rows, count))

    def sample(self, count: int) -> None:
        """Keep a sample of the rows that are not deleted."""
        self._change(sample_of(self.rows, self.ended.run_id, count))

    def project(self, columns: Sequence[str]) -> None:
        """Keep some columns."""
        self.types = {name: self.types[name] for name in columns}
        self._change(self.rows)

    def describe(self, columns: Sequence[str]) -> dict[str, object]:
        """Statistics of columns; of all where none is named."""
        wanted = [name for name in (columns or self.types) if name in self._shown]
        return {"task": "describe"} | self._statistics(wanted).to_json()

    def histogram(self, column: str, bins: int) -> dict[str, object]:
        """How the values of a column are spread."""
        found = self._statistics([column], bins=bins).columns[0].histogram if column in self._shown else ()
        return {"task": "histogram", "column": column, "bins": encode(found)}

    def top(self, column: str, count: int) -> dict[str, object]:
        """The most frequent values of a column."""
        found = self._statistics([column], top=count).columns[0].top if column in self._shown else ()
        return {"task": "topk", "column": column, "values": encode(found)}

    def _statistics(self, names: Sequence[str], *, bins: int = 10, top: int = 5) -> Statistics:
        """Rows are counted where Spark computes them: there may be any number, unless the job sets a limit."""
        shown = [(name, self._shown[name]) for name in names]
        columns = [KeptColumn(name, self.hidden.get(name)) for name in names]
        view = view_rows(self.rows, columns, self.salt, self.ended.run_id)
        if self.may_handle is not None and view.limit(self.may_handle + 1).count() > self.may_handle:
            raise too_many_rows(self.may_handle)
        return statistics_in_spark(view, shown, bins=bins, top=top)

    def serialize(self, task: SerializeTask) -> Payload:
        """The rows as one file."""
        is_raw = task.mode == "raw"
        path = Path(self._payloads.name) / f"payload-{self._folders}.{task.format}"
        with questions() as asked:
            schema, batches = asked.batches(
                "SELECT * FROM (" + (self._raw() if is_raw else self._view()) + ") ORDER BY 1"
            )
            rows = self._write(path, schema, batches)
        file = _described(path, rows)
        self._require_bytes(file.size)
        columns = tuple(
            CapturedColumn(name, str(type_), str(mask) if (mask := self.hidden.get(name)) is not None else None)
            for name, type_ in self._shown.items()
        )
        return Payload(path, file, columns, is_raw)

    def _write(self, path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
        """Write rows as they come, and stop where they are too many bytes. Returns how many rows there are."""
        rows = 0
        with (
            pa.OSFile(str(path), "wb") as sink,
            (
                pq.ParquetWriter(sink, schema, compression="zstd")
                if path.suffix == ".parquet"
                else pa.ipc.new_file(sink, schema)
            ) as writer,
        ):
            for batch in batches:
                rows += batch.num_rows
                writer.write_batch(batch)
                self._require_bytes(sink.tell())
        return rows

    def _require_bytes(self, size: int) -> None:
        if size > self.max_bytes:
            problem = f"it would send {size:,} bytes, and may send {self.max_bytes:,}"
            raise UserError(BUDGET_EXCEEDED.anywhere(problem=problem))

    @property
    def _shown(self) -> dict[str, Type]:
        """The columns that are left and that may be seen. Masked values are texts."""
        return {
            name: type_ if name not in self.hidden else STRING
            for name, type_ in self.types.items()
            if self.hidden.get(name, STRING) is not None
        }

    def _change(self, rows: DataFrame) -> None:
        self.rows = rows
        self._written = None

    def _view(self) -> Sql:
        columns = "".join(f", {typed_column(name, type_)} AS {quoted(name)}" for name, type_ in self._shown.items())
        return (
            f"SELECT {row_id_of_ordinal(self.ended.run_id)} AS {quoted(ROW_ID)}{columns} FROM "
            + self._files()
            + f" WHERE NOT {DELETED}"
        )

    def _raw(self) -> Sql:
        columns = "".join(f", {typed_column(name, type_)} AS {quoted(name)}" for name, type_ in self._shown.items())
        return f"SELECT {ORDINAL}{columns}, {DELETED} FROM " + self._files()

    def _files(self) -> Sql:
        return parquet(self._on_disk().sources)

    def _draft(self, name: str) -> Draft:
        draft = self.begin(name)
        self._drafts.append(draft)
        return draft

    def _on_disk(self) -> WrittenRows:
        if self._written is None:
            self._folders += 1
            columns = [KeptColumn(name, self.hidden.get(name)) for name in self._shown]
            chosen = raw_rows(self.rows, columns, self.salt).limit(self.max_rows + 1)
            self._written = write_rows(chosen, self._draft(f"rows-{self._folders}"))
            if self._written.rows > self.max_rows:
                raise too_many_rows(self.max_rows)
        return self._written


def too_many_rows(limit: int) -> UserError:
    """The error of a job that has more rows than it may."""
    return UserError(BUDGET_EXCEEDED.anywhere(problem=f"more rows than the {limit:,} that it may handle"))
