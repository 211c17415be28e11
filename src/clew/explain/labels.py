"""What people call a row."""

from collections.abc import Mapping, Sequence

from clew.lang.conversion import to_text
from clew.lang.typed import Value
from clew.plan.steps import AggregateStep, AppendStep, Step


def key_label(cells: Mapping[str, Value], key: Sequence[str]) -> str:
    """The values of a key, or nothing where the row has none."""
    values = [cells.get(name) for name in key]
    return "/".join(to_text(value) for value in values if value is not None)


def row_label(cells: Mapping[str, Value], natural_key: Sequence[str], created_by: Step | None) -> str:
    """The natural key of a row, or the keys of its group."""
    label = key_label(cells, natural_key)
    if not label and isinstance(created_by, AggregateStep | AppendStep):
        label = key_label(cells, created_by.group_by or ())
    return label
