"""Outputs as versions of datasets: immutable Parquet that other projects take as input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from clew.definitions import PeriodTree
from clew.diagnostics import UserError
from clew.diagnostics.codes.project import REGISTRATION_CONFLICT
from clew.engine.expressing import Expressing
from clew.engine.names import named
from clew.engine.operations.output import output_rows
from clew.engine.parts import write_part
from clew.engine.sql import quoted
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.runs.leases import Lease
from clew.runs.registry import DatasetFile, DatasetRegistry, DatasetVersion, Registration
from clew.storage.layout import registered_folder
from clew.storage.parts import ORDINAL, ORIGIN, TRACE_ID, Part
from clew.storage.root import StorageRoot


def carried_columns(step: OutputStep) -> list[str]:
    """The system columns that the rows of a registered dataset keep.

    Those that the output writes, and `_deleted` wherever rows may be deleted, so that they do not come back alive.
    """
    carried = list[str](name for name in ("_period", "_labels") if name in step.columns)
    return [*carried, "_deleted"] if step.include_deleted else carried


class Registrar(Protocol):
    """Makes outputs into versions of datasets."""

    def prepare(
        self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: Lease | None
    ) -> Callable[[], DatasetVersion | None]:
        """Keep the rows of an output, and give what makes them the next version of its dataset.

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

    def prepare(
        self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: Lease | None
    ) -> Callable[[], DatasetVersion | None]:
        """Keep the rows of an output, and give what makes them the next version of its dataset."""
        assert step.registers is not None  # noqa: S101 - the caller asks for a registration
        for version in self.registry.versions(step.registers):
            if (version.run_id, version.seq) == (self.run_id, step.seq):
                made = version
                return lambda: made
        self._require_period_of_its_own(step, step.registers)
        registration = self._kept(rows, step, step.registers, expressing)
        return lambda: self.registry.register(registration, lease)

    def _require_period_of_its_own(self, step: OutputStep, dataset: str) -> None:
        """A month whose rows are already in the file of their quarter would be in the dataset twice."""
        versions = self.registry.versions(dataset)
        above = {each.identifier for each in self.periods.ancestors(self.period)}
        taken = next((file for file in versions[0].files if file.period in above), None) if versions else None
        if taken is None or step.mode == "append":
            return
        problem = f'version {versions[0].version} of the dataset "{dataset}" has the rows of {taken.period}'
        problem = f"{problem}, and {self.period} is part of it: its rows would be in the dataset twice"
        hint = f"run the project for {taken.period} again, or register the output under another name"
        raise UserError(REGISTRATION_CONFLICT.at(step.place, problem=problem, hint=hint))

    def _kept(self, rows: DataFrame, step: OutputStep, dataset: str, expressing: Expressing) -> Registration:
        types = {column.name: str(column.type) for column in self.plan.columns_after(step.seq)}
        kept = [(name, types[name]) for name in step.columns if name in types]
        kept += [(name, str(SYSTEM_COLUMNS[name])) for name in carried_columns(step)]
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
            covers=tuple(each.identifier for each in self.periods.descendants(self.period)),
        )
