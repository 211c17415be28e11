"""From YAML text to nodes.

The events of the parser are turned into nodes here, without recursion and without its own resolution of values: that
gives every value its place, is several times faster than composing, and leaves the meaning of scalars to
`clew.model.scalars`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, Protocol, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR
from clew.diagnostics.codes.workspace import DUPLICATE_KEY
from clew.model.nodes import MOST_PROBLEMS, Entry, ListNode, MapNode, Node, ScalarNode
from clew.model.source import Source
from clew.model.yaml_problems import control_character, unreadable_yaml

DEEPEST_NESTING = 100
MOST_ALIASED_NODES = 100_000

_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_ANCHOR = re.compile(r"(?:&\S+\s+)+")
_TAG_PREFIX = "tag:yaml.org,2002:"


class _Mark(Protocol):
    index: int


class _Event(Protocol):
    """An event of the parser. Each kind has the places and some of the rest."""

    start_mark: _Mark
    end_mark: _Mark
    value: str
    style: str | None
    tag: str | None
    anchor: str | None


@dataclass(frozen=True, slots=True)
class YamlTree:
    """What could be read of a file: everything, or what stood before the first thing that is not YAML."""

    root: Node | None
    diagnostics: tuple[Diagnostic, ...]
    is_complete: bool
    """Whether the whole file was read. Duplicate keys do not stop that."""


def read_yaml(source: Source) -> YamlTree:
    """The tree of a file with one document."""
    if (problem := control_character(source)) is not None:
        return YamlTree(None, (problem,), is_complete=False)
    builder = _Builder(source)
    is_complete = False
    try:
        for event in _events(source):
            builder.take(event)
        is_complete = True
    except yaml.YAMLError as error:
        builder.diagnostics.append(unreadable_yaml(source, error))
    except UserError as error:
        builder.diagnostics.extend(error.diagnostics)
    return YamlTree(builder.root, tuple(builder.diagnostics), is_complete)


def _events(source: Source) -> Iterator[_Event]:
    return cast(Iterator[_Event], yaml.parse(source.text, Loader=_LOADER))


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is still open."""

    node: ListNode | MapNode
    anchor: str | None
    key: ScalarNode | None = None
    """The key whose value comes next."""


