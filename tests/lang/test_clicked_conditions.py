"""Conditions that are clicked together, and what is offered while one is typed."""

from datetime import date, datetime
from decimal import Decimal

import pytest

import clew
from clew.lang.completion import completions
from clew.lang.narrowing import between, literal_of, only, within, without
from clew.lang.typed import Value
from clew.lang.types import DATE, INTEGER, STRING

VALUES: tuple[Value, ...] = (
    None,
    "",
    'say "hi"',
    "`",
    "עברית",
    True,
    False,
    0,
    -7,
    Decimal("-0.50"),
    1e-05,
    -12345678.25,
    date(2026, 1, 31),
)
NAMES = ("amount", "a b", "and", "`", "größe")
COLUMNS = {"amount": INTEGER, "amount_usd": INTEGER, "usd amount": INTEGER, "booked_on": DATE, "currency": STRING}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_row_is_among_these_or_among_the_others(name: str, value: Value) -> None:
    literal = literal_of(value)
    assert literal is not None
    others = [each for each in VALUES if type(each) is type(value) and each != value]
    for held, is_it in ((value, True), *((other, False) for other in others), (None, value is None)):
        assert (clew.lang.evaluate(only(name, literal), {name: held}) is True) is is_it
        assert (clew.lang.evaluate(without(name, literal), {name: held}) is True) is not is_it


def test_what_no_literal_can_say_is_not_offered() -> None:
    assert literal_of(datetime(2026, 1, 1, 12)) is None  # noqa: DTZ001 - timestamps have no zone
    assert literal_of(float("nan")) is None
    assert literal_of(float("inf")) is None


def test_a_range_may_be_open_at_either_end() -> None:
    assert between("a b", "1", "5") == "`a b` >= 1 AND `a b` <= 5"
    assert between("amount", "", "-5") == "amount <= -5"
    assert between("amount", "", "") == ""


def test_a_condition_is_narrowed_down_and_never_widened() -> None:
    row = {"amount": 1, "currency": "EUR"}
    for where in ("", "amount = 2", "amount = 1 OR amount = 2", "NOT amount = 1", 'currency = "x OR y"'):
        narrowed = within(where) + 'currency = "USD"'
        assert clew.lang.evaluate(narrowed, row) is not True
    assert within("amount = 2") == "amount = 2 AND "
    assert within("amount = 2 or amount = 3") == "(amount = 2 or amount = 3) AND "


def offered(typed: str) -> list[str]:
    return [each.text for each in completions(typed, COLUMNS).found]


def test_columns_come_first_then_functions_then_words() -> None:
    assert offered("am") == ["amount", "amount_usd", "`usd amount`"]
    assert offered('currency = "EUR" AND b')[0] == "booked_on"
    assert offered("STARTS") == ["STARTSWITH("]
    assert "BETWEEN" in offered("amount bet")
    found = completions("amount > 3 AND amo", COLUMNS)
    assert (found.start, found.found[0].about) == (15, "integer")


def test_nothing_is_offered_within_a_string_nor_after_a_whole_word() -> None:
    assert offered('currency = "am') == []
    assert offered("") == []
    assert offered("amount ") == []
    assert "currency" not in offered("currency")
    assert offered('currency = "a ""b"" c" AND cur') == ["currency"]


def test_a_name_in_backquotes_is_completed_whole() -> None:
    found = completions("amount = 1 AND `usd", COLUMNS)
    assert [each.text for each in found.found] == ["`usd amount`", "amount_usd"]
    assert found.start == 15


def test_aggregates_are_not_offered_since_conditions_cannot_have_them() -> None:
    assert "SUM(" not in offered("SU")
    assert "SUBSTRING(" in offered("SU")
