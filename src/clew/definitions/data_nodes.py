"""Python data as nodes, so that projects built in Python are read like files."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from clew.definitions.nodes import Entry, ListNode, MapNode, Node, ScalarNode, SourceText
from clew.definitions.yaml_nodes import DEEPEST_NESTING
from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE

_PLAIN, _QUOTED = "", '"'


def node_of(data: object, origin: str) -> Node:
    """The node of mappings, sequences and scalars. Keys with the value None count as absent."""
    return _node(data, SourceText(origin, ""), 0)


def _node(data: object, source: SourceText, depth: int) -> Node:
    if depth > DEEPEST_NESTING:
        problem = f"nested more than {DEEPEST_NESTING} levels deep"
        raise UserError(INVALID_VALUE.at(source.span(0, 0), problem=problem))
    if isinstance(data, Mapping):
        entries = {
            str(key): Entry(ScalarNode(source, 0, 0, str(key), _QUOTED), _node(value, source, depth + 1))
            for key, value in data.items()
            if value is not None
        }
        return MapNode(source, 0, 0, entries)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return ListNode(source, 0, 0, [_node(item, source, depth + 1) for item in data])
    text, style = _scalar(data, source)
    return ScalarNode(source, 0, 0, text, style)


def _scalar(data: object, source: SourceText) -> tuple[str, str]:
    match data:
        case str():
            return str(data), _QUOTED
        case None:
            return "null", _PLAIN
        case bool():
            return str(data).lower(), _PLAIN
        case datetime():
            return data.isoformat(), _QUOTED
        case date():
            return data.isoformat(), _PLAIN
        case int():
            return str(int(data)), _PLAIN
        case float():
            return _float(data), _PLAIN
        case Decimal() if data.is_finite():
            return str(data), _PLAIN
        case _:
            problem = f"a {type(data).__name__} is not allowed in a definition"
            raise UserError(INVALID_VALUE.at(source.span(0, 0), problem=problem))


def _float(number: float) -> str:
    text = repr(number)
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)
