"""Names in a plan: labels of breakpoints, and what people call rows."""

import re
from collections.abc import Iterable, Iterator, Mapping

from clew.lang.conversion import to_text
from clew.lang.typed import ColumnValue, Convert, Value
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.steps import AggregateStep, AppendStep, OutputStep, Step

_LABEL = re.compile(r"[A-Za-z0-9._-]+")

SEPARATOR = "::"

CALLSITE = "__callsite_"
"""Begins the alias of a fragment use that has none of its own."""

STEP = "__step_"
"""Begins the label of a point that has none of its own."""


def is_label(text: str) -> bool:
    """Whether a text can be a breakpoint label or a fragment alias."""
    return _LABEL.fullmatch(text) is not None and not text.startswith((CALLSITE, STEP))


def qualified(plan: str, path: str, label: str) -> str:
    """The name by which requests ask for a breakpoint."""
    return SEPARATOR.join((plan, path, label))


Names = tuple[tuple[str, ...], ...]
"""Lists of columns that may name a row, those to try first in front."""


def names_of_dataset(use: DatasetUse) -> Names:
    """What may name the rows of a dataset."""
    return _distinct([use.natural_key, *use.row_names])


def names_of_created(plan: Plan, step: Step) -> Names:
    """What may name the rows that a step created.

    The natural key comes last: a summary may fill a part of it, which would name many rows alike.
    """
    return _distinct([*_own_names(step), *names_of_dataset(plan.input)])


def names_of_registered(plan: Plan, output: OutputStep) -> Names:
    """What may name the rows of a dataset that an output registers, as far as it has the columns.

    Where several would do, that with the most columns tells the most.
    """
    created = [key for step in plan.steps if step.seq < output.seq for key in _own_names(step)]
    loaded = names_of_dataset(plan.input)
    found = _distinct([*loaded[:1], *sorted([*loaded[1:], *created], key=len, reverse=True)])
    return tuple(key for key in found if set(key) <= set(output.columns))


def name_of(cells: Mapping[str, Value], names: Iterable[tuple[str, ...]]) -> str:
    """What a row is called: by the first columns that all have a value, or else any; nothing where it has no name."""
    partly = ""
    for key in names:
        values = [value for name in key if (value := cells.get(name)) is not None]
        called = "/".join(map(to_text, values))
        if len(values) == len(key):
            return called
        partly = partly or called
    return partly


def _own_names(step: Step) -> Iterator[tuple[str, ...]]:
    match step:
        case AggregateStep() | AppendStep() if step.group_by is not None:
            yield step.group_by
        case AppendStep():
            filled = {source: each.column for each in step.columns if (source := _column_of(each.value.tree))}
            for key in names_of_dataset(step.source):
                if all(name in filled for name in key):
                    yield tuple(filled[name] for name in key)
        case _:
            pass


def _column_of(tree: object) -> str | None:
    """The column that an appended value is taken from as it is."""
    inner = tree.operand if isinstance(tree, Convert) else tree
    return inner.column if isinstance(inner, ColumnValue) else None


def _distinct(keys: Iterable[tuple[str, ...]]) -> Names:
    return tuple(dict.fromkeys(key for key in keys if key))
