"""`{{NAME}}` replaced by the named selector's expression, as a whole, so that precedence is never an accident."""

from collections.abc import Mapping

from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.language import SYNTAX_ERROR
from clew.diagnostics.codes.project import SELECTOR_CYCLE, UNKNOWN_SELECTOR
from clew.lang import parse
from clew.lang.syntax import Call, Literal, Node, Reference, SelectorReference
from clew.model import ExpressionText
from clew.plan.problems import Problems

_MOST_NODES = 20_000
_DEEPEST = 250


class Selectors:
    """The named selectors that an operation can see. Parses and expands each one once."""

    def __init__(self, texts: Mapping[str, ExpressionText], problems: Problems) -> None:
        self._texts = texts
        self._problems = problems
        self._expanded: dict[str, Node | None] = {}
        self._sizes: dict[int, tuple[int, int]] = {}

    def check_all(self) -> None:
        """Expand every selector, used or not, so that a broken one is found before somebody uses it."""
        for name in self._texts:
            self._named(name, ())

    def parse(self, text: ExpressionText) -> Node | None:
        """The tree of a text with all selectors in place; None where something was wrong and has been reported."""
        try:
            node = parse(text)
        except UserError as error:
            self._problems.report(*error.diagnostics)
            return None
        return self._substituted(node, ())

    def _substituted(self, node: Node, within: tuple[str, ...]) -> Node | None:
        match node:
            case Literal() | Reference():
                return node
            case SelectorReference():
                return self._reference(node, within)
            case Call():
                arguments = [self._substituted(argument, within) for argument in node.arguments]
                known = tuple(argument for argument in arguments if argument is not None)
                if len(known) < len(arguments):
                    return None
                return node if known == node.arguments else Call(node.name, known, node.region, node.head)

    def _reference(self, node: SelectorReference, within: tuple[str, ...]) -> Node | None:
        name = node.name
        if name not in self._texts:
            hint = did_you_mean(name, self._texts)
            self._problems.report(UNKNOWN_SELECTOR.at(node.region.span, name=name, hint=hint))
            return None
        if name in within:
            circle = " -> ".join((*within[within.index(name) :], name))
            self._problems.report(SELECTOR_CYCLE.at(node.region.span, path=circle))
            return None
        expanded = self._named(name, within)
        if expanded is not None and self._is_too_large(expanded):
            problem = f"the selector {name} becomes too large when its own selectors are put in place"
            self._problems.report(SYNTAX_ERROR.at(node.region.span, problem=problem, hint="let it use fewer others"))
            return None
        return expanded

    def _named(self, name: str, within: tuple[str, ...]) -> Node | None:
        if name in self._expanded:
            return self._expanded[name]
        try:
            node = self._substituted(parse(self._texts[name]), (*within, name))
        except UserError as error:
            self._problems.report(*error.diagnostics)
            node = None
        self._expanded[name] = node
        return node

    def _is_too_large(self, node: Node) -> bool:
        nodes, depth = self._size(node)
        return nodes > _MOST_NODES or depth > _DEEPEST

    def _size(self, node: Node) -> tuple[int, int]:
        """Nodes and depth of a tree, with shared subtrees measured once."""
        if not isinstance(node, Call):
            return 1, 1
        known = self._sizes.get(id(node))
        if known is None:
            sizes = [self._size(argument) for argument in node.arguments]
            known = 1 + sum(size[0] for size in sizes), 1 + max((size[1] for size in sizes), default=0)
            self._sizes[id(node)] = known
        return known
