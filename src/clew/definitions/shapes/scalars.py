"""Shapes of single values.

Among them paths and templates: which placeholders exist, and that a path stays in its folder.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Generic, TypeVar

from clew.deferred import dataclass
from clew.definitions.expression_text import ExpressionText
from clew.definitions.nodes import Node, ScalarNode
from clew.definitions.shapes.located import JsonSchema, Shape, found, refused
from clew.definitions.yaml_scalars import Scalar, Value, scalar_value, value_of
from clew.diagnostics import Diagnostic, UserError, did_you_mean
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.types import TYPE_NAMES, Type, parse_type

PLACEHOLDERS = ("period", "table", "dataset", "level", "start_date", "end_date", "year", "quarter", "month")
"""What a path or table template may name in braces."""

_BRACES = re.compile(r"\{([^{}]*)\}|[{}]")

_FORMAT_OF_SUFFIX = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


def climbs_out(path: str) -> bool:
    """Whether `..` leads above the folder that a relative path starts in."""
    depth = 0
    for part in re.split(r"[/\\]", path):
        if part == "..":
            depth -= 1
        elif part not in {"", "."}:
            depth += 1
        if depth < 0:
            return True
    return False


def unknown_placeholders(template: str) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, problem and hint of each brace in a template that is not a known placeholder."""
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for match in _BRACES.finditer(template):
        name = match[1]
        if name is None:
            yield match.start(), match.end(), f'"{match[0]}" has no matching brace', f"the placeholders are {known}"
        elif name not in PLACEHOLDERS:
            hint = did_you_mean(name, PLACEHOLDERS) or "correct the name"
            yield match.start(), match.end(), f"no placeholder {{{name}}}; the placeholders are {known}", hint


def format_of_path(path: str) -> str:
    """The file format that the suffix of a path stands for; Parquet where it says nothing."""
    return _FORMAT_OF_SUFFIX.get(PurePosixPath(path).suffix.lower(), "parquet")


T_co = TypeVar("T_co", covariant=True)
E_co = TypeVar("E_co", bound=StrEnum, covariant=True)
S_co = TypeVar("S_co", bound=str, covariant=True)


class Single(Shape[T_co], Generic[T_co]):
    """A shape whose schema needs no other definition."""

    @property
    @abstractmethod
    def own_schema(self) -> JsonSchema:
        """The shape in JSON Schema."""

    def schema(self, _definitions: dict[str, JsonSchema]) -> JsonSchema:
        """The same everywhere."""
        return self.own_schema


def _text(node: Node, expected: str) -> str:
    if not isinstance(node, ScalarNode):
        raise refused(node, expected)
    value = scalar_value(node)
    if isinstance(value, str):
        return value
    hint = None if value is None else f'put it in quotes: "{node.text}"'
    raise refused(node, expected, hint=hint)


@dataclass(frozen=True, slots=True, eq=False)
class TextShape(Single[str]):
    """Text, perhaps of a certain form."""

    expected: str = "text"
    pattern: str = ""
    """A regular expression for the whole text; "" for any."""
    form: str = ""
    """The pattern in words."""

    def read(self, node: Node) -> str:
        """The text."""
        value = _text(node, self.expected)
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise refused(node, self.form or self.expected)
        return value

    @property
    def own_schema(self) -> JsonSchema:
        """A string."""
        pattern: JsonSchema = {"pattern": f"^{self.pattern}$"} if self.pattern else {}
        return {"type": "string", **pattern}


@dataclass(frozen=True, slots=True, eq=False)
class PathText(Single[str]):
    """A path that stays below where it starts; a template may have placeholders."""

    is_template: bool

    def read(self, node: Node) -> str:
        """The path as written."""
        value = _text(node, "a path")
        if not value.strip():
            raise refused(node, "a path")
        problems = list(self._problems(ExpressionText(value, node)))
        if problems:
            raise UserError(*problems)
        return value

    def _problems(self, path: ExpressionText) -> Iterator[Diagnostic]:
        if climbs_out(path.value):
            problem = f'the path "{path.value}" leads out of its folder by ".."'
            yield INVALID_VALUE.at(path.node.span, problem=problem, hint="name a path below the folder")
        for start, end, problem, hint in unknown_placeholders(path.value) if self.is_template else ():
            yield INVALID_VALUE.at(path.span(start, end), problem=problem, hint=hint)

    @property
    def own_schema(self) -> JsonSchema:
        """A string."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True, eq=False)
class Whole(Single[int]):
    """A whole number."""

    minimum: int
    maximum: int | None = None

    def read(self, node: Node) -> int:
        """The number."""
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if isinstance(value, str) and value.strip().isdigit():
            raise refused(node, self._expected, hint="remove the quotes")
        if not isinstance(value, int) or isinstance(value, bool):
            raise refused(node, self._expected)
        if value < self.minimum or (self.maximum is not None and value > self.maximum):
            raise refused(node, self._expected)
        return value

    @property
    def _expected(self) -> str:
        if self.maximum is None:
            return f"a whole number of at least {self.minimum}"
        return f"a whole number from {self.minimum} to {self.maximum}"

    @property
    def own_schema(self) -> JsonSchema:
        """An integer."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return {"type": "integer"} | {name: bound for name, bound in bounds.items() if bound is not None}


class Flag(Single[bool]):
    """True or false."""

    def read(self, node: Node) -> bool:
        """The value."""
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if not isinstance(value, bool):
            raise refused(node, "true or false", hint="write true or false, without quotes")
        return value

    @property
    def own_schema(self) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


