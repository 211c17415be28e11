"""Rows that are not as their dataset says, kept apart as a part of the run.

They are found in the pass that loads the others, and counted there. Where there are any, a second pass writes them; it
must find as many.
"""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.loading.checking import Checking, Findings
from clew.engine.loading.conversions import RawRows
from clew.engine.loading.corrections import Corrections
from clew.engine.loading.sources import PinRequest, mismatch, unavailable
from clew.engine.parts import DraftedPart, draft_part
from clew.plan.datasets import DatasetUse
from clew.plan.file_rules import FileRules
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import Part
from clew.storage.quarantine import CORRECTED, EMPTIED, EMPTIED_COLUMNS, FOUND
from clew.storage.text_values import is_value


def refused_rows(
    spark: SparkSession,
    request: PinRequest,
    checking: Checking,
    raws: Sequence[RawRows],
    findings: Findings,
    corrections: Corrections,
    unit: str,
    is_small: bool,
) -> DraftedPart:
    """Write the rows that the check refused as a part; one without files where there are none."""
    use = request.use
    part = Part(
        kind="quarantine",
        name=use.key,
        files=(),
        columns=tuple((column.name, str(column.type)) for column in use.columns if column.name != PERIOD_COLUMN),
        details={
            "dataset": use.dataset_id,
            "period": request.period.identifier,
            "rule": request.sources[0].rule,
            "places": unit,
            "texts": "\t".join(column.name for column in use.columns),
            FOUND: findings.rows_wrong,
            CORRECTED: len(corrections.rows),
        },
    )
    folder = part_folder(request.run_id, "quarantine", use.key)
    if not findings.rows_wrong:
        drafted = DraftedPart(draft(request.storage_root, folder), part)
    else:
        rows = checking.refused(raws, corrections.places(spark))
        drafted = draft_part(rows, request.storage_root, folder, part, is_small=is_small)
    try:
        _require_all(request, drafted, findings)
        corrections.require_in_quarantine(drafted)
    except BaseException:
        drafted.draft.abandon()
        raise
    return drafted


def _require_all(request: PinRequest, drafted: DraftedPart, findings: Findings) -> None:
    if sum(file.rows for file in drafted.part.files) != findings.rows_wrong:
        names = ", ".join(source.location for source in request.sources)
        raise unavailable(f"{names} changed while it was being read", "run again when no other process writes to it")


def with_emptied(part: Part, findings: Findings) -> Part:
    """An input with what is known about values that became NULL."""
    if not findings.emptied:
        return part
    columns = ", ".join(f"{column} {count}" for column, count in findings.emptied.items())
    return replace(
        part, details={**(part.details or {}), EMPTIED: sum(findings.emptied.values()), EMPTIED_COLUMNS: columns}
    )


def require_defaults(use: DatasetUse, rules: FileRules) -> None:
    """Raise where the default of a column is none of its values."""
    for column in use.columns:
        text = rules.of(column.name).default
        if text is not None and not is_value(text, column.type):
            problem = f'the default "{text}" of the column "{column.name}" of "{use.name}" is not {column.type}'
            raise mismatch(problem, "write dates as YYYY-MM-DD and numbers with a point, whatever the file has")
