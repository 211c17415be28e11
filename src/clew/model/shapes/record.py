"""Records: mappings with declared keys, read into frozen values that know their place."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from typing import ClassVar, Generic, TypeVar, dataclass_transform, overload

from clew.diagnostics import Diagnostic, Span, UserError, did_you_mean, nearest
from clew.diagnostics.codes.workspace import MISSING_KEY, UNKNOWN_KEY
from clew.model.nodes import NOWHERE, MapNode, Node, key_at, node_at
from clew.model.shapes.shape import JsonSchema, Shape, refused

T = TypeVar("T")
D = TypeVar("D")
L = TypeVar("L", bound="Located")
L_co = TypeVar("L_co", bound="Located", covariant=True)

_METADATA = "key"


@dataclass(frozen=True, slots=True)
class Key:
    """The declaration of one key of a record."""

    shape: Shape[object]
    description: str
    named: str | None
    """The key in the file where it is not the name of the field, since Python keeps that word for itself."""
    same_as: str | None
    """The key whose value stands in where this one is absent."""


@dataclass(frozen=True, slots=True)
class _Declared:
    """A key with what the dataclass knows about it."""

    attribute: str
    key: Key
    is_required: bool
    default: object

    @property
    def name(self) -> str:
        return self.key.named or self.attribute


@overload
def key(shape: Shape[T], description: str, *, named: str | None = None, same_as: str | None = None) -> T: ...
@overload
def key(shape: Shape[T], description: str, *, named: str | None = None, default: D) -> T | D: ...
@overload
def key(shape: Shape[T], description: str, *, named: str | None = None, default_factory: Callable[[], D]) -> T | D: ...
def key(
    shape: Shape[object],
    description: str,
    *,
    named: str | None = None,
    same_as: str | None = None,
    default: object = MISSING,
    default_factory: object = MISSING,
) -> object:
    """Declare a key. Without a default it is required, unless another key stands in."""
    metadata = {_METADATA: Key(shape, description, named, same_as)}
    return field(  # type: ignore[call-overload]
        default=default, default_factory=default_factory, hash=shape.hashable, metadata=metadata
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value from a file. Where it stands plays no part in whether it equals another."""

    noun: ClassVar[str] = "a mapping"
    keys: ClassVar[Mapping[str, _Declared]] = {}

    node: Node = field(default=NOWHERE, repr=False, compare=False)

    @property
    def span(self) -> Span:
        """The place of the whole."""
        return self.node.span

    def place(self, *path: str | int) -> Span:
        """The place of a value below, by keys and positions; of the nearest one around it where it is absent."""
        return node_at(self.node, path).span

    def place_of_key(self, *path: str | int) -> Span:
        """The place of the key itself that a path ends with."""
        return key_at(self.node, path).span

    def check(self) -> Iterator[Diagnostic]:
        """What is wrong between the keys, each of which is right by itself."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Located):
    """The content of a whole file."""

    @property
    def file(self) -> str:
        """The file, relative to the workspace."""
        return self.node.source.file


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key,))
def record(noun: str) -> Callable[[type[L]], type[L]]:
    """Declare a record. The noun with its article is what messages call it."""

    def declare(declared: type[L]) -> type[L]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(declared)
        made.noun = noun
        made.keys = _declared_keys(made)
        return made

    return declare


def _declared_keys(made: type[Located]) -> Mapping[str, _Declared]:
    found = (
        _Declared(
            attribute=each.name,
            key=each.metadata[_METADATA],
            is_required=each.default is MISSING and each.default_factory is MISSING,
            default=each.default,
        )
        for each in dataclasses.fields(made)
        if _METADATA in each.metadata
    )
    return {each.name: each for each in found}


@dataclass(frozen=True, slots=True)
class Record(Shape[L_co], Generic[L_co]):
    """A mapping with the keys that a record declares."""

    declared: type[L_co]
    stand_ins: Mapping[str, object] = field(default_factory=dict)
    """Values for required keys that may be left out in this place."""

    def read(self, node: Node) -> L_co:
        """The record."""
        if not isinstance(node, MapNode):
            raise refused(node, self.declared.noun)
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
        made = make(**self._completed(values, keys))
        problems.extend(made.check())
        if problems:
            raise UserError(*problems)
        return made

    def _strangers(self, node: MapNode, keys: Mapping[str, _Declared]) -> Iterator[Diagnostic]:
        """Unknown and missing keys. A missing key that an unknown one was meant to be is not reported as well."""
        where = f" in {self.declared.noun}"
        unknown = [entry.key for name, entry in node.entries.items() if name not in keys]
        free = [name for name in keys if name not in node.entries]
        meant: set[str | None] = set()
        for stranger in unknown:
            meant.add(nearest(stranger.text, free))
            hint = did_you_mean(stranger.text, free) or f"the keys of {self.declared.noun} are {', '.join(keys)}"
            yield UNKNOWN_KEY.at(stranger.span, key=stranger.text, where=where, hint=hint)
        for name in free:
            if self._requires(keys[name]) and name not in meant:
                yield MISSING_KEY.at(node.span, key=name, where=where)

    def _requires(self, declared: _Declared) -> bool:
        return declared.is_required and declared.key.same_as is None and declared.name not in self.stand_ins

    def _completed(self, values: dict[str, object], keys: Mapping[str, _Declared]) -> dict[str, object]:
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
            "properties": {name: _property(declared, definitions) for name, declared in keys.items()},
            "additionalProperties": False,
        } | ({"required": required} if required else {})


def _property(declared: _Declared, definitions: dict[str, JsonSchema]) -> JsonSchema:
    schema = declared.key.shape.schema(definitions) | {"description": declared.key.description}
    default = _plain(declared.default)
    return schema if default is None else schema | {"default": default}


def _plain(default: object) -> object:
    """A default in JSON, or None where it cannot or need not be told."""
    match default:
        case Enum():
            return default.value
        case str() | int():
            return default
        case tuple():
            return [_plain(item) for item in default]
        case _:
            return None
