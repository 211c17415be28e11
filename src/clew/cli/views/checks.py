"""What checks found, on a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.cli.formatting import short
from clew.cli.views.page import headed, heading, plain
from clew.cli.views.page_parts import PagePart, Styled
from clew.cli.views.trace import found_page
from clew.plan import Plan
from clew.privacy.seen_checks import CheckOutcome
from clew.trace.results import FoundRows

if TYPE_CHECKING:
    from clew.api.data_check import DataCheck

_STYLES = {"passed": "green", "failed": "red", "warned": "yellow", "quarantined": "yellow", "not decided": "dim"}
_MARKS = {"passed": "✓", "failed": "✗", "warned": "!", "quarantined": "q", "not decided": "-"}


def checks_page(
    outcomes: Sequence[CheckOutcome],
    failing: Mapping[str, FoundRows],
    run_id: str,
    plan: Plan | None,
    command: Callable[[str], str],
) -> Iterator[PagePart]:
    """All checks of a run, and the rows that fail where they were asked for."""
    if not outcomes:
        yield Styled("the run has no checks", style="dim")
        return
    yield headed(["outcome", "step", "check", f"{'failing':>9}", ""], [_line(each) for each in outcomes], fixed=2)
    for name, rows in failing.items():
        yield heading(name)
        if rows.rows and plan is not None:
            yield found_page(rows, plan)
        else:
            yield Styled("  no rows", style="dim")
    if not failing and any(each.outcome not in {"passed", "not decided"} for each in outcomes):
        yield Styled(f"`{command(f'checks {short(run_id)} --rows')}` shows the rows that fail", style="dim")


def data_check_page(found: "DataCheck") -> Iterator[PagePart]:
    """What the checks of a dataset found in its data."""
    left_out = f", {found.quarantined:,} in quarantine" if found.quarantined else ""
    emptied = f", {found.values_emptied:,} values taken for NULL" if found.values_emptied else ""
    yield plain(f"{found.dataset}, period {found.period}: {found.rows:,} rows{left_out}{emptied} from {found.source}")
    if not found.outcomes:
        yield Styled("the dataset declares no checks", style="dim")
        return
    columns = ["outcome", "check", f"{'failing':>9}", "", "first row that fails"]
    yield headed(columns, [_data_line(each, found.places) for each in found.outcomes], fixed=1)


def _data_line(each: CheckOutcome, places: Mapping[str, str]) -> list[Styled]:
    outcome, _, name, count, message = _line(each)
    return [outcome, name, count, message, plain(places.get(each.check.name, ""))]


def _line(each: CheckOutcome) -> list[Styled]:
    rows = each.result.failed_rows if each.result is not None else None
    message = each.result.message if each.result is not None else ""
    step = "load" if each.at == 0 else str(each.at)
    count = "" if rows is None else f"{rows:>9,}"
    return [
        Styled(each.outcome, style=_STYLES[each.outcome]),
        Styled(step, style="cyan"),
        plain(each.check.name),
        Styled(count),
        plain(message, "dim"),
    ]


def history_table(runs: Sequence[tuple[str, str, Sequence[CheckOutcome]]]) -> PagePart:
    """One line for each check, one mark for each run, newest first."""
    names = dict.fromkeys(each.check.name for _, _, outcomes in runs for each in outcomes)
    found = [{each.check.name: each.outcome for each in outcomes} for _, _, outcomes in runs]
    lines = [[plain(name), *(_mark(outcomes.get(name, "not decided")) for outcomes in found)] for name in names]
    return headed(["check", *(f"{short(run_id)} {period}" for run_id, period, _ in runs)], lines)


def _mark(outcome: str) -> Styled:
    return Styled(f"{_MARKS[outcome]} {outcome}", style=_STYLES[outcome])
