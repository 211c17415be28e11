"""Any text is read, or refused with a diagnostic that points into it."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import PlainText, Span, UserError, render
from clew.lang import Scalar, Scope, Table, check, parse, text_of
from clew.lang.evaluation import Row, evaluator
from clew.lang.lexer import MAX_CHARACTERS
from clew.lang.parser import MAX_NESTING
from clew.lang.syntax import MAX_DEPTH, Call, Literal
from clew.lang.typed import from_json, to_json
from clew.lang.types import BOOLEAN, INTEGER, decimal
from tests.tiers import examples

TYPES = {"a": INTEGER, "b": decimal(12, 2), "c": BOOLEAN}
SCOPE = Scope((Table("t", TYPES), Table("u", {"a": INTEGER})))
SOUP = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "t.a",
            "u.x",
            "1",
            "2.50",
            '"x"',
            "TRUE",
            "NULL",
            "SUM",
            "IF",
            "ROUND",
            "DATE",
            "(",
            ")",
            ",",
            ".",
            "+",
            "-",
            "*",
            "/",
            "=",
            "<>",
            "AND",
            "OR",
            "NOT",
            "IN",
            "IS",
            "{{S}}",
            "`q`",
            '"',
            "`",
            "{{",
            "é",
        ]
    )
    | st.sampled_from(["\n", "\u0301"]),
    max_size=12,
).map(" ".join)


def _read(text: str) -> None:
    """Parses, and checks what was parsed; whatever is wrong must be a diagnostic with a place in the text."""
    source = PlainText(text)
    try:
        checked = check(parse(source), SCOPE, Scalar("here"))
        diagnostics = checked.diagnostics
        assert (checked.expression is None) == bool(diagnostics)
    except UserError as error:
        diagnostics = error.diagnostics
    for diagnostic in diagnostics:
        assert diagnostic.span is not None
        start, end = _offsets(text, diagnostic.span)
        assert 0 <= start <= len(text)
        assert start < end <= len(text) + 1
        assert render(diagnostic, lambda _file: text)


def _offsets(text: str, span: Span) -> tuple[int, int]:
    start = next(
        offset
        for offset in range(len(text) + 1)
        if (found := PlainText(text).span(offset, offset + 1)).line == span.line and found.column == span.column
    )
    return start, start + span.length


@given(st.text(max_size=30))
@settings(max_examples=examples(400))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    _read(text)


@given(st.text(st.characters(categories=["Cs", "Cc", "Lu", "Mn", "Nd", "Zs", "Po"]), max_size=12))
@settings(max_examples=examples(200))
def test_surrogates_and_control_characters_are_read_or_refused_with_a_place(text: str) -> None:
    _read(text)


@given(SOUP)
@settings(max_examples=examples(600))
def test_token_soup_is_read_or_refused_with_a_place(text: str) -> None:
    _read(text)


def _refusal(text: str) -> tuple[str, str, Span]:
    with pytest.raises(UserError) as caught:
        parse(PlainText(text))
    diagnostic = caught.value.diagnostic
    assert diagnostic.span is not None
    return diagnostic.code, diagnostic.message, diagnostic.span


@pytest.mark.parametrize("opening", ["(", "NOT ", "-", "F(", "a IN ("])
def test_deep_nesting_is_refused_where_it_gets_too_deep(opening: str) -> None:
    code, message, span = _refusal(opening * 10_000)
    assert code == "SyntaxError"
    assert message == f"nested more than {MAX_NESTING} levels deep"
    assert span.column == len(opening) * MAX_NESTING + 1


def test_a_long_row_of_operators_is_refused_at_the_operator_that_is_too_many() -> None:
    parse(PlainText("1" + " + 1" * (MAX_DEPTH - 1)))
    code, message, span = _refusal("1" + " + 1" * 10_000)
    assert code == "SyntaxError"
    assert "operators in a row" in message
    assert span.column == 2 + 4 * (MAX_DEPTH - 1) + 1


def test_rows_of_operators_within_each_other_are_refused_when_the_tree_gets_too_deep() -> None:
    text = "1"
    for _ in range(50):
        text = f"({text}{' + 1' * 50})"
    code, message, _ = _refusal(text)
    assert (code, message) == ("SyntaxError", f"nested more than {MAX_DEPTH} levels deep")


def test_a_tree_that_selectors_made_too_deep_is_refused_by_the_checker() -> None:
    outer = inner = parse(PlainText("1" + " + 1" * (MAX_DEPTH - 1)))
    assert isinstance(inner, Call)
    for _ in range(20):
        outer = Call("NEGATE", (outer,), inner.region, inner.head)
    checked = check(outer, SCOPE, Scalar("here"))
    assert [d.message for d in checked.diagnostics] == [f"nested more than {MAX_DEPTH} levels deep"]


def test_long_chains_of_and_and_or_stay_flat() -> None:
    node = parse(PlainText("TRUE" + " AND TRUE" * 10_000 + " OR FALSE" * 10_000))
    assert isinstance(node, Call)
    assert node.name == "OR"
    assert len(node.arguments) == 10_001


@pytest.mark.parametrize(
    "text",
    [
        "1.5" + " + a" * (MAX_DEPTH - 2),
        "a" + " + a" * 180,
        "COALESCE(b, " * 96 + "1" + ") + a" * 96,
        "COALESCE(b, a, " * 96 + "1" + ")" * 96,
        "IF(c, a, " * 96 + "1.5" + ")" * 96,
        "AND(c, " * 96 + "c" + ")" * 96,
        "ABS(" * 96 + "-b" + ")" * 96,
        "-" * 97 + "b",
        "NOT " * 97 + "c",
        "COALESCE(" * 90 + "b" + " + a" * 40 + ")" * 90,
    ],
)
def test_the_deepest_allowed_tree_can_be_read_by_everything_that_reads_trees(text: str) -> None:
    checked = check(parse(PlainText(text)), Scope((Table("t", TYPES),)), Scalar("here"))
    assert checked.expression is not None, checked.diagnostics
    assert from_json(to_json(checked.expression)) == checked.expression
    assert hash(checked.expression) == hash(from_json(to_json(checked.expression)))
    assert text_of(checked.expression)
    row = Row({"t": {"a": 1, "b": Decimal("1.50"), "c": True}, "u": {"a": 1}}, date(2026, 1, 31))
    assert evaluator(checked.expression)(row) is not None


@pytest.mark.parametrize(
    "text",
    ["a" * 5_000_000, '"' + "x" * 5_000_000, " " * 5_000_000, "1+" * 2_500_000, "(" * 5_000_000, "9" * 5_000_000],
    ids=["a name", "an unclosed text", "spaces", "a sum", "parentheses", "a number"],
)
def test_megabytes_of_text_are_refused_by_their_length(text: str) -> None:
    code, message, span = _refusal(text)
    assert (code, span.line, span.column) == ("SyntaxError", 1, 1)
    assert message == f"the expression has more than {MAX_CHARACTERS:,} characters"


@pytest.mark.parametrize("opening", ['"', "`", "{{"])
def test_an_unclosed_text_of_the_longest_expression_is_found_in_linear_time(opening: str) -> None:
    code, _, span = _refusal("a = " + opening + "x" * (MAX_CHARACTERS - 10))
    assert (code, span.column) == ("SyntaxError", 5)


def test_a_name_as_long_as_an_expression_is_shortened_in_the_message() -> None:
    checked = check(parse(PlainText("x" * MAX_CHARACTERS)), SCOPE, Scalar("here"))
    assert len(checked.diagnostics[0].message) < 1000


@pytest.mark.parametrize(
    ("text", "code", "says", "column", "length"),
    [
        ("", "SyntaxError", "the expression is empty", 1, 1),
        ("  \n ", "SyntaxError", "the expression is empty", 1, 1),
        ('a = "open', "SyntaxError", "this string has no closing quote", 5, 1),
        ('a = "open""', "SyntaxError", "this string has no closing quote", 5, 1),
        ("`open", "SyntaxError", "this name has no closing backquote", 1, 1),
        ("a = 'x'", "SyntaxError", "strings are written in double quotes", 5, 1),
        ("a != 1", "SyntaxError", "there is no operator !=", 3, 2),
        ("a == 1", "SyntaxError", "equality is written with one =", 4, 1),
        ("a && b", "SyntaxError", "there is no operator &&", 3, 2),
        ("a || b", "SyntaxError", "there is no operator ||", 3, 2),
        ("IF(a; 1; 2)", "SyntaxError", "arguments are separated by commas", 5, 1),
        ("(a + 1", "SyntaxError", "this parenthesis is not closed", 1, 1),
        ("IF(a, 1, 2", "SyntaxError", "this parenthesis is not closed", 3, 1),
        ("a + 1)", "SyntaxError", "this parenthesis closes nothing", 6, 1),
        ("a +   ", "SyntaxError", "the expression ends too early", 4, 1),
        ("a b", "SyntaxError", "b is not allowed here", 3, 1),
        ("a < b < c", "SyntaxError", "comparisons cannot follow each other", 7, 1),
        ("a IS NULL + 1", "SyntaxError", "+ is not allowed here", 11, 1),
        ("a = NOT b", "SyntaxError", "NOT is not allowed here", 5, 3),
        ("a IN 1", "SyntaxError", "the values after IN must be in parentheses", 6, 1),
        ("a IN ()", "SyntaxError", "IN needs at least one value", 3, 2),
        ("a IS 1", "SyntaxError", "IS must be followed by NULL or NOT NULL", 6, 1),
        ("t.1", "SyntaxError", "a column name must follow the point", 3, 1),
        ("1e5", "SyntaxError", '"1e" is neither a number nor a name', 1, 2),
        ("2nd", "SyntaxError", '"2n" is neither a number nor a name', 1, 2),
        ("{{NAME", "SyntaxError", "a selector reference is written {{NAME}}", 1, 2),
        ("a = \u200b1", "SyntaxError", "the character U+200B is not allowed here", 5, 1),
        ("a = 1\x00", "SyntaxError", "the character U+0000 is not allowed in an expression", 6, 1),
        ('"\ud83d"', "SyntaxError", "the character U+D83D is not allowed in an expression", 2, 1),
        ("a = and", "SyntaxError", "and is not allowed here", 5, 3),
        ("NOT(a, b)", "SyntaxError", ", is not allowed here", 6, 1),
        ("9" * 39, "ValueOutOfRange", "this number has more than 38 digits", 1, 39),
        ("0." + "0" * 39, "ValueOutOfRange", "this number has more than 38 digits", 1, 41),
    ],
)
def test_a_mistake_is_named_and_the_caret_stands_under_it(
    text: str, code: str, says: str, column: int, length: int
) -> None:
    actual_code, message, span = _refusal(text)
    assert actual_code == code
    assert message.startswith(says)
    assert (span.line, span.column, span.length) == (1, column, length)


def test_zeros_in_front_of_a_number_do_not_count_as_digits() -> None:
    node = parse(PlainText("0" * 5000 + "7"))
    assert isinstance(node, Literal)
    assert node.value == 7
