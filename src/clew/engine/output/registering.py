"""Outputs as versions of datasets: immutable Parquet that other projects take as input.

An output to a Delta or Iceberg table is registered as it is, where its rows say which they are: the dataset is then the
version that the output has committed, and nothing is copied.
"""

from collections.abc import Callable
from typing import Protocol

from pyspark.sql import DataFrame

from clew.deferred import dataclass
from clew.definitions import PeriodTree
from clew.diagnostics import UserError
from clew.diagnostics.codes.project import REGISTRATION_CONFLICT
from clew.engine.expressing import Expressing
from clew.engine.loading.sources import TablePolicy
from clew.engine.names import named
from clew.engine.operations.output import output_rows
from clew.engine.output.lake_tables import LAKE_FORMATS
from clew.engine.output.table_registration import registered_table
from clew.engine.parts import write_part
from clew.engine.sql import quoted
from clew.lang.types import Type
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.runs.datasets_now import require_period_of_its_own
from clew.runs.leases import Lease
from clew.runs.registry import (
    DatasetFile,
    DatasetRegistry,
    DatasetVersion,
    RegisteredTable,
    Registration,
    TableAuthor,
)
from clew.storage.layout import registered_folder
from clew.storage.parts import ORDINAL, ORIGIN, TRACE_ID, Part
from clew.storage.root import StorageRoot
from clew.storage.tables.table_versions import LocatedTable

Register = Callable[[LocatedTable | None], DatasetVersion | None]
"""Makes an output the next version of its dataset, given the table that it was committed to; None for files."""
_ROW_ID = "_row_id"


def carried_columns(step: OutputStep) -> list[str]:
    """The system columns that the rows of a registered dataset keep.

    Those that the output writes, and `_deleted` wherever rows may be deleted, so that they do not come back alive.
    """
    carried = list[str](name for name in ("_period", "_labels") if name in step.columns)
    return [*carried, "_deleted"] if step.include_deleted else carried


class Registrar(Protocol):
    """Makes outputs into versions of datasets."""

    def prepare(self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: Lease | None) -> Register:
        """Keep the rows of an output where a copy is needed, and give what makes them the next version of its dataset.

        That happens once for each run and step, and only while the lease of the run is good. The version is None where
        nothing is registered.
        """
        ...


@dataclass(frozen=True, slots=True)
class StorageRegistrar:
    """Keeps registered rows below the storage root, and versions in a registry."""

    run_id: str
    plan: Plan
    period: str
    periods: PeriodTree
    root: StorageRoot
    registry: DatasetRegistry
    policy: TablePolicy

    def prepare(self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: Lease | None) -> Register:
        """Keep the rows of an output where a copy is needed, and give what makes them the next version."""
        assert step.registers is not None  # noqa: S101 - the caller asks for a registration
        dataset = step.registers
        for version in self.registry.versions(dataset):
            if (version.run_id, version.seq) == (self.run_id, step.seq):
                made = version
                return lambda _table: made
        versions = self.registry.versions(dataset)
        require_period_of_its_own(step, self.run_id, self.period, self.periods, versions)

        def copied() -> DatasetVersion:
            self._require_no_tables(step, dataset)
            return self.registry.register(self._copy(rows, step, dataset, expressing), lease)

        def as_it_is(table: LocatedTable | None) -> DatasetVersion:
            lake = None if table is None else self._table(table, step)
            return copied() if lake is None else self.registry.register(self._reference(step, dataset, lake), lease)

        if self._may_stay_a_table(step, dataset):
            return as_it_is
        self._require_no_tables(step, dataset)
        registration = self._copy(rows, step, dataset, expressing)
        return lambda _table: self.registry.register(registration, lease)

    # Tables as they are

    def _may_stay_a_table(self, step: OutputStep, dataset: str) -> bool:
        """Whether a table can stand for the rows of an output: it says which rows they are, and nothing else counts."""
        if step.destination.format not in LAKE_FORMATS or self.policy.copies:
            return False
        if not {_ROW_ID, *carried_columns(step)} <= set(step.columns):
            return False
        versions = self.registry.versions(dataset)
        return not versions or not any(self._stays(step, file.period) for file in versions[0].files)

    def _require_no_tables(self, step: OutputStep, dataset: str) -> None:
        """Copied rows beside a table: no reader could tell which rows are in both."""
        versions = self.registry.versions(dataset)
        tables = versions[0].tables if versions else ()
        staying = next((each for each in tables if each.is_whole or self._stays(step, each.period)), None)
        if staying is None:
            return
        problem = f'version {versions[0].version} of the dataset "{dataset}" is the table {staying.shown}'
        problem = f"{problem}, and the rows of this output have to be copied, which no table can be mixed with"
        hint = "write the column _row_id to the table and leave `tables.inputs` as it is, or register another name"
        raise UserError(REGISTRATION_CONFLICT.at(step.place, problem=problem, hint=hint))

    def _stays(self, step: OutputStep, period: str) -> bool:
        """Whether what was registered for a period remains beside this output."""
        return step.mode in {"append", "upsert"} or period not in {self.period, *self._covered}

    @property
    def _covered(self) -> tuple[str, ...]:
        return tuple(each.identifier for each in self.periods.descendants(self.period))

    def _table(self, table: LocatedTable, step: OutputStep) -> RegisteredTable | None:
        author = TableAuthor(self.run_id, step.seq, self.period)
        newest = self.registry.versions(step.registers or "")[:1]
        known = {file: digest for version in newest for each in version.tables for file, digest in each.digests}
        is_whole = step.mode != "overwrite"
        return registered_table(table, author, self._columns(step), self.policy, known, is_whole=is_whole)

    def _reference(self, step: OutputStep, dataset: str, lake: RegisteredTable) -> Registration:
        keeps_others = step.mode in {"append", "upsert"}
        return Registration(
            dataset=dataset,
            run_id=self.run_id,
            seq=step.seq,
            period=self.period,
            table=self.plan.input.table,
            columns=tuple((name, str(type_)) for name, type_ in self._columns(step)),
            files=(),
            mode="append" if keeps_others else "overwrite",
            covers=self._covered,
            lake=lake,
        )

    # Copies

    def _columns(self, step: OutputStep) -> list[tuple[str, Type]]:
        """The columns of the dataset."""
        types = {column.name: column.type for column in self.plan.columns_after(step.seq)}
        kept = [(name, types[name]) for name in step.columns if name in types]
        return [*kept, *((name, SYSTEM_COLUMNS[name]) for name in carried_columns(step))]

    def _copy(self, rows: DataFrame, step: OutputStep, dataset: str, expressing: Expressing) -> Registration:
        kept = [(name, str(type_)) for name, type_ in self._columns(step)]
        chosen = output_rows(rows, step, expressing).selectExpr(
            *(quoted(name) for name, _ in kept), named(ORDINAL, ORIGIN), TRACE_ID
        )
        folder = registered_folder(dataset, self.run_id, step.seq)
        part = Part(kind="input", name=dataset, files=(), columns=tuple(kept), seq=step.seq)
        written = write_part(chosen, self.root, folder, part)
        return Registration(
            dataset=dataset,
            run_id=self.run_id,
            seq=step.seq,
            period=self.period,
            table=self.plan.input.table,
            columns=tuple(kept),
            files=tuple(
                DatasetFile(file.path, file.rows, file.size, file.sha256, self.period, self.run_id, step.seq)
                for file in written.part.files
            ),
            mode="append" if step.mode == "append" else "overwrite",
            covers=self._covered,
        )
