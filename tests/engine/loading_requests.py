"""Requests to pin datasets, as tests write them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from clew.definitions import DatabaseDatasource, Datasource, FilesDatasource, Period, PeriodTree
from clew.definitions.calendar import Calendar, Generate, periods_of
from clew.definitions.datasource import DatabaseOptions, FilesOptions
from clew.diagnostics import UserError
from clew.engine.loading import Pinned, PinRequest, TableReader, pin
from clew.engine.parts import read_part
from clew.engine.sql import spark_type
from clew.events.artifacts import key_of_part
from clew.lang.types import parse_type
from clew.plan.datasets import DatasetColumn, DatasetUse, TemporalModeName
from clew.plan.file_rules import FileRules
from clew.plan.resolution import ResolvedSource
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, Part
from clew.storage.roots import storage_at

CALENDAR = Calendar(id="fiscal", name="fiscal", generate=Generate(first_year=2025, last_year=2026))
PERIODS = PeriodTree(periods_of(CALENDAR))

_TEMPORAL = {
    "period": (DatasetColumn("_period", parse_type("string"), nullable=False),),
    "bitemporal": (
        DatasetColumn("_period_from", parse_type("date"), nullable=False),
        DatasetColumn("_period_to", parse_type("date")),
    ),
    "none": (),
}


def period(identifier: str) -> Period:
    found = PERIODS.period(identifier)
    assert found is not None
    return found


def use(
    columns: str | Sequence[DatasetColumn],
    mode: TemporalModeName = "none",
    key: Sequence[str] = (),
    name: str = "things",
) -> DatasetUse:
    """A dataset; columns as "name type, name type!", where ! means that a value must be there."""
    if isinstance(columns, str):
        pairs = [text.split(maxsplit=1) for text in columns.split(";")]
        columns = [DatasetColumn(n, parse_type(t.removesuffix("!")), nullable=not t.endswith("!")) for n, t in pairs]
    declared = {column.name for column in columns}
    added = tuple(column for column in _TEMPORAL[mode] if column.name not in declared)
    return DatasetUse(name, name, name, mode, (*columns, *added), tuple(key))


def path_source(
    location: str,
    format_: str = "csv",
    options: Mapping[str, str] | None = None,
    of: str = "2026-01",
    *,
    tied: bool = False,
    rules: FileRules | None = None,
    corrections: str | None = None,
) -> ResolvedSource:
    rules = rules or FileRules()
    return ResolvedSource("files", "path", location, "the rule", of, tied, format_, options or {}, rules, corrections)


@dataclass
class Bench:
    """A workspace folder with data, and storage beside it."""

    spark: SparkSession
    folder: Path
    tables: TableReader | None = None
    database: DatabaseOptions | None = None
    secret: str = "not set"
    sources_root: str = "data"
    _runs: list[str] = field(default_factory=list)

    @property
    def data(self) -> Path:
        (self.folder / "data").mkdir(exist_ok=True)
        return self.folder / "data"

    @property
    def storage(self) -> Path:
        return self.folder / "storage"

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def pin(self, of: DatasetUse, *sources: ResolvedSource, at: str = "2026-01", first_file_ordinal: int = 0) -> Pinned:
        return pin(self.spark, self.request(of, sources, at, first_file_ordinal))

    def request(
        self, of: DatasetUse, sources: Sequence[ResolvedSource], at: str, first_file_ordinal: int = 0
    ) -> PinRequest:
        files = FilesDatasource(id="files", name="files", type="files", options=FilesOptions(root=self.sources_root))
        datasources: dict[str, Datasource] = {"files": files}
        if self.database is not None:
            datasources["warehouse"] = DatabaseDatasource(
                id="warehouse", name="w", type="database", credential_ref="secret://env/X", options=self.database
            )
        return PinRequest(
            use=of,
            sources=tuple(sources),
            datasources=datasources,
            workspace_root=self.folder,
            storage_root=storage_at(self.storage),
            run_id="run-1",
            period=period(at),
            periods=PERIODS,
            first_file_ordinal=first_file_ordinal,
            secrets=lambda _reference: self.secret,
            tables=self.tables,
        )

    def rows(self, pinned: Pinned, *columns: str) -> list[tuple[object, ...]]:
        """What was pinned, in the order of the files."""
        found = list[tuple[object, ...]]()
        for file in pinned.part.files:
            if file.view is None:
                frame = self.spark.read.parquet(str(self.storage / file.path))
            else:
                frame = self._as_seen(replace(pinned.part, files=(file,)))
            found += [tuple(row) for row in (frame.select(*columns) if columns else frame).collect()]
        return found

    def _as_seen(self, part: Part) -> DataFrame:
        typed = [(name, spark_type(parse_type(type_))) for name, type_ in part.columns]
        places = [("_period", "STRING"), (SOURCE_FILE, "STRING"), (SOURCE_LINE, "BIGINT")]
        return read_part(self.spark, storage_at(self.storage), part, [*typed, *places])

    def placed(self, pinned: Pinned, *columns: str) -> list[tuple[object, ...]]:
        """Files, lines and columns, sorted by place."""
        return sorted(self.rows(pinned, SOURCE_FILE, SOURCE_LINE, *columns), key=repr)

    def stored(self) -> dict[Path, bytes]:
        """Every file below the storage root."""
        return {path: path.read_bytes() for path in self.storage.rglob("*") if path.is_file()}

    def problem(
        self, of: DatasetUse, *sources: ResolvedSource, at: str = "2026-01", code: str = "SchemaMismatch"
    ) -> str:
        """The message of a refusal, which leaves nothing behind, and what was there before as it was."""
        before = self.stored()
        with pytest.raises(UserError) as caught:
            self.pin(of, *sources, at=at)
        assert caught.value.code == code, caught.value
        assert self.stored() == before
        message = caught.value.diagnostic.message
        assert "org.apache" not in message
        assert "Exception" not in message
        return message


def part_json(bench: Bench, pinned: Pinned) -> dict[str, object]:
    artifact = pinned.drafted.publish().artifact
    found: dict[str, object] = json.loads((bench.storage / key_of_part(artifact)).read_text())
    return found


def day(text: str) -> date:
    return date.fromisoformat(text)
