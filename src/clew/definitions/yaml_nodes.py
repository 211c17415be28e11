"""From YAML text to nodes, and from the parser's complaints to messages for the person who edits the file.

The parser's events are turned into nodes here, without recursion and without the parser's own resolution of values.
That gives every value its place, is several times faster than composing, and leaves the meaning of scalars to
`clew.definitions.yaml_scalars`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
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

from clew.deferred import dataclass
from clew.definitions.nodes import MOST_PROBLEMS, Entry, ListNode, MapNode, Node, ScalarNode, SourceText
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR
from clew.diagnostics.codes.workspace import DUPLICATE_KEY

_CONTROL_CHARACTER = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$", re.MULTILINE)

_INDENTATION = "this line does not fit the indentation of the lines before it"
_WORDINGS: Mapping[str, tuple[str, str]] = {
    "mapping values are not allowed": (
        '":" is not expected here',
        'put text with ": " in it in quotes, and check the indentation of this line and the one before',
    ),
    "did not find expected key": (
        _INDENTATION,
        "keys of one mapping start in the same column; quotes end where they began",
    ),
    "expected <block end>": (_INDENTATION, "keys of one mapping start in the same column; quotes end where they began"),
    "expected '-' indicator": (_INDENTATION, "the items of one list start with - in the same column"),
    "sequence entries are not allowed": (
        "a list cannot start here",
        'start the list in the next line, or write "[...]"',
    ),
    "could not find expected ':'": ('":" is missing after the key', "write `key: value`"),
    "unknown escape character": (
        "a backslash in double quotes must start an escape that YAML knows",
        "write two backslashes for one, or use single quotes",
    ),
    "expected node content": ("a value is expected here", "put text that starts with a special character in quotes"),
    "the node content": ("a value is expected here", "put text that starts with a special character in quotes"),
    "alphabetic or numeric": ('a value cannot start with "*" or "&"', "put the value in quotes"),
    "comment or": ("text cannot follow | or >", "start the text in the next line"),
    "undefined tag handle": ("tags are not allowed", "remove it; quotes make a value text"),
    "expected <document start>": ("the document has ended before this line", "remove the line ... above"),
    "incompatible YAML document": ("this version of YAML cannot be read", "remove the %YAML line"),
}
"""By a part of the parser's own words: the problem and what to do."""


def control_character(source: SourceText) -> Diagnostic | None:
    """The first character that no YAML file may have, if there is one."""
    match = _CONTROL_CHARACTER.search(source.text)
    if match is None:
        return None
    problem = f"the character U+{ord(match[0]):04X} is not allowed in a file"
    return SYNTAX_ERROR.at(source.span(match.start(), match.end()), problem=problem, hint="remove it")


def unreadable_yaml(source: SourceText, error: yaml.YAMLError) -> Diagnostic:
    """The complaint of the parser as a diagnostic at the right place."""
    conflict = _CONFLICT.search(source.text)
    if conflict is not None:
        remedy = "decide between the two versions, and remove the lines <<<<<<<, ======= and >>>>>>>"
        return SYNTAX_ERROR.at(
            source.span(*conflict.span()), problem="a merge left a conflict marker in this line", hint=remedy
        )
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return SYNTAX_ERROR.at(source.span(0, 0), problem=f"this is not YAML: {error}".splitlines()[0])
    index = min(error.problem_mark.index, len(source.text))
    begun = error.context_mark.index if error.context_mark is not None else index
    culprit = source.text[index : index + 1]
    complaint = error.problem or ""
    if "end of stream" in complaint and "quoted" in (error.context or ""):
        return SYNTAX_ERROR.at(source.span(begun, begun + 1), problem="this quote is never closed", hint="close it")
    if "flow" in (error.context or "") and "expected ','" in complaint:
        return _unclosed(source, begun, index)
    if "tab character" in complaint or (culprit == "\t" and "start any token" in complaint):
        return SYNTAX_ERROR.at(source.span(index, index + 1), problem="a tab cannot indent a line", hint="use spaces")
    if "start any token" in complaint:
        problem = f'a value cannot start with "{culprit}"'
        return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint="put the value in quotes")
    problem, hint = _in_other_words(complaint)
    if problem == _INDENTATION and not _starts_its_line(source, index):
        problem, hint = "this is not expected here", "remove it, or put the whole value in quotes"
    return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint=hint)


def _in_other_words(complaint: str) -> tuple[str, str | None]:
    for words, wording in _WORDINGS.items():
        if words in complaint:
            return wording
    return f"this is not YAML: {complaint}", None


def _starts_its_line(source: SourceText, index: int) -> bool:
    column = source.span(index, index).column
    return not source.text[index - column + 1 : index].strip()


def _unclosed(source: SourceText, begun: int, index: int) -> Diagnostic:
    opening = source.text[begun : begun + 1]
    closing = "]" if opening == "[" else "}"
    problem = f'"," or "{closing}" is missing before this place'
    if index >= len(source.text.rstrip()):
        return SYNTAX_ERROR.at(
            source.span(begun, begun + 1), problem=f'this "{opening}" is never closed', hint="close it"
        )
    hint = f'the "{opening}" in line {source.span(begun, begun).line} is still open'
    return SYNTAX_ERROR.at(source.span(index, index + 1), problem=problem, hint=hint)


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


def read_yaml(source: SourceText) -> YamlTree:
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


def _events(source: SourceText) -> Iterator[_Event]:
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
    source: SourceText
    root: Node | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    _open: list[_Frame] = field(default_factory=list)
    _anchors: dict[str, Node | None] = field(default_factory=dict)
    """None stands for a value that is not complete yet."""
    _documents: int = 0
    _aliased: int = 0

    def take(self, event: _Event) -> None:
        """Continue with the next event."""
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
            self._refuse(event, f'"*{anchor}" is inside the value that it repeats', "write the value out")
        self._count_aliased(event, node, len(self._open))
        return node

    def _count_aliased(self, event: _Event, node: Node, depth: int) -> None:
        """An alias is cheap to write and costly to read: its content counts each time."""
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
