"""The nodes of an explanation tree: values, with everything the tree shows about each.

Also expressions with values in place of their columns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import PlainText, UserError
from clew.explain.tree import StepRef
from clew.lang.lexer import Token, TokenKind, tokenize
from clew.server.pages.words import ValueCell
from clew.trace.records import Source

_NAMES = frozenset({TokenKind.NAME, TokenKind.QUOTED_NAME})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an expression; `column` is the name that a value has replaced."""

    text: str
    column: str | None = None


def with_values(expression: str, values: Mapping[str, str]) -> tuple[Piece, ...]:
    """An expression as pieces, with values in place of columns. Empty if the text is not an expression."""
    try:
        tokens = tokenize(PlainText(expression, "<expression>"))
    except UserError:
        return ()
    pieces, done = list[Piece](), 0
    for first, last, name in _references(tokens):
        value = values.get(name, values.get(name.rpartition(".")[2]))
        if value is not None:
            pieces += [Piece(expression[done : first.start]), Piece(value, name)]
            done = last.end
    pieces.append(Piece(expression[done:]))
    return tuple(piece for piece in pieces if piece.text) if len(pieces) > 1 else ()


def _references(tokens: list[Token]) -> list[tuple[Token, Token, str]]:
    """The columns in an expression: first token, last token, and name, with its table if given."""
    found, index = list[tuple[Token, Token, str]](), 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind not in _NAMES:
            index += 1
            continue
        following = [each.value for each in tokens[index + 1 : index + 3]]
        if following[:1] == ["."] and len(following) == 2:
            found.append((token, tokens[index + 2], f"{token.value}.{following[1]}"))
            index += 3
        else:
            if following[:1] != ["("]:
                found.append((token, token, token.value))
            index += 1
    return found


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Where a row is stored outside Clew."""

    dataset: str
    version: int | None
    file: str | None
    numbered: str | None
    """The number of the row in the file, in words."""
    line: int | None
    about: str | None


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression, its input values, and whether the recomputed value is equal."""

    text: str
    pieces: tuple[Piece, ...]
    outcome: Literal["equal", "differs", "not checked"]
    verdict: str


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a sum that a row contributed, and the length of its bar out of a hundred."""

    text: str
    length: float
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """The row of another dataset that a step joined."""

    alias: str
    dataset: str
    on: str
    label: str | None
    source: SourceLine | None
    cells: tuple[tuple[str, ValueCell], ...]
    is_missing: bool
    is_first_of_several: bool
    what_if: str | None = None
    """Where to ask what another value would change."""


@dataclass(frozen=True, slots=True)
class InRun:
    """The run of another project where the tree continues."""

    run_id: str
    title: str
    address: str | None


@dataclass(frozen=True, slots=True)
class Rest:
    """Rows of a summary that are not shown."""

    count: int
    share: str | None
    """Their share of the sum."""
    address: str | None
    """The page with more of them; None where one page would be too large."""
    offered: int
    more: str | None = None
    """Where a script gets the next of them, piece by piece."""
    shown: int = 0
    """How many rows are shown before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A value in the tree, and everything below it."""

    name: str | None
    """The column; None for a row that is only counted and contributes no value."""
    cell: ValueCell | None
    how: str
    step: StepRef | None = None
    row: str | None = None
    """The label of the row, if it is not the row above."""
    row_address: str | None = None
    address: str | None = None
    """The explanation of this value by itself."""
    formula: Formula | None = None
    source: SourceLine | None = None
    joined: Joined | None = None
    share: Share | None = None
    group: str | None = None
    decisions: tuple[tuple[str, str, str], ...] = ()
    """Conditions, their results, and the values that decided them."""
    in_run: InRun | None = None
    children: tuple["TreeNode", ...] = ()
    parents: tuple["TreeNode", ...] = ()
    """The rows of a summary, as a separate list with their shares."""
    rest: Rest | None = None
    is_source: bool = False
    """Whether the path ends here, in a source."""
    cut: str | None = None
    """The explanation that was left out here: its address, or nothing where there are no links."""


def walk(node: TreeNode) -> Iterator[TreeNode]:
    """A node and all nodes below it."""
    yield node
    for child in (*node.children, *node.parents):
        yield from walk(child)


def unlinked(node: TreeNode) -> TreeNode:
    """The same tree without addresses, for use without a server."""
    return replace(
        node,
        row_address=None,
        address=None,
        in_run=replace(node.in_run, address=None) if node.in_run else None,
        rest=replace(node.rest, address=None, more=None) if node.rest else None,
        cut=None if node.cut is None else "",
        joined=replace(node.joined, what_if=None) if node.joined else None,
        children=tuple(map(unlinked, node.children)),
        parents=tuple(map(unlinked, node.parents)),
    )


def source_line(source: Source) -> SourceLine:
    """The location of a row outside Clew."""
    numbered = source.numbered.strip() or None
    return SourceLine(source.dataset, source.version, source.file, numbered, source.line, source.description)
