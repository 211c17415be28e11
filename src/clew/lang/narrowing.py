"""Conditions that people click together: the texts of comparisons with one value."""

import math
import re
from datetime import datetime
from decimal import Decimal

from clew.lang.literals import text_of_value
from clew.lang.text_form import name_text
from clew.lang.typed import Value

_JOINING = re.compile(r"\bOR\b", re.IGNORECASE)


def literal_of(value: Value) -> str | None:
    """A value as the language writes it; None for values that no literal can say."""
    if isinstance(value, datetime):
        return None
    if isinstance(value, float):
        return text_of_value(Decimal(repr(value))) if math.isfinite(value) else None
    return text_of_value(value)


def only(column: str, literal: str) -> str:
    """The condition that a column has a value, or none."""
    return f"{name_text(column)} IS NULL" if literal == "NULL" else f"{name_text(column)} = {literal}"


def without(column: str, literal: str) -> str:
    """The condition that a column has another value, or none: a comparison alone would leave out NULL."""
    name = name_text(column)
    return f"{name} IS NOT NULL" if literal == "NULL" else f"({name} <> {literal} OR {name} IS NULL)"


def between(column: str, least: str, greatest: str) -> str:
    """The condition that a column lies in a range; an end that is left out is open."""
    name = name_text(column)
    return " AND ".join(f"{name} {sign} {end}" for sign, end in ((">=", least), ("<=", greatest)) if end)


def within(where: str) -> str:
    """What stands before a condition that narrows another one down."""
    where = where.strip()
    if not where:
        return ""
    return f"({where}) AND " if _JOINING.search(where) else f"{where} AND "
