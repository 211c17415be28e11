"""What a shape is, how it refuses a value, and how values know their place in a file."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, FrozenInstanceError, field
from datetime import date
from enum import Enum
from typing import ClassVar, Generic, NoReturn, TypeAlias, TypeVar, cast, dataclass_transform, overload

from clew.deferred import dataclass
from clew.definitions.nodes import NOWHERE, ListNode, MapNode, Node, ScalarNode, key_at, node_at
from clew.definitions.yaml_scalars import Scalar, scalar_value
from clew.diagnostics import Diagnostic, Span, UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE

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
        """The shape in JSON Schema. Named shapes add themselves to `definitions`."""


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


T = TypeVar("T")
D = TypeVar("D")
L = TypeVar("L", bound="Located")

_METADATA = "key"


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """The declaration of one key of a record."""

    shape: Shape[object]
    description: str
    named: str | None
    """The key in the file where it is not the name of the field, since Python keeps that word for itself."""
    same_as: str | None
    """The key whose value is used if this one is absent."""


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
    """Declare a key. Without a default it is required, unless another key replaces it."""
    metadata = {_METADATA: Key(shape, description, named, same_as)}
    return field(  # type: ignore[call-overload]
        default=default, default_factory=default_factory, hash=shape.hashable, metadata=metadata
    )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key, field))
def record(noun: str) -> Callable[[type[L]], type[L]]:
    """Declare a record. The noun with its article is what messages call it."""

    def declare(declared: type[L]) -> type[L]:
        made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(declared)
        made.noun = noun
        made.fields = dataclasses.fields(made)
        made.keys = {each.name: each for each in _declared_keys(made.fields)}
        return made

    return declare


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredKey:
    """A key with the field that holds its value."""

    attribute: str
    key: Key
    is_required: bool
    default: object

    @property
    def name(self) -> str:
        """The key in the file."""
        return self.key.named or self.attribute

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """What the key takes, in JSON Schema."""
        schema = self.key.shape.schema(definitions) | {"description": self.key.description}
        default = _plain(self.default)
        return schema if default is None else schema | {"default": default}


def _plain(default: object) -> object:
    """A default in JSON, or None if it need not or cannot be shown."""
    match default:
        case Enum():
            return default.value
        case str() | int():
            return default
        case tuple():
            return [_plain(item) for item in default]
        case _:
            return None


def _declared_keys(fields: tuple[dataclasses.Field[object], ...]) -> Iterator[DeclaredKey]:
    for each in fields:
        if _METADATA in each.metadata:
            is_required = each.default is MISSING and each.default_factory is MISSING
            yield DeclaredKey(each.name, each.metadata[_METADATA], is_required, each.default)


@record("a mapping")
class Located:
    """A frozen value from a file. Its place does not matter for equality."""

    noun: ClassVar[str]
    fields: ClassVar[tuple[dataclasses.Field[object], ...]]
    keys: ClassVar[Mapping[str, DeclaredKey]]

    node: Node = field(default=NOWHERE, repr=False, compare=False)

    def __init__(self, **values: object) -> None:
        for each in self.fields:
            if each.name in values:
                value = values.pop(each.name)
            elif each.default_factory is not MISSING:
                value = each.default_factory()
            elif each.default is not MISSING:
                value = each.default
            else:
                raise TypeError(f"{type(self).__name__} needs {each.name}")
            object.__setattr__(self, each.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Located) or type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in self.fields if each.compare)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, each.name) for each in self.fields if each.compare and each.hash is not False))

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in self.fields if each.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

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
        """What is wrong between values that are right by themselves."""
        return iter(())


@record("a definition")
class Definition(Located):
    """The content of a whole file."""

    @property
    def file(self) -> str:
        """The file, relative to the workspace."""
        return self.node.source.file


def problems_in(value: Located) -> list[Diagnostic]:
    """What the checks of a value and of everything below it report.

    Checks come after the whole was read, so that one of them finds all values there, and all are reported together.
    """
    found: list[Diagnostic] = []
    pending: list[object] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Located):
            found.extend(each.check())
            below: Iterable[object] = (getattr(each, key.attribute) for key in each.keys.values())
        elif isinstance(each, dict):
            below = each.values()
        else:
            below = cast(tuple[object, ...], each)
        pending.extend(item for item in below if isinstance(item, Located | dict | tuple))
    return found
