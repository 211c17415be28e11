"""The idea of a shape, and how a value that does not have it is refused."""

from abc import ABC, abstractmethod
from datetime import date
from typing import Generic, TypeAlias, TypeVar

from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.model.nodes import ListNode, MapNode, Node, ScalarNode
from clew.model.scalars import Scalar, scalar_value

T_co = TypeVar("T_co", covariant=True)

JsonSchema: TypeAlias = dict[str, object]

_LONGEST_QUOTATION = 60


class Shape(ABC, Generic[T_co]):
    """What a value may be."""

    @property
    def hashable(self) -> bool:
        """Whether the values can be hashed, and so take part in the hash of the record that holds them."""
        return True

    @abstractmethod
    def read(self, node: Node) -> T_co:
        """The value of a node. UserError with everything that is wrong in it."""

    @abstractmethod
    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """The shape in JSON Schema. Shapes with a name of their own put themselves into `definitions`."""


def refused(node: Node, expected: str, *, hint: str | None = None) -> UserError:
    """The error for a value that is not what it should be."""
    return UserError(INVALID_VALUE.at(node.span, problem=f"expected {expected}, found {found(node)}", hint=hint))


def found(node: Node) -> str:
    """What a node is, in words."""
    match node:
        case ListNode():
            return "a list"
        case MapNode():
            return "a mapping"
        case ScalarNode():
            return _scalar_in_words(node, scalar_value(node))


def _scalar_in_words(node: ScalarNode, value: Scalar) -> str:
    text = node.text if len(node.text) <= _LONGEST_QUOTATION else f"{node.text[:_LONGEST_QUOTATION]}…"
    match value:
        case None:
            return "nothing"
        case bool():
            return text
        case str():
            return f'the text "{text}"'
        case date():
            return f"the date {text}"
        case _:
            return f"the number {text}"
