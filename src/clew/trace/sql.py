"""Pieces of SQL for DuckDB: names are quoted here and nowhere else, values are always bound."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clew.lang.types import Kind, Type

_TYPES = {
    Kind.STRING: "VARCHAR",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Sql:
    """A text with `?` in the places of its parameters."""

    text: str
    parameters: tuple[object, ...] = ()

    def __add__(self, other: "Sql | str") -> "Sql":
        if isinstance(other, str):
            return Sql(self.text + other, self.parameters)
        return Sql(self.text + other.text, self.parameters + other.parameters)

    def __radd__(self, other: str) -> "Sql":
        return Sql(other + self.text, self.parameters)


def joined(separator: str, pieces: Iterable[Sql]) -> Sql:
    """Pieces one behind the other."""
    found = list(pieces)
    return Sql(
        separator.join(piece.text for piece in found),
        tuple(parameter for piece in found for parameter in piece.parameters),
    )


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def sql_type(type_: Type) -> str:
    """The type of DuckDB for a type of the language."""
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _TYPES[type_.kind]


def typed_column(name: str, type_: Type) -> str:
    """A column as its declared type. Timestamps are instants in UTC, whether the file says so or not."""
    if type_.kind is Kind.TIMESTAMP:
        return f"make_timestamp(epoch_us({quoted(name)}))"
    return f"CAST({quoted(name)} AS {sql_type(type_)})"


def parquet(paths: Iterable[Path], options: str = "") -> Sql:
    """A table function that reads files. Their names are names, not patterns."""
    return Sql(f"read_parquet(?{options})", ([_literal(str(path)) for path in paths],))


def _literal(path: str) -> str:
    return "".join(f"[{ch}]" if ch in _GLOB_CHARACTERS else ch for ch in path)
