"""Adjustments on a terminal."""

from collections.abc import Iterator, Sequence

from clew.cli.views.page import grid, plain
from clew.cli.views.page_parts import PagePart, Stack, Styled
from clew.definitions.adjustment_columns import OLD
from clew.explain.applied_adjustments import APPLIED, Adjustment
from clew.trace.results import shown

_MOST = 200


def adjustments_page(found: Sequence[Adjustment]) -> Iterator[PagePart]:
    """A block for each adjustment: what it changes, and below it why and by whom."""
    if not found:
        yield Styled("no adjustments are in force", style="dim")
        return
    yield grid((plain(each.name, "bold"), plain(each.status, _colour(each)), _about(each)) for each in found[:_MOST])
    more = len(found) - _MOST
    if more > 0:
        yield Styled(f"{more:,} more adjustments; --json has them all", style="dim")


def _colour(each: Adjustment) -> str:
    return "green" if each.status == APPLIED else "red"


def _about(each: Adjustment) -> PagePart:
    end = "" if each.valid_to is None else f" until {shown(each.valid_to)}"
    approved = "approved by no one" if each.approved_by is None else f"approved by {shown(each.approved_by)}"
    place = each.source.description or each.source.file
    line = f" {each.source.unit} {each.source.line}" if each.source.line is not None else ""
    return Stack(
        [
            plain(f"{each.action} {', '.join(_values(each))}"),
            plain(f"{shown(each.reason)}; made by {shown(each.made_by)}, {approved}"),
            plain(f"in force from {shown(each.valid_from)}{end}; {each.dataset}, {place}{line}", "dim"),
        ]
    )


def _values(each: Adjustment) -> Iterator[str]:
    for name, value in each.values.items():
        old = each.old.get(f"{OLD}{name}")
        yield f"{name} {shown(value)}" if old is None else f"{name} {shown(old)} -> {shown(value)}"
