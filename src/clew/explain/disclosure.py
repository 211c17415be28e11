"""What an answer gives away: the rows and columns whose values are in it, for the record of who has read what."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from clew.explain.tree import Contributor, Decision, Explanation, Input, JoinedRow, Summarised
from clew.explain.why_not import Elsewhere, InOutput, Whereabouts, WhyNot


def disclosed(answer: Explanation | WhyNot) -> tuple[tuple[str, ...], frozenset[str]]:
    """The columns in an answer, in the order of the tree, and what identifies its rows."""
    columns, rows = dict[str, None](), set[str]()
    waiting: list[object] = [answer]
    while waiting:
        node = waiting.pop()
        columns |= dict.fromkeys(_columns(node))
        rows.update(_rows(node))
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif is_dataclass(node):
            waiting.extend(reversed([getattr(node, field.name) for field in fields(node)]))
    return tuple(columns), frozenset(rows)


def _columns(node: object) -> Iterator[str]:
    match node:
        case Explanation():
            yield node.column
        case Input():
            yield node.name
        case JoinedRow():
            yield from (f"{node.alias}.{name}" for name in node.row or ())
        case Summarised():
            yield from node.group
        case Decision():
            yield from node.values
        case InOutput():
            yield from node.state
            yield from node.not_written
        case _:
            pass


def _rows(node: object) -> Iterator[str]:
    match node:
        case Explanation() | Whereabouts():
            yield node.row_id
        case Contributor():
            yield node.row_id or f"{node.label} {node.source}"
        case JoinedRow() if node.row is not None:
            yield f"{node.dataset} {node.label} {node.source}"
        case Elsewhere():
            yield f"{node.label} {node.source}"
        case _:
            pass
