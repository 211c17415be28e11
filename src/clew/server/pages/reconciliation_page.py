"""Waterfalls from the source of a run to its outputs, in which each number leads to its rows."""

from clew.deferred import dataclass
from clew.server.pages import addresses, words
from clew.trace.reconciliation import Reconciliation, Waterfall, WaterfallLine

_WORDS = {
    "loaded": "Loaded",
    "appended": "Appended",
    "created": "Created",
    "updated": "Changed",
    "deleted": "Deleted",
    "left_out": "Left out by the selector",
    "written": "Written",
    "unfit": "Not as the dataset says",
    "quarantined": "In quarantine",
}


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A number of a waterfall, and the address of the rows behind it."""

    what: str
    name: str
    seq: str
    rows: str
    amount: str
    address: str


@dataclass(frozen=True, slots=True)
class ShownWaterfall:
    """A waterfall."""

    title: str
    group: str
    has_amounts: bool
    lines: tuple[ShownLine, ...]
    ties: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ReconciledOutput:
    """An output with its waterfalls."""

    seq: int
    name: str
    waterfalls: tuple[ShownWaterfall, ...]


@dataclass(frozen=True, slots=True)
class ReconciliationPage:
    """What came in and went out of a run."""

    run_address: str
    title: str
    period: str
    ties: bool
    outputs: tuple[ReconciledOutput, ...]


def reconciliation_page(found: Reconciliation, title: str, period: str) -> ReconciliationPage:
    """The page of a run."""
    outputs = tuple(
        ReconciledOutput(
            step.seq, step.name, tuple(_waterfall(found.run_id, each) for each in found.of_output(step.seq))
        )
        for step in found.outputs
    )
    return ReconciliationPage(addresses.run(found.run_id), words.isolated(title), period, found.ties, outputs)


def _waterfall(run_id: str, waterfall: Waterfall) -> ShownWaterfall:
    control = waterfall.control
    group = ", ".join(f"{name} = {words.cell(value).text}" for name, value in waterfall.key.items())
    return ShownWaterfall(
        title="Rows" if control is None else control.name,
        group=group,
        has_amounts=control is not None,
        lines=tuple(_line(run_id, waterfall, line) for line in waterfall.lines),
        ties=waterfall.ties,
        verdict=_verdict(waterfall),
    )


def _line(run_id: str, waterfall: Waterfall, line: WaterfallLine) -> ShownLine:
    behind, sign = waterfall.behind(line), "−" if line.goes_out else ""
    return ShownLine(
        what=_WORDS[line.what],
        name=line.name,
        seq=str(line.seq) if line.seq else "load",
        rows=f"{sign}{line.rows:,}" if line.rows else "0",
        amount="" if line.amount is None else f"{sign if line.amount > 0 else ''}{line.amount:,f}",
        address=addresses.rows(
            run_id, at=behind.at, where=behind.where, changed="1" if behind.step is not None else None
        ),
    )


def _verdict(waterfall: Waterfall) -> str:
    rows, amount = waterfall.difference
    if waterfall.ties:
        return f"ties, within {amount:+,f}" if amount else "ties"
    if waterfall.problem is not None:
        return waterfall.problem
    told = [f"{rows:+,} rows"] * bool(rows) + ([f"{amount:+,f}"] if amount else [])
    return f"does not tie: {' and '.join(told)}"
