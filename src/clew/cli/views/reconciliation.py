"""Waterfalls from source to output on a terminal."""

from collections.abc import Callable, Iterator, Sequence
from shlex import quote

from clew.cli.formatting import short
from clew.cli.views.page import headed, heading, plain
from clew.cli.views.page_parts import PagePart, Styled
from clew.cli.views.trace import shown
from clew.trace.reconciliation import Reconciliation, Waterfall, WaterfallLine

_WORDS = {
    "loaded": "loaded",
    "appended": "appended",
    "created": "created",
    "updated": "changed",
    "deleted": "deleted",
    "left_out": "left out",
    "written": "written",
    "unfit": "unfit",
    "quarantined": "in quarantine",
}


def reconciliation_page(found: Reconciliation, command: Callable[[str], str]) -> Iterator[PagePart]:
    """All outputs, each with its waterfalls, and how to see the rows behind a number."""
    for output in found.outputs:
        yield heading(f"{output.seq} {output.name}")
        for waterfall in found.of_output(output.seq):
            yield from _waterfall(waterfall)
    if not found.waterfalls:
        yield Styled("the run has written no output", style="dim")
        return
    behind = command(f"trace {short(found.run_id)} --step SEQ")
    yield Styled(f"`{behind}` shows the rows that a step created, changed or deleted", style="dim")
    lines = ((each, line) for each in found.waterfalls for line in each.lines)
    left_out = next(((each, line) for each, line in lines if line.what == "left_out"), None)
    if left_out is not None:
        waterfall, line = left_out
        where = quote(waterfall.behind(line).where or "")
        yield Styled(f"`{command(f'trace {short(found.run_id)} --where {where}')}` shows rows left out", style="dim")


def _waterfall(waterfall: Waterfall) -> Iterator[PagePart]:
    control = waterfall.control
    title = "rows" if control is None else control.name
    group = ", ".join(f"{name} {shown(value)}" for name, value in waterfall.key.items())
    amounts = [f"{'amount':>24}"] if control is not None else []
    yield headed(["", "step", "", f"{'rows':>12}", *amounts], _lines(waterfall), fixed=4)
    yield Styled.assemble("  ", plain(title, "bold"), plain(f" {group}" if group else ""), ": ", _verdict(waterfall))


def _lines(waterfall: Waterfall) -> Sequence[list[Styled]]:
    return [_line(line) for line in waterfall.lines]


def _line(line: WaterfallLine) -> list[Styled]:
    sign = "-" if line.goes_out else "+" if line.what != "updated" else " "
    step = Styled("" if line.seq == 0 else str(line.seq), style="cyan")
    cells = [Styled(f"  {sign} {_WORDS[line.what]}"), step, plain(line.name), Styled(f"{line.rows:>12,}")]
    return cells if line.amount is None else [*cells, Styled(f"{line.amount:>24,f}")]


def _verdict(waterfall: Waterfall) -> Styled:
    rows, amount = waterfall.difference
    if waterfall.ties:
        within = f", within {amount:+,f}" if amount else ""
        return Styled(f"ties{within}", style="green")
    if waterfall.problem is not None:
        return plain(waterfall.problem, "red")
    told = [f"{rows:+,} rows"] * bool(rows) + ([f"{amount:+,f}"] if amount else [])
    return Styled(f"does not tie: {' and '.join(told)}", style="red")
