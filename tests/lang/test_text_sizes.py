"""No expression makes a text out of all proportion: both evaluators refuse it, and a question has a bound in all."""

import pytest

from clew.budgets import QuestionLimits, asking
from clew.diagnostics import UserError
from clew.lang import evaluate

MOST = 1_000_000


def grown(text: str, times: int) -> str:
    """An expression that makes a text ten times as long, several times."""
    for _ in range(times):
        text = f'REPLACE({text}, "a", "{"a" * 10}")'
    return text


def test_a_short_expression_cannot_make_a_gigabyte() -> None:
    bomb = f"LEN({grown('a', 9)}) > 5"
    assert len(bomb) < 294
    with pytest.raises(UserError) as raised:
        evaluate(bomb, {"a": "a"})
    assert raised.value.code == "ValueOutOfRange"
    assert "1,000,000 characters" in raised.value.diagnostic.message


@pytest.mark.parametrize(
    ("expression", "row"),
    [
        ('REPLACE(s, "a", "bb")', {"s": "a" * (MOST // 2)}),
        ('REPLACE(s, "a", "bb")', {"s": "a" + "é" * (MOST - 2)}),
        ("CONCAT(s, t)", {"s": "😀" * (MOST - 1), "t": "x"}),
    ],
)
def test_a_million_characters_fit_and_one_more_does_not(expression: str, row: dict[str, str]) -> None:
    assert evaluate(f"LEN({expression})", row) == MOST
    with pytest.raises(UserError) as raised:
        evaluate(f"LEN({expression})", row | {"s": row["s"] + "a"})
    assert raised.value.code == "ValueOutOfRange"


@pytest.mark.parametrize(
    "expression",
    [
        'REPLACE(s, "a", "b")',
        'REPLACE(s, "aa", "")',
        'REPLACE(s, "", "b")',
        'REPLACE(s, "x", "")',
        "UPPER(s)",
        "TRIM(s)",
    ],
)
def test_a_longer_text_of_the_data_can_be_used_as_long_as_it_does_not_grow(expression: str) -> None:
    evaluate(expression, {"s": "a" * (2 * MOST)})


def test_a_null_stays_null_however_long_the_rest_is() -> None:
    assert evaluate("CONCAT(s, s, t)", {"s": "a" * MOST, "t": None}) is None
    assert evaluate('REPLACE(s, "a", t)', {"s": "a" * MOST, "t": None}) is None


def test_the_texts_of_a_row_together_stay_within_the_memory_of_the_question() -> None:
    many = " OR ".join(f"LEN({grown('CONCAT(a, a, a, a, a, a, a, a, a)', 5)}) = {number}" for number in range(20))
    with asking(QuestionLimits(memory_bytes=200_000_000)):
        assert evaluate(many, {"a": "a"}) is False
    with pytest.raises(UserError) as raised, asking(QuestionLimits(memory_bytes=20_000_000)):
        evaluate(many, {"a": "a"})
    assert raised.value.code == "QuestionTooLarge"


def test_the_texts_of_a_row_are_free_when_the_next_row_begins() -> None:
    with asking(QuestionLimits(memory_bytes=20_000_000)):
        for _ in range(20):
            assert evaluate(f"LEN({grown('a', 5)})", {"a": "a"}) == 100_000
