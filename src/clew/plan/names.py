"""Names in a plan: labels of breakpoints, and what people call rows."""

import re
from collections.abc import Iterable, Mapping

from clew.lang.conversion import to_text
from clew.lang.typed import Value
from clew.plan.datasets import DatasetUse, Names, distinct_names
from clew.plan.steps import StepBase

_LABEL = re.compile(r"[A-Za-z0-9._-]+")

SEPARATOR = "::"

CALLSITE = "__callsite_"
"""Starts the generated alias of a fragment use without an alias."""

STEP = "__step_"
"""Starts the generated label of a point without a label."""


def is_label(text: str) -> bool:
    """Whether a text can be a breakpoint label or a fragment alias."""
    return _LABEL.fullmatch(text) is not None and not text.startswith((CALLSITE, STEP))


def qualified(plan: str, path: str, label: str) -> str:
    """The name by which requests refer to a breakpoint."""
    return SEPARATOR.join((plan, path, label))


def names_of_created(loaded: DatasetUse, step: StepBase) -> Names:
    """What may name the rows that a step created, in a plan whose input is `loaded`.

    The natural key comes last: a summary may fill a part of it, which would name many rows alike.
    """
    return distinct_names([*step.row_names, *loaded.names])


def names_of_registered(loaded: DatasetUse, before: Iterable[StepBase], columns: Iterable[str]) -> Names:
    """What may name the rows of a dataset that an output registers, as far as it has the columns.

    `before` are the steps before the output. Where several would do, that with the most columns tells the most.
    """
    created = [key for step in before for key in step.row_names]
    found = distinct_names([*loaded.names[:1], *sorted([*loaded.names[1:], *created], key=len, reverse=True)])
    return tuple(key for key in found if set(key) <= set(columns))


class RowName(str):
    """What a row is called. It keeps the values that it is made of: not everyone may see all of them."""

    cells: tuple[tuple[str, Value], ...]
    suffix: str

    def __new__(cls, text: str, cells: Iterable[tuple[str, Value]] = (), suffix: str = "") -> "RowName":
        """A name; `suffix` is the end of the text that is not made of values."""
        made = super().__new__(cls, f"{text}{suffix}")
        made.cells, made.suffix = tuple(cells), suffix
        return made

    def with_suffix(self, suffix: str) -> "RowName":
        """The same name with something behind it."""
        return RowName(self.removesuffix(self.suffix), self.cells, self.suffix + suffix)


def name_of(cells: Mapping[str, Value], names: Iterable[tuple[str, ...]]) -> RowName:
    """What a row is called: by the first columns that all have a value, or else any; nothing if it has no name."""
    partly = RowName("")
    for key in names:
        values = [(name, value) for name in key if (value := cells.get(name)) is not None]
        called = RowName("/".join(to_text(value) for _, value in values), values)
        if len(values) == len(key):
            return called
        partly = partly or called
    return partly
