"""`{{NAME}}` replaced by the named selector's expression, as a whole, so that precedence is never an accident.

Within a fragment, `arg.NAME` is replaced in the same way by the expression that its use gives.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from clew.diagnostics import Problems, UserError, did_you_mean
from clew.diagnostics.codes.language import AGGREGATE_NOT_ALLOWED, SYNTAX_ERROR, UNKNOWN_PARAMETER
from clew.diagnostics.codes.project import SELECTOR_CYCLE, UNKNOWN_SELECTOR
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang import parse
from clew.lang.functions import HOLIDAYS, is_aggregate
from clew.lang.scope import WORKING
from clew.lang.syntax import MAX_DEPTH, Call, Literal, Node, OrderedBy, Over, Reference, SelectorReference, walk

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import ExpressionText

_MOST_NODES = 20_000
_NAME = re.compile(r"[^\W\d][\w.-]*")
"""What `{{NAME}}` can refer to."""

ARGUMENTS = "arg"
"""What stands before the name of an argument of a fragment, as if it were a table."""

_WORKDAY = "WORKDAY"

_PLAIN = re.compile(r"[\w.]+")


class Selectors:
    """The named selectors of a project or of a fragment, and after them those of its user.

    Each one is parsed and expanded once, and sees what its own project or fragment sees: a fragment that has a
    selector of the same name as one of the project does not change what the project's selectors mean.
    """

    def __init__(
        self,
        texts: Mapping[str, "ExpressionText"],
        problems: Problems,
        *,
        outer: "Selectors | None" = None,
        is_whole: bool = True,
        arguments: "Mapping[str, ExpressionText | None] | None" = None,
        holidays: Mapping[str, Sequence[date]] | None = None,
    ) -> None:
        self.texts = texts
        self._holidays: Mapping[str, Sequence[date]] = holidays or (outer.holidays if outer else {})
        self._arguments = arguments or {}
        """For a fragment, what its use gives, which sees what the user sees; None where that is wrong."""
        self.visible: tuple[str, ...] = (*texts, *(outer.visible if outer else ()))
        self.is_whole: bool = is_whole and (outer is None or outer.is_whole)
        """Whether a name that is not visible is wrong, rather than one of those that could not be read."""
        self._problems = problems
        self._outer = outer
        self._parsed: dict[str, Node | None] = {}
        self._expanded: dict[str, Node | None] = {}
        self._sizes: dict[int, tuple[int, int]] = {}

    def check_all(self) -> None:
        """Expand every selector, used or not, so that a broken one is found before it is used."""
        for name, text in self.texts.items():
            if not _NAME.fullmatch(name):
                problem = f'a selector cannot be called "{name}": {{{{{name}}}}} is not a reference'
                hint = "begin with a letter or underscore; then letters, digits, '.', '_' and '-'"
                self._problems.report(INVALID_VALUE.at(text.node.span, problem=problem, hint=hint))
            self._expand(name)
            self._refuse_aggregates(self._parsed.get(name))

    def _refuse_aggregates(self, node: Node | None) -> None:
        for each in walk(node) if node is not None else ():
            if isinstance(each, Call) and is_aggregate(each.name.upper()):
                function = each.name.upper()
                place = "in a selector"
                self._problems.report(AGGREGATE_NOT_ALLOWED.at(each.head.span, function=function, place=place))

    def parse(self, text: "ExpressionText") -> Node | None:
        """The tree of a text with all selectors in place; None if it cannot be read, which has been reported.

        NULL stands for a selector about which something was reported, so that the rest can be checked.
        """
        node = self._parse(text)
        return None if node is None else self._substituted(node)

    def shown(self, text: "ExpressionText") -> str:
        """A value as people read it: with selectors and arguments in their places."""
        if not self.is_used_in(text) and "{{" not in text.value:
            return text.value
        try:
            node = parse(text)
        except UserError:
            return text.value
        found, end = list[str](), 0
        for each in sorted(_parts(node), key=lambda part: part.region.start):
            replaced = self._shown_part(each)
            if replaced is not None and each.region.start >= end:
                found += [text.value[end : each.region.start], replaced]
                end = each.region.end
        return "".join([*found, text.value[end:]])

    def is_used_in(self, text: "ExpressionText") -> bool:
        """Whether a text may read an argument of the fragment."""
        return bool(self._arguments) and ARGUMENTS in text.value.casefold()

    def _shown_part(self, node: Node) -> str | None:
        match node:
            case SelectorReference(name):
                return self.shown_selector(name)
            case Reference(table, column) if table == ARGUMENTS and self._outer is not None:
                given = self._arguments.get(column)
                return None if given is None else _in_parentheses(self._outer.shown(given))
            case _:
                return None

    def shown_selector(self, name: str) -> str | None:
        """What stands for a selector in what people read; None for one that is wrong or that there is not."""
        if name in self.texts:
            return None if self.expanded(name) is None else _in_parentheses(self.shown(self.texts[name]))
        return self._outer.shown_selector(name) if self._outer is not None else None

    def expanded(self, name: str) -> Node | None:
        """The tree of a selector that is visible here, None if something is wrong with it."""
        if name in self.texts:
            self._expand(name)
            return self._expanded[name]
        return self._outer.expanded(name) if self._outer is not None else None

    def _parse(self, text: "ExpressionText") -> Node | None:
        try:
            return parse(text)
        except UserError as error:
            self._problems.report(*error.diagnostics)
            return None

    def _expand(self, name: str) -> None:
        """Expand a selector and before it those that it uses, with a list of names, since chains can be long."""
        path = [name]
        while path:
            current = path[-1]
            if current in self._expanded:
                path.pop()
                continue
            if current not in self._parsed:
                self._parsed[current] = self._parse(self.texts[current])
            node = self._parsed[current]
            used = next((each for each in _references(node) if self._is_open(each.name)), None)
            if used is None:
                self._expanded[current] = None if node is None else self._substituted(node)
            elif used.name in path:
                circle = " -> ".join((*path[path.index(used.name) :], used.name))
                self._problems.report(SELECTOR_CYCLE.at(used.region.span, path=circle))
                self._expanded[current] = None
            else:
                path.append(used.name)

    def _is_open(self, name: str) -> bool:
        return name in self.texts and name not in self._expanded

    def _substituted(self, node: Node) -> Node:
        match node:
            case Literal():
                return node
            case Reference():
                if node.table != ARGUMENTS or not self._arguments:
                    return node
                return self._argument(node) or Literal(None, node.region)
            case SelectorReference():
                return self._reference(node) or Literal(None, node.region)
            case Call():
                arguments = tuple(self._substituted(argument) for argument in node.arguments)
                if node.name == _WORKDAY and any(map(_is_holidays, arguments)):
                    arguments = tuple(each for argument in arguments for each in self._days(argument))
                    return Call(node.name, arguments, node.region, node.head, node.over)
                over = self._window(node.over)
                is_same = all(new is old for new, old in zip(arguments, node.arguments, strict=True))
                is_same &= over is node.over
                return node if is_same else Call(node.name, arguments, node.region, node.head, over)

    @property
    def holidays(self) -> Mapping[str, Sequence[date]]:
        """The holidays of each calendar."""
        return self._holidays

    def _days(self, argument: Node) -> Iterator[Node]:
        """The holidays that a call stands for, each as a date; any other argument as it is."""
        if not isinstance(argument, Call) or not _is_holidays(argument):
            yield argument
            return
        name = argument.arguments[0].value if isinstance(argument.arguments[0], Literal) else None
        if not isinstance(name, str) or not self._holidays.get(name):
            known = [calendar for calendar, days in self._holidays.items() if days]
            hint = did_you_mean(str(name), known) or f"calendars with holidays: {', '.join(known) or 'none'}"
            missing = f'no calendar "{name}" with holidays'
            problem = missing if isinstance(name, str) else "it needs the id of a calendar in quotes"
            self._problems.report(INVALID_VALUE.at(argument.region.span, problem=problem, hint=hint))
            return
        region = argument.region
        for day in sorted(set(self._holidays[name])):
            yield Call("DATE", (Literal(day.isoformat(), region),), region, argument.head)

    def _window(self, over: Over | None) -> Over | None:
        """A window; an argument that is a column can stand where a column is asked for."""
        if over is None or not self._arguments:
            return over
        keys = tuple(self._column(each) for each in over.partition_by)
        order = tuple(OrderedBy(self._column(each.column), each.descending) for each in over.order_by)
        return Over(keys, order, over.frame, over.region)

    def _column(self, column: Reference) -> Reference:
        placed = self._substituted(column)
        return placed if isinstance(placed, Reference) else column

    def _argument(self, reference: Reference) -> Node | None:
        """The expression that the use of the fragment gives, as the user sees it."""
        name = reference.column
        if name not in self._arguments:
            hint = did_you_mean(name, self._arguments) or "declare it under `arguments` of the fragment"
            self._problems.report(UNKNOWN_PARAMETER.at(reference.region.span, name=f"{ARGUMENTS}.{name}", hint=hint))
            return None
        given = self._arguments[name]
        found = None if given is None or self._outer is None else self._outer.parse(given)
        return None if found is None else _of_working(found)

    def _reference(self, reference: SelectorReference) -> Node | None:
        name, span = reference.name, reference.region.span
        if name not in self.visible:
            if self.is_whole:
                self._problems.report(UNKNOWN_SELECTOR.at(span, name=name, hint=did_you_mean(name, self.visible)))
            return None
        expanded = self.expanded(name)
        if expanded is not None and self._is_too_large(expanded):
            problem = f"the selector {name} becomes too large when its own selectors are put in place"
            self._problems.report(SYNTAX_ERROR.at(span, problem=problem, hint="use fewer selectors in it"))
            return None
        return expanded

    def _is_too_large(self, node: Node) -> bool:
        nodes, depth = self._size(node)
        return nodes > _MOST_NODES or depth > MAX_DEPTH

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


def _is_holidays(node: Node) -> bool:
    return isinstance(node, Call) and node.name == HOLIDAYS and len(node.arguments) == 1


def _of_working(node: Node) -> Node:
    """An expression whose bare names mean the working dataset, also where something else is joined."""
    match node:
        case Reference(None, column, region):
            return Reference(WORKING, column, region)
        case Call():
            arguments = tuple(map(_of_working, node.arguments))
            return Call(node.name, arguments, node.region, node.head, node.over)
        case _:
            return node


def _parts(node: Node) -> Iterator[Node]:
    """The nodes of a tree, and the columns of its windows."""
    for each in walk(node):
        yield each
        if isinstance(each, Call) and each.over is not None:
            yield from (*each.over.partition_by, *(ordered.column for ordered in each.over.order_by))


def _in_parentheses(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else f"({text})"


def _references(node: Node | None) -> Iterator[SelectorReference]:
    return (each for each in walk(node) if isinstance(each, SelectorReference)) if node is not None else iter(())
