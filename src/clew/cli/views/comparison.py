"""Two runs side by side on a terminal."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from clew.change.bridge import BridgeCause, ChangeBridge
from clew.change.comparison import Amount, ColumnTotals, DifferingRow, RunComparison
from clew.change.impact import PlanImpact
from clew.change.sensitivity import Sensitivity
from clew.change.what_if import WhatIf
from clew.cli.views.page import headed, plain
from clew.cli.views.trace import shown

_MOST_CAUSE_ROWS = 5
_WHAT_IF_WORDS = {"changed": "changed", "only_in_a": "gone", "only_in_b": "new"}
_WORDS = {"changed": ("changed", "yellow"), "only_in_a": ("only in A", "red"), "only_in_b": ("only in B", "green")}


def comparison_page(found: RunComparison) -> Group:
    """What differs: counts, totals, and a page of rows."""
    parts: list[RenderableType] = [_heading(found)]
    totals = [each for each in found.columns if each.has_totals]
    if totals:
        rows = [
            [
                plain(each.name),
                _number(each.total_a),
                _number(each.total_b),
                _number(each.difference, signed=True),
                Text(f"{each.changed:,}"),
            ]
            for each in totals
        ]
        parts += [Text(), headed(["total of", "A", "B", "difference", "rows changed"], rows)]
    if found.rows:
        parts += [Text(), headed(["", "key", "columns"], list(map(_row, found.rows)), fixed=1)]
    parts += [Text(line, style="dim") for line in _remarks(found)]
    return Group(*parts)


def _heading(found: RunComparison) -> Group:
    counts = found.counts
    return Group(
        Text.assemble(
            ("A ", "bold"),
            f"{found.run_a}  {found.point_a.seq} ",
            plain(found.point_a.name),
            f"  {counts.rows_a:,} rows",
        ),
        Text.assemble(
            ("B ", "bold"),
            f"{found.run_b}  {found.point_b.seq} ",
            plain(found.point_b.name),
            f"  {counts.rows_b:,} rows",
        ),
        Text(
            f"{counts.changed:,} changed, {counts.only_in_a:,} only in A, {counts.only_in_b:,} only in B, "
            f"{counts.same:,} the same",
            style="bold",
        ),
    )


def _row(row: DifferingRow) -> list[RenderableType]:
    word, style = _WORDS[row.change]
    key = ", ".join(f"{name} {shown(value)}" for name, value in row.key.items())
    return [Text(word, style=style), plain(key), _changes(row)]


def _changes(row: DifferingRow) -> Text:
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


def _number(value: Amount | None, *, signed: bool = False) -> Text:
    if value is None:
        return Text()
    if isinstance(value, float):
        return Text(f"{value:+g}" if signed else f"{value:g}", justify="right")
    return Text(f"{value:+,f}" if signed and value else f"{value:,f}", justify="right")


def bridge_page(found: ChangeBridge) -> Group:
    """From one value to the other, cause by cause."""
    rows: list[list[RenderableType]] = [[Text(f"{found.value_a:,f}", justify="right"), plain(f"A  {found.run_a}")]]
    for cause in found.causes:
        rows.append([Text(f"{cause.amount:+,f}", justify="right"), plain(cause.title)])
        rows += [[Text(), Text(f"  {line}", style="dim")] for line in _cause_lines(cause)]
    rows.append([Text(f"{found.value_b:,f}", justify="right"), plain(f"B  {found.run_b}")])
    parts: list[RenderableType] = [headed([found.column, ""], rows)]
    if found.without_effect:
        parts.append(Text(f"without effect: {'; '.join(found.without_effect)}", style="dim"))
    return Group(*parts, *(Text(note, style="dim") for note in found.notes))


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


def what_if_page(found: WhatIf) -> Group:
    """What would differ: totals that move, and a page of rows."""
    headline = f"{found.changed:,} rows would change, {found.gone:,} would go, {found.new:,} would come"
    parts: list[RenderableType] = [Text(headline, style="bold")]
    moved = [each for each in found.columns if each.has_totals and each.difference]
    if moved:
        parts += [Text(), _moved_totals(moved, ("now", "then"))]
    if found.rows:
        parts += [Text(), _supposed_rows(found)]
    parts.append(Text(f"{found.evaluated:,} rows evaluated again", style="dim"))
    if found.next_offset is not None:
        parts.append(Text(f"more rows: --offset {found.next_offset}", style="dim"))
    return Group(*parts)


def _moved_totals(moved: Iterable[ColumnTotals], sides: tuple[str, str]) -> RenderableType:
    rows = [
        [plain(each.name), _number(each.total_a), _number(each.total_b), _number(each.difference, signed=True)]
        for each in moved
    ]
    return headed(["total of", *sides, "difference"], rows)


def _supposed_rows(found: WhatIf) -> RenderableType:
    lines = [[Text(_WHAT_IF_WORDS[row.change]), *_row(row)[1:]] for row in found.rows]
    return headed(["", "key", "columns"], lines, fixed=1)


def impact_page(found: PlanImpact) -> Group:
    """What an edited project would have made of a run."""
    differing = [each for each in found.steps if each.fate != "same"]
    headline = f"{found.project} as edited, on run {found.run_id} for {found.period}"
    parts: list[RenderableType] = [plain(headline)]
    parts += [plain(each.told) for each in differing] or [Text("no operation differs")]
    parts.append(Text(f"{found.reused} of {len(found.steps)} steps come before the first difference", style="dim"))
    for output in found.outputs:
        sentence = f"{output.seq} {output.name}: {output.sentence}"
        parts += [Text(), Text.assemble(plain(sentence))]
        if output.moved:
            parts.append(_moved_totals(output.moved, ("run", "edited")))
        if output.difference is not None and output.difference.rows:
            parts.append(_supposed_rows(output.difference))
            hidden = output.difference.changed + output.difference.gone + output.difference.new
            more = hidden - len(output.difference.rows)
            parts += [Text(f"{more:,} more rows", style="dim")] if more else []
    parts += [plain(each) for each in found.controls]
    parts += [plain(each.sentence) for each in found.broken]
    parts += [Text.assemble(("not within the limit: ", "red"), plain(each)) for each in found.failed]
    return Group(*parts)


def sensitivity_page(found: Sensitivity, limit: int) -> Group:
    """The reference data that a total hangs on."""
    rows: list[list[RenderableType]] = [
        [
            plain(each.dataset),
            plain(", ".join(f"{name} {shown(value)}" for name, value in each.key.items())),
            plain(each.column),
            Text(f"{each.value:,f}", justify="right"),
            Text(f"{each.moved_to:,f}", justify="right"),
            _number(each.difference, signed=True),
            Text(f"{each.slope:,.2f}", justify="right"),
            Text(f"{each.rows:,}", justify="right"),
        ]
        for each in found.effects[:limit]
    ]
    columns = ["dataset", "row", "column", "value", "moved to", f"total of {found.column}", "per unit", "rows"]
    parts: list[RenderableType] = [headed(columns, rows)] if rows else [Text("the total hangs on no reference data")]
    more = len(found.effects) - len(rows)
    parts += [Text(f"{more:,} more have an effect: --limit N", style="dim")] if more else []
    parts.append(Text(f"{found.tried:,} values tried", style="dim"))
    if found.not_tried:
        told = f"{found.not_tried:,} values that fewer rows have looked up were not tried"
        parts.append(Text(told, style="dim"))
    if found.not_looked_up:
        told = f"{found.not_looked_up:,} values were looked up by no row that the total rests on"
        parts.append(Text(told, style="dim"))
    return Group(*parts)
