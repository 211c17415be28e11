"""Statistics as a self-contained page: one file with its plots, which loads nothing from elsewhere."""

from collections.abc import Iterable, Iterator
from html import escape

from clew.captures.manifests import Manifest
from clew.captures.statistics import ColumnStatistics, Statistics, TopValue
from clew.trace.json_values import JsonValue

_WIDTH, _HEIGHT, _GAP = 260, 64, 2
_LONGEST_FACT = 60

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.3rem;margin:0 0 .2rem}p.sub{color:#5b6675;margin:.1rem 0 1.2rem}
table{border-collapse:collapse;margin:.4rem 0 1.6rem}
th,td{text-align:left;padding:.2rem .9rem .2rem 0;vertical-align:top}
th{font-weight:600;color:#5b6675}section{border-top:1px solid #dfe4ea;padding:.9rem 0}
h2{font-size:1rem;margin:0 0 .3rem}h2 small{color:#5b6675;font-weight:400}
.two{display:flex;flex-wrap:wrap;gap:2rem;align-items:flex-start}
svg rect{fill:#3b6ea8}svg text{font:10px system-ui,sans-serif;fill:#5b6675}.num{text-align:right}
@media (prefers-color-scheme:dark){body{background:#12161c;color:#dfe4ea}section{border-color:#2a323d}
svg rect{fill:#7fb0e8}th,p.sub,h2 small,svg text{color:#93a0b0;fill:#93a0b0}}
"""


def report_page(manifest: Manifest, statistics: Statistics) -> str:
    """The page of a capture."""
    title = escape(f"{manifest.breakpoint}, {manifest.period}")
    facts = [
        ("capture", manifest.capture_id),
        ("run", manifest.run_id),
        ("kept", f"{manifest.mode}, {manifest.rows:,} rows, {len(manifest.columns)} columns"),
        *([("deleted", f"{deleted:,}, not counted below")] if (deleted := deleted_rows(manifest, statistics)) else []),
        ("taken", manifest.created_at.isoformat(timespec="seconds")),
        ("expires", manifest.expires_at.isoformat(timespec="seconds")),
        *(
            (f"not {step.mode or ''}", f"{step.reason} {step.found:,} > {step.limit:,}")
            for step in manifest.degradations
        ),
        *((each.column, f"left out: {each.reason}") for each in manifest.left_out),
        *((each.name, f"masked: {each.mask}") for each in manifest.columns if each.mask is not None),
    ]
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts)
    columns = "".join(_section(column) for column in statistics.columns)
    subtitle = f'<p class="sub">{escape(manifest.project)}, step {manifest.seq}</p>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"{subtitle}<table>{rows}</table>{columns}</body></html>"
    )


def deleted_rows(manifest: Manifest, statistics: Statistics) -> int:
    """How many of the rows that were kept are deleted; statistics do not count these."""
    return manifest.rows - statistics.rows if manifest.keeps_rows else 0


def _section(column: ColumnStatistics) -> str:
    facts = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in _facts(column))
    plots = (bars(column) if column.histogram else "") + _frequencies(column)
    return (
        f"<section><h2>{escape(column.name)} <small>{escape(column.type)}</small></h2>"
        f'<div class="two"><table>{facts}</table>{plots}</div></section>'
    )


def _facts(column: ColumnStatistics) -> Iterator[tuple[str, str]]:
    yield "nulls", f"{column.nulls:,} of {column.rows:,}"
    yield "distinct", f"about {column.distinct:,}"
    for name, value in (("min", column.min), ("max", column.max), ("mean", column.mean)):
        if value is not None:
            yield name, cut(shown(value), _LONGEST_FACT)
    for name, value in (column.quantiles or {}).items():
        yield name, shown(value)


def bars(column: ColumnStatistics) -> str:
    """A histogram as a drawing."""
    most = max(each.count for each in column.histogram) or 1
    width = _WIDTH / len(column.histogram)
    drawn = "".join(
        f'<rect x="{index * width:.1f}" y="{_HEIGHT - each.count / most * _HEIGHT:.1f}" width="{width - _GAP:.1f}" '
        f'height="{each.count / most * _HEIGHT:.1f}"><title>{each.count:,}</title></rect>'
        for index, each in enumerate(column.histogram)
    )
    ends = (
        f'<text x="0" y="{_HEIGHT + 14}">{escape(shown(column.min))}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 14}" text-anchor="end">{escape(shown(column.max))}</text>'
    )
    name = escape(f"histogram of {column.name}")
    return f'<svg width="{_WIDTH}" height="{_HEIGHT + 18}" role="img" aria-label="{name}">{drawn}{ends}</svg>'


def _frequencies(column: ColumnStatistics) -> str:
    """The most frequent values as horizontal bars."""
    if not column.top:
        return ""
    most = column.top[0].count or 1
    line = 18
    drawn = "".join(
        f'<rect x="0" y="{index * line + 2}" width="{each.count / most * _WIDTH / 2:.1f}" height="{line - 5}"></rect>'
        f'<text x="{_WIDTH / 2 + 6:.0f}" y="{index * line + 13}">{escape(_frequency(each))}</text>'
        for index, each in enumerate(column.top)
    )
    name = escape(f"most frequent values of {column.name}")
    return f'<svg width="{_WIDTH + 160}" height="{line * len(column.top)}" role="img" aria-label="{name}">{drawn}</svg>'


def _frequency(top: TopValue) -> str:
    return f"{cut(shown(top.value))} ({top.count:,})"


def shown(value: JsonValue) -> str:
    """A value as people read it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"
        case "":
            return '""'
        case _:
            return str(value)


def cut(text: str, most: int = 28) -> str:
    """A text that is not too long."""
    return text if len(text) <= most else text[: most - 1] + "…"


_TICKS = "▁▂▃▄▅▆▇█"


def sparkline(counts: Iterable[int]) -> str:
    """A histogram in one line of text."""
    listed = list(counts)
    most = max(listed, default=0)
    if not most:
        return ""
    return "".join(
        " " if not each else _TICKS[min(len(_TICKS) - 1, each * len(_TICKS) // (most + 1))] for each in listed
    )
