"""What can be read of a project or fragment with mistakes, so that one check finds those in the rest of it too."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from clew.deferred import dataclass
from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from clew.definitions.operations import OPERATION, Operation, OperationBase, Use
from clew.definitions.project import Fragment, Project
from clew.definitions.shapes import EXPRESSION, Shape
from clew.definitions.shapes.located import DeclaredKey
from clew.diagnostics import UserError

SEQ_UNKNOWN = 0
"""The seq of an operation that has none which can be read. It is taken to follow the entry before it in the file."""

_FOR_A_FRAGMENT: Mapping[str, object] = {"id": "", "name": ""}
_FOR_A_PROJECT: Mapping[str, object] = {**_FOR_A_FRAGMENT, "input_dataset": DatasetRef(dataset_id="")}
"""Values for required keys that are missing. The compiler ignores a dataset whose id is empty."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The readable part of a definition."""

    definition: Project | Fragment
    is_whole: bool
    """Whether none of its operations and selectors is missing, so that names which it does not have do not exist."""


def salvage(node: Node, kind: str) -> Salvaged | None:
    """What can be read of a project or a fragment; None for other kinds of files."""
    if not isinstance(node, MapNode) or kind not in {"project", "fragment"}:
        return None
    written_operations, written_selectors = _items(node, "operations"), _entries(node, "selectors")
    operations = tuple(found for item in written_operations if (found := _operation(item)) is not None)
    selectors: dict[str, ExpressionText] = {
        name: EXPRESSION.read(entry.value)
        for name, entry in written_selectors.items()
        if _is_readable(EXPRESSION, entry.value)
    }
    make: Callable[..., Project | Fragment] = Project if kind == "project" else Fragment
    required = _FOR_A_PROJECT if kind == "project" else _FOR_A_FRAGMENT
    rest = _readable(node, Project.keys if kind == "project" else Fragment.keys)
    definition = make(**{**required, **rest, "operations": operations, "selectors": selectors, "node": node})
    is_whole = len(operations) == len(written_operations) and len(selectors) == len(written_selectors)
    return Salvaged(definition, is_whole)


def _readable(node: MapNode, keys: Mapping[str, DeclaredKey]) -> dict[str, object]:
    return {
        name: keys[name].key.shape.read(entry.value)
        for name, entry in node.entries.items()
        if name in keys and _is_readable(keys[name].key.shape, entry.value)
    }


def _operation(item: Node) -> Operation | Use | None:
    """The entry, whatever is wrong with its seq, its name and the keys that it could do without."""
    if _is_readable(OPERATION, item):
        return OPERATION.read(item)
    if not isinstance(item, MapNode):
        return None
    entries = {name: entry for name, entry in item.entries.items() if _can_stay(name, entry.value)}
    stand_ins = {"seq": _entry(item, "seq", "1"), "name": _entry(item, "name", "unnamed")}
    mended = MapNode(item.source, item.start, item.end, stand_ins | entries)
    if not _is_readable(OPERATION, mended):
        return None
    found = OPERATION.read(mended)
    return found if "seq" in entries or isinstance(found, Use) else replace(found, seq=SEQ_UNKNOWN)


def _can_stay(name: str, value: Node) -> bool:
    if name in {"type", "arguments"}:
        return True
    common = OperationBase.keys.get(name)
    return common is not None and _is_readable(common.key.shape, value)


def _entry(item: MapNode, name: str, text: str) -> Entry:
    key = ScalarNode(item.source, item.start, item.end, name, "")
    return Entry(key, ScalarNode(item.source, item.start, item.end, text, ""))


def _is_readable(shape: Shape[object], node: Node) -> bool:
    try:
        shape.read(node)
    except UserError:
        return False
    return True


def _items(node: MapNode, name: str) -> list[Node]:
    entry = node.entries.get(name)
    return entry.value.items if entry is not None and isinstance(entry.value, ListNode) else []


def _entries(node: MapNode, name: str) -> Mapping[str, Entry]:
    entry = node.entries.get(name)
    return entry.value.entries if entry is not None and isinstance(entry.value, MapNode) else {}
