"""Rows that a run kept apart, with what is wrong with each and what one can do."""

from collections.abc import Sequence

from clew.deferred import dataclass
from clew.server.pages import addresses, words
from clew.trace.quarantined import QuarantinedRow

_MOST = 500


@dataclass(frozen=True, slots=True)
class RowKeptApart:
    """A row, where it stands, and its problems: column, value and reason."""

    dataset: str
    place: str
    problems: tuple[tuple[str, str, str], ...]
    correction: str | None


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """What was not loaded."""

    run_address: str
    title: str
    period: str
    rows: tuple[RowKeptApart, ...]
    count: str
    more: int
    export: str
    """The command that writes the rows to a file that can be corrected."""


def quarantine_page(run_id: str, rows: Sequence[QuarantinedRow], title: str, period: str) -> QuarantinePage:
    """The page of a run."""
    return QuarantinePage(
        run_address=addresses.run(run_id),
        title=words.isolated(title),
        period=period,
        rows=tuple(map(_shown, rows[:_MOST])),
        count=words.counted(len(rows), "row"),
        more=max(0, len(rows) - _MOST),
        export=f"clew quarantine {run_id[:8]} --export FILE",
    )


def _shown(row: QuarantinedRow) -> RowKeptApart:
    return RowKeptApart(
        dataset=row.dataset,
        place=row.file if row.line is None else f"{row.file}, {row.unit} {row.line:,}",
        problems=tuple(
            (each.column or "", (row.record if each.column is None else each.value) or "", each.reason)
            for each in row.problems
        ),
        correction=row.correction,
    )
