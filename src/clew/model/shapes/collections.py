"""Shapes of lists and mappings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.model.nodes import MOST_PROBLEMS, ListNode, MapNode, Node
from clew.model.shapes.shape import JsonSchema, Shape, refused

T_co = TypeVar("T_co", covariant=True)


def items_of(node: Node, what: str) -> list[Node]:
    """The items of a list of something."""
    if not isinstance(node, ListNode):
        raise refused(node, f"a list of {what}")
    return node.items


@dataclass(frozen=True, slots=True, eq=False)
class ListOf(Shape[tuple[T_co, ...]], Generic[T_co]):
    """A list."""

    item: Shape[T_co]
    what: str
    """What the items are, in the plural."""
    at_least: int = 0

    @property
    def hashable(self) -> bool:
        """As the items are."""
        return self.item.hashable

    def read(self, node: Node) -> tuple[T_co, ...]:
        """The items, in their order."""
        nodes = items_of(node, self.what)
        if len(nodes) < self.at_least:
            problem = f"expected a list of {self.what}, at least {self.at_least}; found {len(nodes)}"
            raise UserError(INVALID_VALUE.at(node.span, problem=problem))
        items: list[T_co] = []
        problems: list[Diagnostic] = []
        for item in nodes:
            try:
                items.append(self.item.read(item))
            except UserError as error:
                problems.extend(error.diagnostics)
                if len(problems) >= MOST_PROBLEMS:
                    break
        if problems:
            raise UserError(*problems)
        return tuple(items)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """An array."""
        least: JsonSchema = {"minItems": self.at_least} if self.at_least else {}
        return {"type": "array", "items": self.item.schema(definitions), **least}


@dataclass(frozen=True, slots=True, eq=False)
class MapOf(Shape[Mapping[str, T_co]], Generic[T_co]):
    """A mapping whose keys are chosen by the user."""

    value: Shape[T_co]
    what: str
    """What the values are, in the plural."""
    at_least: int = 0

    @property
    def hashable(self) -> bool:
        """Mappings are not."""
        return False

    def read(self, node: Node) -> Mapping[str, T_co]:
        """The values by key, in their order."""
        if not isinstance(node, MapNode):
            raise refused(node, f"a mapping of {self.what}")
        if len(node.entries) < self.at_least:
            problem = f"expected {self.what}, at least {self.at_least}; found {len(node.entries)}"
            raise UserError(INVALID_VALUE.at(node.span, problem=problem))
        values: dict[str, T_co] = {}
        problems: list[Diagnostic] = []
        for name, entry in node.entries.items():
            try:
                values[name] = self.value.read(entry.value)
            except UserError as error:
                problems.extend(error.diagnostics)
                if len(problems) >= MOST_PROBLEMS:
                    break
        if problems:
            raise UserError(*problems)
        return values

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """An object with free keys."""
        least: JsonSchema = {"minProperties": self.at_least} if self.at_least else {}
        return {"type": "object", "additionalProperties": self.value.schema(definitions), **least}
