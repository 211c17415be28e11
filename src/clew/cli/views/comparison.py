"""Two runs side by side on a terminal."""

from collections.abc import Iterable

from clew.change.bridge import BridgeCause, ChangeBridge
from clew.change.comparison import Amount, ColumnTotals, DifferingRow, RunComparison
from clew.change.impact import PlanImpact
from clew.change.sensitivity import Sensitivity
from clew.change.what_if import WhatIf
from clew.cli.views.page import headed, plain, stacked
from clew.cli.views.page_parts import PagePart, Stack, Styled
from clew.cli.views.trace import shown

_MOST_CAUSE_ROWS = 5
_WHAT_IF_WORDS = {"changed": "changed", "only_in_a": "gone", "only_in_b": "new"}
_WORDS = {"changed": ("changed", "yellow"), "only_in_a": ("only in A", "red"), "only_in_b": ("only in B", "green")}


def comparison_page(found: RunComparison) -> Stack:
    """What differs: counts, totals, and a page of rows."""
    parts: list[PagePart] = [_heading(found)]
    totals = [each for each in found.columns if each.has_totals]
    if totals:
        rows = [
            [
                plain(each.name),
                _number(each.total_a),
                _number(each.total_b),
                _number(each.difference, signed=True),
                Styled(f"{each.changed:,}"),
            ]
            for each in totals
        ]
        parts += [Styled(), headed(["total of", "A", "B", "difference", "rows changed"], rows)]
    if found.rows:
        parts += [Styled(), headed(["", "key", "columns"], list(map(_row, found.rows)), fixed=1)]
    parts += [Styled(line, style="dim") for line in _remarks(found)]
    return stacked(*parts)


def _heading(found: RunComparison) -> Stack:
    counts = found.counts
    return stacked(
        Styled.assemble(
            ("A ", "bold"),
            f"{found.run_a}  {found.point_a.seq} ",
            plain(found.point_a.name),
            f"  {counts.rows_a:,} rows",
        ),
        Styled.assemble(
            ("B ", "bold"),
            f"{found.run_b}  {found.point_b.seq} ",
            plain(found.point_b.name),
            f"  {counts.rows_b:,} rows",
        ),
        Styled(
            f"{counts.changed:,} changed, {counts.only_in_a:,} only in A, {counts.only_in_b:,} only in B, "
            f"{counts.same:,} the same",
            style="bold",
        ),
    )


def _row(row: DifferingRow) -> list[PagePart]:
    word, style = _WORDS[row.change]
    key = ", ".join(f"{name} {shown(value)}" for name, value in row.key.items())
    return [Styled(word, style=style), plain(key), _changes(row)]


def _changes(row: DifferingRow) -> Styled:
    pieces = list[str]()
    for name, each in row.columns.items():
        if row.change == "changed":
            pieces.append(f"{name} {shown(each.old)} -> {shown(each.new)}")
        else:
            pieces.append(f"{name} {shown(each.old if row.change == 'only_in_a' else each.new)}")
    return plain(", ".join(pieces))


def _remarks(found: RunComparison) -> Iterable[str]:
    yield from found.notes
    for names, where in ((found.columns_only_in_a, "A"), (found.columns_only_in_b, "B")):
        if names:
            yield f"only {where} has {', '.join(names)}"
    for each in found.not_compared:
        yield f"{each.column} is not compared: {each.because}"
    if found.next_offset is not None:
        yield f"more rows: --offset {found.next_offset}"


def _number(value: Amount | None, *, signed: bool = False) -> Styled:
    if value is None:
        return Styled()
    if isinstance(value, float):
        return Styled(f"{value:+g}" if signed else f"{value:g}", justify="right")
    return Styled(f"{value:+,f}" if signed and value else f"{value:,f}", justify="right")


def bridge_page(found: ChangeBridge) -> Stack:
    """From one value to the other, cause by cause."""
    rows: list[list[PagePart]] = [[Styled(f"{found.value_a:,f}", justify="right"), plain(f"A  {found.run_a}")]]
    for cause in found.causes:
        rows.append([Styled(f"{cause.amount:+,f}", justify="right"), plain(cause.title)])
        rows += [[Styled(), Styled(f"  {line}", style="dim")] for line in _cause_lines(cause)]
    rows.append([Styled(f"{found.value_b:,f}", justify="right"), plain(f"B  {found.run_b}")])
    parts: list[PagePart] = [headed([found.column, ""], rows)]
    if found.without_effect:
        parts.append(Styled(f"without effect: {'; '.join(found.without_effect)}", style="dim"))
    return stacked(*parts, *(Styled(note, style="dim") for note in found.notes))


