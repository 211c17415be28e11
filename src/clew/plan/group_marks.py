"""Marks of groups: a number for the groups of a control total that two witnesses can compare without listing them.

Spark cannot say what each group amounts to while it writes an output. It can add up all amounts, each multiplied by a
number that follows from the keys of its group. The trace gives the same sum from its groups. If an amount counts in
another group, the sums differ, except for about one in a million such mistakes.

Amounts are taken modulo a prime, so that no sum overflows.
"""

import zlib
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal, localcontext

from clew.lang.typed import Value
from clew.lang.types import Kind
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.plan.planned_controls import PlannedControl

MODULUS = 1_000_003
WEIGHTS = 65_521
SEPARATOR, GIVEN, MISSING = "\x01", "v", "n"
MOST_DECIMALS = 8
"""Amounts with more have no mark: their sum might need more than 38 digits."""

_KINDS = frozenset({Kind.STRING, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE})
"""Types whose values Spark and Python write as the same text."""


def has_marks(plan: Plan, output: OutputStep, control: PlannedControl) -> bool:
    """Whether the groups of a control total can be compared at an output."""
    known = {column.name: column.type.kind for column in plan.columns_after(output.seq)}
    are_alike = all(known.get(name) in _KINDS for name in control.by)
    return bool(control.by) and are_alike and control.scale <= MOST_DECIMALS and not control.largest_difference


def mark_of(groups: Mapping[tuple[Value, ...], tuple[int, Decimal]]) -> str:
    """The mark of groups with their numbers of rows and their amounts, by their keys."""
    rows, amount = 0, Decimal(0)
    with localcontext(prec=200):
        for key, (count, total) in groups.items():
            weight = _weight(key)
            rows += count * weight
            amount += (total % MODULUS) * weight
        return written_mark(rows, amount)


def written_mark(rows: int, amount: Decimal) -> str:
    """A mark as text, from the sums over rows or groups."""
    with localcontext(prec=200):
        # The remainder of Decimal has the sign of the dividend; equal marks must be equal texts.
        remainder = ((amount % MODULUS) + MODULUS) % MODULUS
        return f"{rows} {remainder.normalize():f}"


def _weight(key: Sequence[Value]) -> int:
    text = SEPARATOR.join(MISSING if value is None else GIVEN + _text(value) for value in key)
    return 1 + zlib.crc32(text.encode("utf-8", "surrogatepass")) % WEIGHTS


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)
