"""The page of an evidence pack: everything that people read, in one HTML file without scripts or links, to print."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from clew.evidence.contents import Json, RunEvidence
from clew.explain.outline import Item, outline
from clew.explain.tree import Explanation

_STYLE = """
:root { color-scheme: light; font: 14px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; border-bottom: 1px solid #ccd; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .15rem .6rem .15rem 0; border-bottom: 1px solid #eee; }
td { overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; }
pre, code { font: 12px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
ul { list-style: none; padding-left: 1.1rem; border-left: 1px solid #dde; margin: .1rem 0; } li { margin: .1rem 0; }
.quiet { color: #59636e; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; } tr, li { break-inside: avoid; } }
"""


_HOW = (
    "To verify this pack: <code>python3 -I verify.py</code> in the unpacked folder, or <code>clew verify PACK</code>."
)


def evidence_page(
    *,
    document: Json,
    runs: Mapping[str, RunEvidence],
    texts: Mapping[str, str],
    explanations: Sequence[Explanation],
    rows: Sequence[Json],
    fingerprint: str,
) -> bytes:
    """The page."""
    run = document["run"]
    assert isinstance(run, dict)  # noqa: S101 - made by the caller
    title = f"Evidence: {run['project']}, {run['period']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">Run {escape(str(run["run_id"]))}. {_HOW}</p>',
        _section("This pack", _pairs({**_flat(document["made"]), "signed with the key": fingerprint})),
        _section("Run", _pairs(_flat(run))),
        _section("Made with", _pairs(_flat(document["environment"]))),
        _section("Resolved versions", _table(document["resolved"])),
        _section("Sources", _table(document["sources"])),
        *(_section(f"Why {each.column} of {each.label or each.row_id}", _tree(outline(each))) for each in explanations),
        _section("Input rows", _table([_row(row) for row in rows])) if rows else "",
        *(_events(each) for each in runs.values()),
        *(_section(name, f"<pre>{escape(text)}</pre>") for name, text in texts.items()),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{"".join(parts)}</body></html>\n'.encode()


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{content}\n"


def _pairs(values: Mapping[str, object]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>" for name, value in values.items())
    return f"<table>{rows}</table>"


def _table(records: object) -> str:
    """Records as rows, with a column for each field that any of them has."""
    rows = [_flat(each) for each in records] if isinstance(records, list | tuple) else []
    if not rows:
        return '<p class="quiet">none</p>'
    names = list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_text(row.get(name)))}</td>' for name in names)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _row(row: Json) -> Json:
    source, values = row["source"], row["values"]
    place = source if isinstance(source, dict) else {}
    shown = ", ".join(f"{name} = {_text(value)}" for name, value in values.items()) if isinstance(values, dict) else ""
    return {
        "dataset": row["dataset"],
        "version": place.get("version"),
        "file": place.get("file"),
        "line": place.get("line"),
        "values": shown,
        "digest of the file": row["digest"],
    }


def _events(run: RunEvidence) -> str:
    rows = [
        {name: event[name] for name in ("run_seq", "emitted_at", "event_type", "step_id", "hash")}
        for event in run.events
    ]
    return _section(f"Events of run {run.run_id}", _table(rows))


def _tree(item: Item) -> str:
    return f"<ul>{_item(item)}</ul>"


def _item(item: Item) -> str:
    below = f"<ul>{''.join(_item(child) for child in item.children)}</ul>" if item.children else ""
    return f"<li><code>{escape(item.text)}</code>{below}</li>"


def _flat(value: object, before: str = "") -> dict[str, object]:
    """Nested records as one, names joined by dots; lists of records are left to tables of their own."""
    found = dict[str, object]()
    for name, each in value.items() if isinstance(value, Mapping) else ():
        if isinstance(each, Mapping):
            found |= _flat(each, f"{before}{name}.")
        elif not _has_records(each):
            found[f"{before}{name}"] = each
    return found


def _has_records(value: object) -> bool:
    return (
        isinstance(value, Iterable) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value)
    )


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