def _cause_lines(cause: BridgeCause) -> Iterable[str]:
    if cause.interaction:
        yield f"{cause.alone:+,f} alone"
    yield from cause.details
    if cause.kind == "reference" and cause.row_count == 1:
        return  # its title says it all
    for row in cause.rows[:_MOST_CAUSE_ROWS]:
        key = ", ".join(f"{name} {shown(value)}" for name, value in row.key.items()) or "row"
        changes = ", ".join(f"{name} {shown(row.old.get(name))} -> {shown(value)}" for name, value in row.new.items())
        alone = "" if row.alone is None else f"  {row.alone:+,f} alone"
        yield f"{key} {row.change}{': ' + changes if row.change == 'changed' else ''}{alone}"
    if cause.row_count > _MOST_CAUSE_ROWS:
        yield f"{cause.row_count - _MOST_CAUSE_ROWS:,} more rows"


def what_if_page(found: WhatIf) -> Stack:
    """What would differ: totals that move, and a page of rows."""
    headline = f"{found.changed:,} rows would change, {found.gone:,} would go, {found.new:,} would come"
    parts: list[PagePart] = [Styled(headline, style="bold")]
    moved = [each for each in found.columns if each.has_totals and each.difference]
    if moved:
        parts += [Styled(), _moved_totals(moved, ("now", "then"))]
    if found.rows:
        parts += [Styled(), _supposed_rows(found)]
    parts.append(Styled(f"{found.evaluated:,} rows evaluated again", style="dim"))
    if found.next_offset is not None:
        parts.append(Styled(f"more rows: --offset {found.next_offset}", style="dim"))
    return stacked(*parts)


def _moved_totals(moved: Iterable[ColumnTotals], sides: tuple[str, str]) -> PagePart:
    rows = [
        [plain(each.name), _number(each.total_a), _number(each.total_b), _number(each.difference, signed=True)]
        for each in moved
    ]
    return headed(["total of", *sides, "difference"], rows)


def _supposed_rows(found: WhatIf) -> PagePart:
    lines = [[Styled(_WHAT_IF_WORDS[row.change]), *_row(row)[1:]] for row in found.rows]
    return headed(["", "key", "columns"], lines, fixed=1)


def impact_page(found: PlanImpact) -> Stack:
    """What an edited project would have made of a run."""
    differing = [each for each in found.steps if each.fate != "same"]
    headline = f"{found.project} as edited, on run {found.run_id} for {found.period}"
    parts: list[PagePart] = [plain(headline)]
    parts += [plain(each.told) for each in differing] or [Styled("no operation differs")]
    parts.append(Styled(f"{found.reused} of {len(found.steps)} steps come before the first difference", style="dim"))
    for output in found.outputs:
        sentence = f"{output.seq} {output.name}: {output.sentence}"
        parts += [Styled(), Styled.assemble(plain(sentence))]
        if output.moved:
            parts.append(_moved_totals(output.moved, ("run", "edited")))
        if output.difference is not None and output.difference.rows:
            parts.append(_supposed_rows(output.difference))
            hidden = output.difference.changed + output.difference.gone + output.difference.new
            more = hidden - len(output.difference.rows)
            parts += [Styled(f"{more:,} more rows", style="dim")] if more else []
    parts += [plain(each) for each in found.controls]
    parts += [plain(each.sentence) for each in found.broken]
    parts += [Styled.assemble(("not within the limit: ", "red"), plain(each)) for each in found.failed]
    return stacked(*parts)


def sensitivity_page(found: Sensitivity, limit: int) -> Stack:
    """The reference data that a total hangs on."""
    rows: list[list[PagePart]] = [
        [
            plain(each.dataset),
            plain(", ".join(f"{name} {shown(value)}" for name, value in each.key.items())),
            plain(each.column),
            Styled(f"{each.value:,f}", justify="right"),
            Styled(f"{each.moved_to:,f}", justify="right"),
            _number(each.difference, signed=True),
            Styled(f"{each.slope:,.2f}", justify="right"),
            Styled(f"{each.rows:,}", justify="right"),
        ]
        for each in found.effects[:limit]
    ]
    columns = ["dataset", "row", "column", "value", "moved to", f"total of {found.column}", "per unit", "rows"]
    parts: list[PagePart] = [headed(columns, rows)] if rows else [Styled("the total hangs on no reference data")]
    more = len(found.effects) - len(rows)
    parts += [Styled(f"{more:,} more have an effect: --limit N", style="dim")] if more else []
    parts.append(Styled(f"{found.tried:,} values tried", style="dim"))
    if found.not_tried:
        told = f"{found.not_tried:,} values that fewer rows have looked up were not tried"
        parts.append(Styled(told, style="dim"))
    if found.not_looked_up:
        told = f"{found.not_looked_up:,} values were looked up by no row that the total rests on"
        parts.append(Styled(told, style="dim"))
    return stacked(*parts)
