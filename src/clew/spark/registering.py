"""Outputs as versions of datasets: immutable Parquet that other projects take as input."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.plan.plan import Plan
from clew.plan.steps import OutputStep
from clew.runs.registry import DatasetFile, DatasetRegistry, Registration
from clew.spark.narrow import Expressing
from clew.spark.parts import write_part
from clew.spark.publishing import output_rows
from clew.spark.sql import quoted
from clew.trace.layout import ORDINAL, Part

ORIGIN = "__origin"
"""The ordinal that a row had in the run that registered it, which leads an explanation across projects."""


class Registrar(Protocol):
    """Makes outputs into versions of datasets."""

    def register(self, rows: DataFrame, step: OutputStep, expressing: Expressing) -> int:
        """Keep the rows of an output as the next version of its dataset, once for each run and step."""
        ...


@dataclass(frozen=True, slots=True)
class StorageRegistrar:
    """Keeps registered rows below the storage root, and versions in a registry."""

    run_id: str
    plan: Plan
    period: str
    root: Path
    registry: DatasetRegistry

    def register(self, rows: DataFrame, step: OutputStep, expressing: Expressing) -> int:
        """Keep the rows of an output as the next version of its dataset, once for each run and step."""
        assert step.registers is not None  # noqa: S101 - the caller asks for a registration
        types = {column.name: str(column.type) for column in self.plan.columns_after(step.seq)}
        kept = [(name, types[name]) for name in step.columns if name in types]
        if "_period" in step.columns:
            kept.append(("_period", "string"))
        chosen = output_rows(rows, step, expressing).select(
            *(quoted(name) for name, _ in kept), F.col(ORDINAL).alias(ORIGIN)
        )
        folder = f"datasets/{step.registers}/{self.run_id}-{step.seq}"
        part = Part(kind="input", name=step.registers, files=(), columns=tuple(kept), seq=step.seq)
        written = write_part(chosen, self.root, folder, part)
        registration = Registration(
            dataset=step.registers,
            run_id=self.run_id,
            seq=step.seq,
            period=self.period,
            table=self.plan.input.table,
            columns=tuple(kept),
            files=tuple(
                DatasetFile(file.path, file.rows, file.size, file.sha256, self.period, self.run_id, step.seq)
                for file in written.files
            ),
            mode=step.mode,
        )
        return self.registry.register(registration).version
