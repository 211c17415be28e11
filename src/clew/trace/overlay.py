"""Changes laid over rows: the SQL of a column's value after the last step that changed it."""

from collections.abc import Mapping, Sequence

from clew.lang.types import Type
from clew.trace.layout import MASK_BITS, Part, TracedStep, after_column, change_columns, mask_column
from clew.trace.sql import quoted, typed_column


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
    """The columns of a step in the file of its part that say what became of these columns."""
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
