"""Stored values against what the evaluator in Python makes of the same inputs."""

import math
from collections.abc import Callable

from clew.diagnostics import ClewError
from clew.explain.tree import Recomputed
from clew.lang.typed import Value

_SAME_DOUBLES = 1e-9
"""How far sums of doubles may lie apart: they depend on the order of adding, which Spark does not promise."""


def compared(stored: Value, compute: Callable[[], Value]) -> Recomputed:
    """Compute a value again and compare it with the one that was stored."""
    try:
        value = compute()
    except ClewError as error:
        return Recomputed("differs", stored, None, str(error))
    return Recomputed("equal" if _is_same(stored, value) else "differs", stored, value)


def _is_same(stored: Value, value: Value) -> bool:
    if isinstance(stored, float) and isinstance(value, float):
        both_nan = math.isnan(stored) and math.isnan(value)
        return both_nan or math.isclose(stored, value, rel_tol=_SAME_DOUBLES)
    return stored == value
