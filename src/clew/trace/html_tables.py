"""Tables for notebooks: plain HTML, everything that users wrote escaped."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from html import escape

from clew.lang.typed import Value


def shown(value: Value) -> str:
    """A value as people read it in a table."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:,f}"
        case int():
            return str(value)
        case date():
            return value.isoformat()
        case _:
            return str(value)


def html_table(caption: str, headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a caption. Cells are texts, or pieces of HTML that were escaped before."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Html) else escape(str(cell))