@dataclass(slots=True)
class _Builder:
    source: Source
    root: Node | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _open: list[_Frame] = field(default_factory=list)
    _anchors: dict[str, Node | None] = field(default_factory=dict)
    """None stands for a value that is not complete yet."""
    _documents: int = 0
    _aliased: int = 0

    def take(self, event: _Event) -> None:
        """Go on with the next event."""
        kind: type = type(event)
        if kind is ScalarEvent:
            self._scalar(event)
        elif kind is MappingStartEvent:
            self._start(event, MapNode(self.source, event.start_mark.index, event.end_mark.index))
        elif kind is SequenceStartEvent:
            self._start(event, ListNode(self.source, event.start_mark.index, event.end_mark.index))
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            self._end(event)
        elif kind is AliasEvent:
            self._add(self._aliased_node(event, event.anchor or ""))
        elif kind is DocumentStartEvent:
            self._document(event)

    def _document(self, event: _Event) -> None:
        self._documents += 1
        if self._documents > 1:
            self._refuse(
                event, "a second document starts here; a file holds one", "remove the ---, or move it to its own file"
            )

    def _scalar(self, event: _Event) -> None:
        start = event.start_mark.index
        if event.tag is not None:
            self._refuse_tag(event, event.tag)
        if event.anchor is not None:
            anchor = _ANCHOR.match(self.source.text, start, event.end_mark.index)
            start = anchor.end() if anchor else start
        node = ScalarNode(self.source, start, event.end_mark.index, event.value, event.style or "")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._add(node)

    def _start(self, event: _Event, node: MapNode | ListNode) -> None:
        if event.tag is not None:
            self._refuse_tag(event, event.tag)
        if len(self._open) >= DEEPEST_NESTING:
            self._refuse(event, f"nested more than {DEEPEST_NESTING} levels deep", "keep the structure flatter")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._add(node)
        self._open.append(_Frame(node, event.anchor))

    def _end(self, event: _Event) -> None:
        frame = self._open.pop()
        if frame.anchor is not None:
            self._anchors[frame.anchor] = frame.node
        if event.end_mark.index > event.start_mark.index:
            frame.node.end = event.end_mark.index

    def _add(self, node: Node) -> None:
        """Put a complete or just opened node where it belongs."""
        if not self._open:
            self.root = node
            return
        frame = self._open[-1]
        holder = frame.node
        if isinstance(holder, ListNode):
            holder.items.append(node)
        elif frame.key is None:
            frame.key = self._key(holder, node)
        else:
            key, frame.key = frame.key, None
            if key.text not in holder.entries:
                holder.entries[key.text] = Entry(key, node)

    def _key(self, holder: MapNode, node: Node) -> ScalarNode:
        if not isinstance(node, ScalarNode):
            raise self._complex_key(node)
        if node.is_plain and node.text == "<<":
            hint = "write the keys out; an alias can only stand for a whole value"
            raise UserError(SYNTAX_ERROR.at(node.span, problem='"<<" does not merge mappings here', hint=hint))
        if not holder.entries and holder.end == holder.start:
            holder.start, holder.end = node.start, node.end
        first = holder.entries.get(node.text)
        if first is not None and len(self.diagnostics) < MOST_PROBLEMS:
            self.diagnostics.append(DUPLICATE_KEY.at(node.span, key=node.text, first_line=first.key.span.line))
        return node

    def _complex_key(self, node: ListNode | MapNode) -> UserError:
        if self.source.text.startswith("{{", node.start - 1):
            span = self.source.span(node.start - 1, node.start + 1)
            hint = 'put the text in quotes: "{{NAME}}"'
            return UserError(SYNTAX_ERROR.at(span, problem='"{{" starts a mapping in YAML', hint=hint))
        return UserError(SYNTAX_ERROR.at(node.span, problem="a key cannot be a list or a mapping"))

    def _aliased_node(self, event: _Event, anchor: str) -> Node:
        if anchor not in self._anchors:
            self._refuse(event, f'there is no anchor "&{anchor}" above', "define it before it is used")
        node = self._anchors[anchor]
        if node is None:
            self._refuse(event, f'"*{anchor}" stands inside the value that it repeats', "write the value out")
        self._count_aliased(event, node, len(self._open))
        return node

    def _count_aliased(self, event: _Event, node: Node, depth: int) -> None:
        """An alias is cheap to write and costly to read: what it stands for counts each time."""
        self._aliased += 1
        if self._aliased > MOST_ALIASED_NODES:
            self._refuse(event, f"aliases repeat more than {MOST_ALIASED_NODES} values", "write the values out")
        if isinstance(node, ScalarNode):
            return
        if depth >= DEEPEST_NESTING:
            self._refuse(event, f"nested more than {DEEPEST_NESTING} levels deep", "keep the structure flatter")
        below = node.items if isinstance(node, ListNode) else [entry.value for entry in node.entries.values()]
        for child in below:
            self._count_aliased(event, child, depth + 1)

    def _refuse_tag(self, event: _Event, tag: str) -> NoReturn:
        written = f"!!{tag.removeprefix(_TAG_PREFIX)}" if tag.startswith(_TAG_PREFIX) else tag
        self._refuse(event, f'tags such as "{written}" are not allowed', "remove it; quotes make a value text")

    def _refuse(self, event: _Event, problem: str, hint: str) -> NoReturn:
        span = self.source.span(event.start_mark.index, event.end_mark.index)
        raise UserError(SYNTAX_ERROR.at(span, problem=problem, hint=hint))
