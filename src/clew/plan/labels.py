"""Labels and the qualified names that they make."""

import re

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
