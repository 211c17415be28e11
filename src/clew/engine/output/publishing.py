"""Outputs: written to a staging place while the job runs, and published at once when everything else has succeeded.

So no reader sees half of an output, and nothing of a group of steps that fails is seen at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.expressing import Expressing
from clew.engine.operations.output import output_columns, output_rows
from clew.engine.output.files import Further, OutputFolder, discard_files, write_files
from clew.engine.output.tables import TableOutputs
from clew.engine.parts import row_count
from clew.plan.operations import OutputStep


@dataclass(frozen=True, slots=True)
class Published:
    """An output that is in its place."""

    rows: int
    path: str | None = None
    table: str | None = None
    dataset: str | None = None
    dataset_version: int | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """An output that is written but not visible yet."""

    publish: Callable[[], Published]
    discard: Callable[[], None] = lambda: None
    """Deletes it, where something beside it has failed."""


class Publisher(Protocol):
    """Writes the output of a step to where it belongs."""

    def takes_further_rows(self, step: OutputStep) -> bool:
        """Whether an output can be read and added to before it is published."""
        ...

    def prepare(
        self, rows: DataFrame, step: OutputStep, expressing: Expressing, further: Further | None = None
    ) -> Pending:
        """Write the rows that the step selects to staging, and then those derived from what was written."""
        ...


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """Where the files of an output go."""

    path: Path
    shown: str
    """The path as the user knows it."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options of the format, with the values of secrets."""


@dataclass(frozen=True, slots=True)
class FilePublisher:
    """Publishes to files, and to tables through a writer."""

    run_id: str
    target_of: Callable[[OutputStep], OutputTarget | None]
    """The place of a step's files; None where it goes to a table."""
    tables: TableOutputs | None = None

    def takes_further_rows(self, step: OutputStep) -> bool:
        """Whether an output is a folder of Parquet files."""
        target = self.target_of(step)
        return target is not None and _is_parquet(step) and not self._destination(step, target).is_one_file

    def prepare(
        self, rows: DataFrame, step: OutputStep, expressing: Expressing, further: Further | None = None
    ) -> Pending:
        """Write the rows that the step selects to staging, and then those derived from what was written."""

        def chosen(rows: DataFrame) -> DataFrame:
            return output_rows(rows, step, expressing).selectExpr(*output_columns(step, self.run_id))

        target = self.target_of(step)
        if target is None:
            return self._to_table(chosen(rows), step)

        def added(files: Sequence[Path]) -> tuple[DataFrame, bool]:
            assert further is not None  # noqa: S101 - it is asked for only then
            rows, is_small = further(files)
            return chosen(rows), is_small

        return self._to_files(chosen(rows), step, target, added if further is not None else None)

    def _destination(self, step: OutputStep, target: OutputTarget) -> OutputFolder:
        return OutputFolder(target.path, target.shown, f"{self.run_id}-{step.seq}", step, target.options)

    def _to_files(self, rows: DataFrame, step: OutputStep, target: OutputTarget, further: Further | None) -> Pending:
        destination = self._destination(step, target)
        tells_rows = _is_parquet(step)
        observation = Observation()
        counted = rows if tells_rows else rows.observe(observation, F.count(F.lit(1)).alias("rows"))
        publish = write_files(counted, destination, further)
        staged = row_count(str(path) for path in destination.staging.glob("part-*")) if tells_rows else None

        def published() -> Published:
            publish()
            return Published(int(observation.get["rows"]) if staged is None else staged, path=target.shown)

        return Pending(published, lambda: discard_files(destination))

    def _to_table(self, rows: DataFrame, step: OutputStep) -> Pending:
        if self.tables is None:
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem="tables cannot be written here"))
        staged = self.tables.stage(rows, step)

        def published() -> Published:
            staged.publish()
            return Published(staged.count, table=step.destination.table)

        return Pending(published, staged.discard)


def _is_parquet(step: OutputStep) -> bool:
    return (step.destination.format or "parquet") == "parquet"
