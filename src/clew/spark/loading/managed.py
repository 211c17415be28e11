"""Datasets that Clew itself keeps: their files never change, so pinning one only names them."""

from collections.abc import Sequence
from dataclasses import replace

from clew.model import Period, PeriodTree
from clew.model.dataset import PERIOD_COLUMN
from clew.plan.datasets import DatasetUse
from clew.spark.loading.periods import periods_read
from clew.trace.layout import Part, PartFile


def pin_managed(
    use: DatasetUse,
    files: Sequence[PartFile],
    *,
    version: int,
    period: Period,
    periods: PeriodTree,
    first_file_ordinal: int,
) -> Part:
    """An input part over existing files, with ordinals of this run. Nothing is copied.

    Rows of other periods are in the files too: whoever reads the part applies `period_condition`.
    """
    numbered = (replace(file, ordinal=first_file_ordinal + position) for position, file in enumerate(files))
    read = ", ".join(periods_read(period, periods)) if use.temporal_mode == "period" else period.identifier
    return Part(
        kind="input",
        name=use.key,
        files=tuple(numbered),
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != PERIOD_COLUMN),
        details={
            "dataset": use.dataset_id,
            "version": version,
            "period": period.identifier,
            "periods": None if use.temporal_mode == "none" else read,
            "format": "managed",
        },
    )
