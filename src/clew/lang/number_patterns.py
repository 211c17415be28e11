"""Patterns in which exact numbers are written: 0.00, #,##0.00, 00000.

Zeros before the point are the fewest digits there; those after it are all digits there, rounded half-up. With #,##
before them the thousands are divided by commas.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from clew.lang.arithmetic import round_half_up

_PATTERN = re.compile(r"(#,##)?(0{1,18})(?:\.(0{1,18}))?", re.ASCII)


class NumberPatternProblem(ValueError):
    """Why a pattern is not taken."""

    hint = 'write for example "0.00", "#,##0.00" or "00000"'


class NumberPattern(NamedTuple):
    """What a pattern says."""

    grouped: bool
    whole_digits: int
    digits: int


@lru_cache(maxsize=256)
def number_pattern(pattern: str) -> NumberPattern:
    """What a pattern says. NumberPatternProblem where it says nothing."""
    found = _PATTERN.fullmatch(pattern)
    if found is None:
        raise NumberPatternProblem(f'"{pattern}" is not a pattern of numbers')
    return NumberPattern(found[1] is not None, len(found[2]), len(found[3] or ""))


def written_number(value: Decimal, pattern: str) -> str:
    """An exact number as a text of a pattern."""
    grouped, whole_digits, digits = number_pattern(pattern)
    rounded = round_half_up(value, digits)
    whole, _, behind = f"{rounded.copy_abs():f}".partition(".")
    whole = whole.rjust(whole_digits, "0")
    if grouped:
        whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    return f"{'-' if rounded < 0 else ''}{whole}{'.' + behind if behind else ''}"
