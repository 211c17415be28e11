"""Shapes of lists, mappings and records, and of values that are one of several things.

A record is a mapping with declared keys, read into a frozen value that knows its place. Alternatives are distinguished
by a word, a key, or the kind of the value.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Generic, TypeVar

from clew.deferred import dataclass
from clew.definitions.nodes import MOST_PROBLEMS, ListNode, MapNode, Node, ScalarNode
from clew.definitions.shapes.located import DeclaredKey, JsonSchema, Located, Shape, found, refused
from clew.definitions.yaml_scalars import scalar_value
from clew.diagnostics import Diagnostic, UserError, did_you_mean, nearest
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY, UNKNOWN_KEY

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


L_co = TypeVar("L_co", bound=Located, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Record(Shape[L_co], Generic[L_co]):
    """A mapping with the keys that a record declares."""

    declared: type[L_co]
    stand_ins: Mapping[str, object] = field(default_factory=dict)
    """Values for required keys that may be left out in this place."""

    def read(self, node: Node) -> L_co:
        """The record."""
        if not isinstance(node, MapNode):
            names = ", ".join(self.declared.keys)
            hint = f"write a mapping with the keys {names}" if names else "remove the key, or write {}"
            raise refused(node, self.declared.noun, hint=hint)
        keys = self.declared.keys
        values: dict[str, object] = {"node": node}
        problems: list[Diagnostic] = []
        for name, entry in node.entries.items():
            declared = keys.get(name)
            if declared is None:
                continue
            try:
                values[declared.attribute] = declared.key.shape.read(entry.value)
            except UserError as error:
                problems.extend(error.diagnostics)
        problems.extend(self._strangers(node, keys))
        if problems:
            raise UserError(*problems)
        make: Callable[..., L_co] = self.declared
        return make(**self._completed(values, keys))

    def _strangers(self, node: MapNode, keys: Mapping[str, DeclaredKey]) -> Iterator[Diagnostic]:
        """Unknown and missing keys. A missing key that an unknown one was meant to be is not reported as well."""
        where = f" in {self.declared.noun}"
        known = (
            f"the keys of {self.declared.noun} are {', '.join(keys)}" if keys else f"{self.declared.noun} have no keys"
        )
        unknown = [entry.key for name, entry in node.entries.items() if name not in keys]
        free = [name for name in keys if name not in node.entries]
        meant: set[str | None] = set()
        for stranger in unknown[:MOST_PROBLEMS]:
            meant.add(nearest(stranger.text, free))
            hint = did_you_mean(stranger.text, free) or known
            if stranger.text.count(")") > stranger.text.count("("):
                hint = "inside { } a comma ends a value: put the whole expression in quotes"
            yield UNKNOWN_KEY.at(stranger.span, key=stranger.text, where=where, hint=hint)
        for name in free:
            if self._requires(keys[name]) and name not in meant:
                yield MISSING_KEY.at(node.span, key=name, where=where)

    def _requires(self, declared: DeclaredKey) -> bool:
        return declared.is_required and declared.key.same_as is None and declared.name not in self.stand_ins

    def _completed(self, values: dict[str, object], keys: Mapping[str, DeclaredKey]) -> dict[str, object]:
        for name, declared in keys.items():
            if declared.attribute not in values:
                if name in self.stand_ins:
                    values[declared.attribute] = self.stand_ins[name]
                elif declared.key.same_as is not None:
                    values[declared.attribute] = values[declared.key.same_as]
        return values

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A reference to the definition of the record."""
        name = self.declared.__name__ + ("Inline" if self.stand_ins else "")
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = self.own_schema(definitions)
        return {"$ref": f"#/$defs/{name}"}

    def own_schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """The definition of the record itself."""
        keys = self.declared.keys
        required = [name for name, declared in keys.items() if self._requires(declared)]
        return {
            "title": self.declared.noun.removeprefix("a ").removeprefix("an "),
            "description": (self.declared.__doc__ or "").strip(),
            "type": "object",
            "properties": {name: declared.schema(definitions) for name, declared in keys.items()},
            "additionalProperties": False,
        } | ({"required": required} if required else {})


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
    """What it is without any of the keys; None if one of them is needed."""

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
