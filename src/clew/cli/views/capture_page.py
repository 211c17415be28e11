"""Captures on a terminal: lists, statistics with small plots, rows, differences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from clew.cli.moments import local_minute
from clew.cli.run_site import short
from clew.cli.views.capture_lines import kept, status
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.debug.diffing import CaptureDiff, ColumnPair, RowChange
from clew.debug.manifests import Manifest
from clew.debug.records import CaptureRecord
from clew.debug.report import cut, deleted_rows, shown, sparkline
from clew.debug.statistics import ColumnStatistics, Statistics
from clew.trace import html_tables

_WIDEST_VALUE, _WIDEST_TABLE = 24, 118


def capture_table(records: Iterable[CaptureRecord]) -> RenderableType:
    """Captures, one in a line."""
    rows = [
        [
            plain(each.capture_id),
            plain(each.breakpoint),
            plain(short(each.run_id)),
            status(each),
            plain(kept(each)),
            plain(local_minute(each.expires_at)),
        ]
        for each in records
    ]
    return headed(["capture", "breakpoint", "run", "status", "kept", "expires"], rows, fixed=2)


def capture_page(record: CaptureRecord, manifest: Manifest, statistics: Statistics) -> Iterator[RenderableType]:
    """What a capture is, and its columns in numbers."""
    yield heading(f"capture {record.capture_id}")
    left_out = ", ".join(f"{each.column} ({each.reason})" for each in manifest.left_out)
    masked = ", ".join(f"{each.name} ({each.mask})" for each in manifest.columns if each.mask)
    deleted = deleted_rows(manifest, statistics)
    yield grid(
        [
            [label("at"), plain(f"{manifest.breakpoint}, step {manifest.seq}")],
            [label("run"), plain(f"{manifest.run_id}, {manifest.project} for {manifest.period}")],
            [label("kept"), plain(kept(record))],
            *([[label("deleted"), plain(f"{deleted:,}, not counted below")]] if deleted else []),
            *([[label("without"), plain(left_out)]] if left_out else []),
            *([[label("masked"), plain(masked)]] if masked else []),
            [label("taken"), plain(f"{local_minute(manifest.created_at)}, in {manifest.write_ms:,} ms")],
            [label("expires"), plain(local_minute(manifest.expires_at))],
        ]
    )
    yield plain("")
    yield headed(
        ["column", "type", "nulls", "distinct", "min", "max", "mean", "spread"],
        [_column_row(each) for each in statistics.columns],
    )
    yield from _quantiles(statistics)


def _quantiles(statistics: Statistics) -> Iterator[RenderableType]:
    """What share of the values of numbers and days lies below which: a table of its own, which would be too wide."""
    found = [(each.name, each.quantiles) for each in statistics.columns if each.quantiles]
    if found:
        shares = list(found[0][1])
        yield plain("")
        yield headed(
            ["quantiles", *(f"{int(share[1:])} %" for share in shares)],
            [[plain(name), *(plain(shown(values[share])) for share in shares)] for name, values in found],
        )


def _column_row(column: ColumnStatistics) -> list[RenderableType]:
    return [
        plain(column.name),
        plain(column.type),
        plain(f"{column.nulls:,}"),
        plain(f"{column.distinct:,}"),
        plain(cut(shown(column.min), _WIDEST_VALUE)),
        plain(cut(shown(column.max), _WIDEST_VALUE)),
        plain(shown(column.mean) if column.mean is not None else ""),
        _spread(column),
    ]


def _spread(column: ColumnStatistics) -> RenderableType:
    if column.histogram:
        return Text(sparkline(each.count for each in column.histogram), style="cyan")
    return plain(", ".join(f"{cut(shown(each.value), 12)} {each.count:,}" for each in column.top[:2]))


def rows_table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> tuple[RenderableType, int]:
    """Rows as a table of as many columns as fit, and how many do not."""
    fitting, width = list[str](), 0
    for name in columns:
        width += 2 + max([len(name), *(min(_WIDEST_VALUE, len(_value(row[name]))) for row in rows)])
        if width > _WIDEST_TABLE and fitting:
            break
        fitting.append(name)
    cells = [[plain(cut(_value(row[name]), _WIDEST_VALUE)) for name in fitting] for row in rows]
    return headed(fitting, cells, fixed=len(fitting)), len(columns) - len(fitting)


def _value(value: object) -> str:
    return html_tables.shown(value)  # type: ignore[arg-type]


def diff_page(diff: CaptureDiff) -> Iterator[RenderableType]:
    """In what two captures differ."""
    yield heading(f"{short(diff.before)} ({diff.rows_before:,} rows) against {short(diff.after)} ({diff.rows_after:,})")
    yield grid(
        [
            [label("by"), plain(", ".join(diff.key))],
            [label("added"), plain(f"{diff.added:,}")],
            [label("removed"), plain(f"{diff.removed:,}")],
            [label("changed"), plain(f"{diff.changed:,}")],
            [label("same"), plain(f"{diff.same:,}")],
        ]
    )
    groups = (("added", diff.examples_added), ("removed", diff.examples_removed), ("changed", diff.examples_changed))
    for word, examples in groups:
        if examples:
            yield plain("")
            yield headed([word, "what"], [_change_row(each, word) for each in examples])
    differing = [pair for pair in diff.columns if _differs(pair)]
    if differing:
        yield plain("")
        yield headed(["column", "changed", "", "nulls", "distinct", "mean", "spread"], _pair_rows(differing))


def _change_row(change: RowChange, word: str) -> list[RenderableType]:
    key = ", ".join(cut(shown(value)) for value in change.called_by.values())
    if word == "changed":
        told = ", ".join(
            f"{name} {cut(shown(each.before))} -> {cut(shown(each.after))}" for name, each in change.columns.items()
        )
    else:
        side = {name: each.after if word == "added" else each.before for name, each in change.columns.items()}
        told = ", ".join(f"{name} {cut(shown(value))}" for name, value in side.items() if value is not None)
    return [plain(key), plain(told)]


def _differs(pair: ColumnPair) -> bool:
    return pair.changed > 0 or pair.before != pair.after


def _pair_rows(pairs: Iterable[ColumnPair]) -> Iterator[list[RenderableType]]:
    for pair in pairs:
        first = True
        for word, side in (("before", pair.before), ("after", pair.after)):
            name, changed = (pair.name, f"{pair.changed:,}") if first else ("", "")
            first = False
            if side is None:
                yield [plain(name), plain(changed), plain(word), plain("-"), plain("-"), plain("-"), plain("-")]
            else:
                mean = shown(side.mean) if side.mean is not None else ""
                yield [
                    plain(name),
                    plain(changed),
                    plain(word),
                    plain(f"{side.nulls:,}"),
                    plain(f"{side.distinct:,}"),
                    plain(mean),
                    _spread(side),
                ]
