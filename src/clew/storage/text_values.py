"""Values of texts in files, read without Spark by the rules of their columns.

Independent of Spark's form of the same rules (`engine/loading/conversions`), so that tests hold one against the other.
"""

import math
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from clew.diagnostics import ClewError
from clew.lang.arithmetic import fit
from clew.lang.conversion import to_date, to_integer
from clew.lang.moment_patterns import moment_pattern, read_moment
from clew.lang.typed import Value
from clew.lang.types import Kind, Type
from clew.plan.file_rules import PLAIN, TextRules

BLANKS = " \t\r\n\u00a0"
"""What `trim` takes away."""
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,6})0*)?)?(Z|[+-]\d{2}(?::\d{2})?)?)?", re.ASCII
)


class NotAValue(ValueError):
    """A text that is none of the type of its column."""


def text_or_none(text: str | None, rules: TextRules, *, empty_is_null: bool = True) -> str | None:
    """A text without the blanks around it, where they do not count; None where it stands for no value."""
    if text is None:
        return None
    kept = text.strip(BLANKS) if rules.trim else text
    if kept in rules.nulls or (empty_is_null and not kept):
        return None
    return kept


def value_of_text(text: str | None, type_: Type, rules: TextRules = PLAIN, *, empty_is_null: bool = True) -> Value:
    """The value of a text, or the default where it stands for none. NotAValue where it has none of the type."""
    kept = text_or_none(text, rules, empty_is_null=empty_is_null)
    if kept is None:
        return None if rules.default is None else value_of_text(rules.default, type_, empty_is_null=False)
    return _typed(kept, type_, rules)


def is_value(text: str, type_: Type) -> bool:
    """Whether a default is a value of a type."""
    try:
        value_of_text(text, type_, empty_is_null=False)
    except NotAValue:
        return False
    return True


def _typed(text: str, type_: Type, rules: TextRules) -> Value:
    match type_.kind:
        case Kind.STRING | Kind.NULL:
            return text
        case Kind.INTEGER:
            return _integer(_plain_number(text, rules))
        case Kind.DECIMAL:
            return _decimal(_plain_number(text, rules), type_)
        case Kind.DOUBLE:
            return _double(text, rules)
        case Kind.BOOLEAN:
            return _boolean(text, rules)
        case Kind.DATE:
            return _day(text, rules)
        case Kind.TIMESTAMP:
            return _moment(text, rules)


def _plain_number(text: str, rules: TextRules, exponent: str = "") -> str:
    """A number with a point and without marks between digits."""
    mark, group = re.escape(rules.decimal_mark), re.escape(rules.thousands_mark)
    whole = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
    found = re.fullmatch(rf"( *[+-]?)(?:({whole})({mark}[0-9]*)?|()({mark}[0-9]+))({exponent} *)", text)
    if found is None:
        raise NotAValue(text)
    before = (found[2] or "").replace(rules.thousands_mark, "") if group else found[2] or ""
    behind = (found[3] or found[5] or "").replace(rules.decimal_mark, ".", 1)
    return f"{found[1]}{before}{behind}{found[6]}".strip(" ")


def _integer(text: str) -> int:
    if "." in text:
        raise NotAValue(text)
    try:
        return to_integer(text)
    except ClewError:
        raise NotAValue(text) from None


def _decimal(text: str, type_: Type) -> Decimal:
    """Digits beyond the scale must be zeros: loading never rounds."""
    exact = Decimal(text)
    try:
        fitted = fit(exact, type_)
    except ClewError:
        raise NotAValue(text) from None
    if fitted != exact:
        raise NotAValue(text)
    return fitted


def _double(text: str, rules: TextRules) -> float:
    if text in {"NaN", "Infinity", "-Infinity"}:
        return float(text)
    number = float(_plain_number(text, rules, "(?:[eE][+-]?[0-9]+)?"))
    if math.isinf(number):
        raise NotAValue(text)
    return number


def _boolean(text: str, rules: TextRules) -> bool:
    folded = text.lower()
    if folded in rules.true_values:
        return True
    if folded in rules.false_values:
        return False
    raise NotAValue(text)


def _day(text: str, rules: TextRules) -> date:
    if rules.formats:
        for each in rules.formats:
            found = read_moment(text, moment_pattern(each))
            if found is not None:
                return found.date()
        raise NotAValue(text)
    try:
        return to_date(text)
    except ClewError:
        raise NotAValue(text) from None


def _moment(text: str, rules: TextRules) -> datetime:
    if rules.formats:
        for each in rules.formats:
            found = read_moment(text, moment_pattern(each))
            if found is not None:
                return found
        raise NotAValue(text)
    match = _TIMESTAMP.fullmatch(text)
    if match is None or text.startswith("0000"):
        raise NotAValue(text)
    day, clock, seconds, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}:{seconds or '00'}")
    except ValueError:
        raise NotAValue(text) from None
    moment = moment.replace(microsecond=int((fraction or "0").ljust(6, "0")))
    return moment if zone is None else _in_utc(moment, zone)


def _in_utc(moment: datetime, zone: str) -> datetime:
    if zone == "Z":
        return moment
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        raise NotAValue(zone)
    shift = timedelta(hours=hours, minutes=minutes) * (1 if zone[0] == "+" else -1)
    return moment.replace(tzinfo=timezone(shift)).astimezone(timezone.utc).replace(tzinfo=None)  # noqa: UP017