class Day(Single[date]):
    """A date, with or without quotes."""

    def read(self, node: Node) -> date:
        """The date."""
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if isinstance(value, str) and isinstance(node, ScalarNode):
            unquoted = ScalarNode(node.source, node.start, node.end, value, "")
            value = scalar_value(unquoted)
        if not isinstance(value, date):
            raise refused(node, "a date such as 2026-01-31")
        return value

    @property
    def own_schema(self) -> JsonSchema:
        """A string, which is what editors take a date for."""
        return {"type": "string", "format": "date"}


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Single[E_co], Generic[E_co]):
    """One of a few words."""

    options: type[E_co]

    def read(self, node: Node) -> E_co:
        """The member of the enumeration."""
        words = [option.value for option in self.options]
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or value not in words:
            hint = did_you_mean(value, words) if isinstance(value, str) else None
            problem = f"expected {_either(words)}; found {found(node)}"
            raise UserError(INVALID_VALUE.at(node.span, problem=problem, hint=hint))
        return self.options(value)

    @property
    def own_schema(self) -> JsonSchema:
        """The words."""
        return {"enum": [option.value for option in self.options]}


@dataclass(frozen=True, slots=True, eq=False)
class ConstantShape(Single[S_co], Generic[S_co]):
    """One word that distinguishes a record from its siblings."""

    value: S_co

    def read(self, node: Node) -> S_co:
        """The word."""
        if not isinstance(node, ScalarNode) or scalar_value(node) != self.value:
            raise refused(node, f'"{self.value}"')
        return self.value

    @property
    def own_schema(self) -> JsonSchema:
        """The word."""
        return {"const": self.value}


class ExpressionShape(Single[ExpressionText]):
    """An expression of the language, which is parsed elsewhere. Without quotes, `0` and `true` are expressions too."""

    def read(self, node: Node) -> ExpressionText:
        """The text with its places."""
        if not isinstance(node, ScalarNode):
            raise refused(node, "an expression")
        if not node.text.strip():
            raise refused(node, "an expression", hint="write an expression, or remove the key")
        return ExpressionText(node.text, node)

    @property
    def own_schema(self) -> JsonSchema:
        """Text, or one of the values that are expressions by themselves."""
        return {"type": ["string", "number", "boolean"]}


class SelectorShape(ExpressionShape):
    """An expression that chooses rows. A key without a value could mean all rows or none, so it is neither."""

    def read(self, node: Node) -> ExpressionText:
        """The text with its places."""
        if isinstance(node, ScalarNode) and scalar_value(node) is None:
            raise refused(node, "an expression", hint="remove the key to choose all rows, or write FALSE for none")
        return super().read(node)


class ColumnTypeName(Single[Type]):
    """The name of a column type."""

    def read(self, node: Node) -> Type:
        """The type."""
        name = _text(node, "the name of a type")
        try:
            return parse_type(name)
        except ValueError as error:
            hint = "correct it" if name.strip().lower().startswith("decimal") else did_you_mean(name, TYPE_NAMES)
            raise UserError(INVALID_VALUE.at(node.span, problem=str(error), hint=hint)) from None

    @property
    def own_schema(self) -> JsonSchema:
        """The names, in small or capital letters."""
        names = "string|integer|double|boolean|date|timestamp"
        decimal = r"decimal\s*(\(\s*\d{1,2}\s*(,\s*\d{1,2}\s*)?\))?"
        anycase = "".join(f"[{ch}{ch.upper()}]" if ch.isalpha() else ch for ch in names)
        anycase_decimal = decimal.replace("decimal", "".join(f"[{ch}{ch.upper()}]" for ch in "decimal"), 1)
        pattern = rf"^\s*({anycase}|{anycase_decimal})\s*$"
        return {"type": "string", "pattern": pattern, "examples": [*names.split("|"), "decimal", "decimal(18,2)"]}


class AnyScalar(Single[Scalar]):
    """Any single value: a cell of a row, an option of a format."""

    def read(self, node: Node) -> Scalar:
        """The value."""
        if not isinstance(node, ScalarNode):
            raise refused(node, "a single value")
        return scalar_value(node)

    @property
    def own_schema(self) -> JsonSchema:
        """Anything but a list or a mapping."""
        return {"type": ["string", "number", "boolean", "null"]}


class AnyValue(Single[Value]):
    """Anything."""

    @property
    def hashable(self) -> bool:
        """Mappings are not."""
        return False

    def read(self, node: Node) -> Value:
        """The value."""
        return value_of(node)

    @property
    def own_schema(self) -> JsonSchema:
        """Anything."""
        return {}


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


TEXT = TextShape()
NAME = TextShape("a name", r"\S(?:[^\n]*\S)?", "a name without spaces around it")
SLUG = TextShape(
    "an id",
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    "an id of letters, digits, '.', '_' and '-' that starts with a letter or digit",
)
SECRET = TextShape('a reference to a secret such as "secret://env/NAME"', r"secret://\S+")
PATH = PathText(is_template=False)
TEMPLATE = PathText(is_template=True)
FLAG = Flag()
DAY = Day()
EXPRESSION = ExpressionShape()
SELECTOR = SelectorShape()
COLUMN_TYPE = ColumnTypeName()
ANY_SCALAR = AnyScalar()
ANY_VALUE = AnyValue()
