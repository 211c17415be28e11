"""Rows in quarantine on a terminal."""

from collections.abc import Iterator, Sequence

from clew.cli.views.page import headed, plain
from clew.cli.views.page_parts import PagePart, Styled
from clew.trace.quarantined import QuarantinedRow

_MOST = 200


def quarantine_page(rows: Sequence[QuarantinedRow]) -> Iterator[PagePart]:
    """A line for each problem of each row."""
    if not rows:
        yield Styled("no rows are in quarantine", style="dim")
        return
    yield headed(("dataset", "place", "column", "value", "reason"), list(_lines(rows[:_MOST])))
    more = len(rows) - _MOST
    if more > 0:
        yield Styled(f"{more:,} more rows; --json and --export have them all", style="dim")


def _lines(rows: Sequence[QuarantinedRow]) -> Iterator[list[PagePart]]:
    for row in rows:
        place = row.file if row.line is None else f"{row.file}, {row.unit} {row.line}"
        for problem in row.problems:
            value = row.record if problem.column is None else problem.value
            reason = problem.reason if row.correction is None else f"{problem.reason}; corrected in {row.correction}"
            cells = (row.dataset, place, problem.column or "", "" if value is None else value, reason)
            yield [plain(cell) for cell in cells]
