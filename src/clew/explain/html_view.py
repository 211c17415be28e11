"""Explanations as a page that needs nothing else: one file, no script, to attach to a mail or an audit."""

from html import escape

from clew.explain.outline import Item, outline, why_not_outline
from clew.explain.tree import Explanation
from clew.explain.why_not import WhyNot

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.2rem; } footer { margin-top: 2rem; opacity: .7; font-size: .85rem; }
details, .leaf { margin-left: 1.2rem; padding: .1rem 0; } .leaf { padding-left: 1rem; }
summary { cursor: pointer; } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def as_html(answer: Explanation | WhyNot) -> str:
    """An answer as a page."""
    if isinstance(answer, Explanation):
        item, title = outline(answer), f"Why {answer.column} of {answer.label or answer.row_id}"
        about = f"run {answer.run_id}, row {answer.row_id}, after step {answer.at}"
    else:
        item, title = why_not_outline(answer), f"Why not: {answer.where}"
        about = f"run {answer.run_id}, period {answer.period}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{fragment(item)}\n<footer>{escape(about)}</footer></body></html>\n"
    )


def fragment(item: Item) -> str:
    """An outline as nested parts that open and close; the first two levels are open."""
    return _part(item, depth=0)


def _part(item: Item, depth: int) -> str:
    text = f"<code>{escape(item.text)}</code>"
    if not item.children:
        return f'<div class="leaf">{text}</div>'
    inner = "".join(_part(child, depth + 1) for child in item.children)
    return f"<details{' open' if depth < 2 else ''}><summary>{text}</summary>{inner}</details>"
