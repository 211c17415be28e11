"""Shapes of values that are one of several things, told apart by a word, a key or the kind of the value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from clew.diagnostics import UserError, did_you_mean, nearest
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY, UNKNOWN_KEY
from clew.model.nodes import MapNode, Node, ScalarNode
from clew.model.scalars import scalar_value
from clew.model.shapes.shape import JsonSchema, Shape, found, refused

A_co = TypeVar("A_co", covariant=True)
B_co = TypeVar("B_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Tagged(Shape[A_co], Generic[A_co]):
    """One of several records, named by one of its keys."""

    noun: str
    tag: str
    members: Mapping[str, Shape[A_co]]

    def read(self, node: Node) -> A_co:
        """The member that the key names."""
        if not isinstance(node, MapNode):
            raise refused(node, self.noun)
        entry = node.entries.get(self.tag)
        if entry is None:
            raise self._untagged(node)
        name = scalar_value(entry.value) if isinstance(entry.value, ScalarNode) else None
        if not isinstance(name, str) or name not in self.members:
            hint = did_you_mean(name, self.members) if isinstance(name, str) else None
            problem = f"expected {self._names} as the {self.tag} of {self.noun}; found {found(entry.value)}"
            raise UserError(INVALID_VALUE.at(entry.value.span, problem=problem, hint=hint))
        return self.members[name].read(node)

    def _untagged(self, node: MapNode) -> UserError:
        for name, entry in node.entries.items():
            if nearest(name, [self.tag]) is not None:
                hint = did_you_mean(name, [self.tag])
                return UserError(UNKNOWN_KEY.at(entry.key.span, key=name, where=f" in {self.noun}", hint=hint))
        hint = f"{self.tag} is {self._names}"
        return UserError(MISSING_KEY.at(node.span, key=self.tag, where=f" in {self.noun}", hint=hint))

    @property
    def _names(self) -> str:
        names = list(self.members)
        return f"{', '.join(names[:-1])} or {names[-1]}"

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """One of the members; each has the word as a constant."""
        return {"oneOf": [member.schema(definitions) for member in self.members.values()]}


@dataclass(frozen=True, slots=True, eq=False)
class ByKey(Shape[A_co], Generic[A_co]):
    """One of several records, told apart by a key that only one of them has."""

    noun: str
    members: Mapping[str, Shape[A_co]]
    otherwise: Shape[A_co] | None = None
    """What it is without any of the keys; None where one of them is needed."""

    def read(self, node: Node) -> A_co:
        """The member whose key is there, or seems to be meant."""
        if not isinstance(node, MapNode):
            raise refused(node, self.noun)
        for name, member in self.members.items():
            if name in node.entries:
                return member.read(node)
        if self.otherwise is not None:
            return self.otherwise.read(node)
        for name in node.entries:
            meant = nearest(name, self.members)
            if meant is not None:
                return self.members[meant].read(node)
        first, *others = self.members
        hint = f"{self.noun} has {first} or, instead, {' or '.join(others)}"
        raise UserError(MISSING_KEY.at(node.span, key=first, where=f" in {self.noun}", hint=hint))

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """One of the members."""
        members = [*self.members.values(), *([self.otherwise] if self.otherwise is not None else [])]
        return {"oneOf": [schema for member in members for schema in _flat(member.schema(definitions))]}


@dataclass(frozen=True, slots=True, eq=False)
class TextOr(Shape[A_co | B_co], Generic[A_co, B_co]):
    """A single value or a mapping."""

    single: Shape[A_co]
    mapping: Shape[B_co]

    def read(self, node: Node) -> A_co | B_co:
        """Whichever it is."""
        return self.mapping.read(node) if isinstance(node, MapNode) else self.single.read(node)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """Either."""
        return {"oneOf": [self.single.schema(definitions), self.mapping.schema(definitions)]}


def _flat(schema: JsonSchema) -> list[JsonSchema]:
    members = schema.get("oneOf")
    return members if isinstance(members, list) else [schema]
