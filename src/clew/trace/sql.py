"""Pieces of SQL for DuckDB. Names are quoted only here, and values are always bound.

Also the SQL of a column's value after the last step that changed it.
"""

from collections.abc import Iterable, Mapping, Sequence

from clew.deferred import dataclass
from clew.lang.types import Kind, Type
from clew.storage.parts import MASK_BITS, Part, TracedStep, after_column, change_columns, mask_column
from clew.storage.root import RemoteSource

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
    remote: tuple[RemoteSource, ...] = ()
    """The files among them that DuckDB cannot open by itself."""

    def __add__(self, other: "Sql | str") -> "Sql":
        if isinstance(other, str):
            return Sql(self.text + other, self.parameters, self.remote)
        return Sql(self.text + other.text, self.parameters + other.parameters, self.remote + other.remote)

    def __radd__(self, other: str) -> "Sql":
        return Sql(other + self.text, self.parameters, self.remote)


def joined(separator: str, pieces: Iterable[Sql]) -> Sql:
    """Pieces one after the other."""
    found = list(pieces)
    return Sql(
        separator.join(piece.text for piece in found),
        tuple(parameter for piece in found for parameter in piece.parameters),
        tuple(source for piece in found for source in piece.remote),
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


def parquet(sources: Iterable[str], options: str = "") -> Sql:
    """A table function that reads files. Their names are names, not patterns."""
    found = list(sources)
    names = [str(source) if isinstance(source, RemoteSource) else _literal(source) for source in found]
    remote = tuple(source for source in found if isinstance(source, RemoteSource))
    return Sql(f"read_parquet(?{options})", (names,), remote)


def _literal(path: str) -> str:
    return "".join(f"[{ch}]" if ch in _GLOB_CHARACTERS else ch for ch in path)


def layers_of(
    changes: Sequence[tuple[Part, TracedStep]], types: Mapping[str, Type]
) -> list[tuple[Part, list[TracedStep]]]:
    """The parts, with their steps, that change any of these columns."""
    layers = dict[str, tuple[Part, list[TracedStep]]]()
    for part, step in changes:
        if part.files and needed_columns(step, types):
            layers.setdefault(part.name, (part, []))[1].append(step)
    return list(layers.values())


def needed_columns(step: TracedStep, types: Mapping[str, Type]) -> list[str]:
    """The columns of a step in the file of its part that say what happened to these columns."""
    if step.kind == "delete":
        return [mask_column(step.seq)] if "_deleted" in types else []
    names = list[str]()
    for position, column in enumerate(step.columns):
        if column in types:
            names += [mask_column(step.seq, position // MASK_BITS), after_column(step.seq, position)]
    return names


def latest_value(name: str, type_: Type, layers: Sequence[tuple[Part, Sequence[TracedStep]]]) -> str:
    """The value of a column after the last step that changed it."""
    cases = list[str]()
    for index, (_, steps) in enumerate(layers):
        for step in steps:
            if step.kind == "delete":
                if name == "_deleted":
                    cases.append(f"WHEN c{index}.{quoted(mask_column(step.seq))} IS NOT NULL THEN TRUE")
            elif name in step.columns:
                position = step.columns.index(name)
                value = typed_column(after_column(step.seq, position), type_)
                cases.append(f"WHEN {is_set(step, position, f'c{index}.')} THEN {value}")
    if not cases:
        return f"created.{quoted(name)}"
    return f"CASE {' '.join(reversed(cases))} ELSE created.{quoted(name)} END"


def is_set(step: TracedStep, position: int, table: str = "") -> str:
    """SQL that is TRUE where a step changed the column at a position of its assignments."""
    mask = table + quoted(mask_column(step.seq, position // MASK_BITS))
    value = table + quoted(after_column(step.seq, position))
    return f"({value} IS NOT NULL OR ({mask} & {1 << position % MASK_BITS}) <> 0)"


def is_touched(step: TracedStep) -> str:
    """SQL that is TRUE where a step changed anything."""
    return "(" + " OR ".join(f"{quoted(name)} IS NOT NULL" for name in change_columns(step)) + ")"
