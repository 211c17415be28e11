"""Names, types, and where aggregates may stand."""

import pytest

from clew.diagnostics import Diagnostic, PlainText
from clew.lang import Grouped, Scalar, Scope, Table, Type, check, check_condition, parse, text_of
from clew.lang.types import BOOLEAN, DATE, DOUBLE, INTEGER, NULL, STRING, TIMESTAMP, decimal

LEDGER = Table(
    "gl",
    {
        "amount": decimal(12, 2),
        "rate": decimal(18, 6),
        "wide": decimal(38, 18),
        "count": INTEGER,
        "share": DOUBLE,
        "name": STRING,
        "region": STRING,
        "posted": DATE,
        "at": TIMESTAMP,
        "open": BOOLEAN,
        "_period": STRING,
        "_labels": STRING,
    },
)
RATES = Table(
    "fx", {"rate": decimal(9, 5), "currency": STRING, "odd name": STRING, "_period": STRING, "_valid": STRING}
)
SCOPE = Scope(
    (LEDGER, RATES),
    column_elsewhere={"margin": 'step 30 "margin" adds it; this is step 10'}.get,
    table_elsewhere={"cc": 'the alias "cc" belongs to step 20'}.get,
)
HERE = Scalar("in a test")


def _type(text: str) -> Type:
    checked = check(parse(PlainText(text)), SCOPE, HERE)
    assert checked.expression is not None, checked.diagnostics
    return checked.expression.type


def _problems(text: str, setting: Scalar | Grouped = HERE) -> tuple[Diagnostic, ...]:
    checked = check(parse(PlainText(text)), SCOPE, setting)
    assert checked.expression is None
    return checked.diagnostics


def _problem(text: str, setting: Scalar | Grouped = HERE) -> Diagnostic:
    (only,) = _problems(text, setting)
    return only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", INTEGER),
        ("9223372036854775807", INTEGER),
        ("9223372036854775808", decimal(19, 0)),
        ("1.50", decimal(3, 2)),
        ("0.00", decimal(2, 2)),
        ("0.5", decimal(1, 1)),
        ("007.5", decimal(2, 1)),
        ('"x"', STRING),
        ("TRUE", BOOLEAN),
        ("NULL", NULL),
        ("count + 1", INTEGER),
        ("count / 2", decimal(26, 6)),
        ("count / count", decimal(38, 18)),
        ("amount + 1", decimal(13, 2)),
        ("amount + count", decimal(23, 2)),
        ("amount * gl.rate", decimal(31, 8)),
        ("amount * 0.5", decimal(14, 3)),
        ("amount / gl.rate", decimal(37, 21)),
        ("wide * wide", decimal(38, 6)),
        ("wide / wide", decimal(38, 6)),
        ("wide + wide", decimal(38, 17)),
        ("amount + share", DOUBLE),
        ("-amount", decimal(12, 2)),
        ("-share", DOUBLE),
        ("amount + NULL", decimal(12, 2)),
        ("NULL + NULL", NULL),
        ("ABS(amount)", decimal(12, 2)),
        ("ROUND(amount)", decimal(11, 0)),
        ("ROUND(amount, 1)", decimal(12, 1)),
        ("ROUND(amount, 5)", decimal(13, 2)),
        ("ROUND(amount, -3)", decimal(11, 0)),
        ("ROUND(amount, -15)", decimal(16, 0)),
        ("ROUND(count, 2)", INTEGER),
        ("ROUND(share, 2)", DOUBLE),
        ("FLOOR(amount)", decimal(11, 0)),
        ("FLOOR(TO_DECIMAL(count))", decimal(20, 0)),
        ("CEIL(share)", DOUBLE),
        ("MOD(amount, 7)", decimal(3, 2)),
        ("MOD(count, 7)", INTEGER),
        ("MIN(amount, gl.rate)", decimal(18, 6)),
        ("MAX(count, 1.5)", decimal(21, 1)),
        ("MAX(1.25, 1000, count)", decimal(22, 2)),
        ("COALESCE(0, amount)", decimal(12, 2)),
        ("COALESCE(amount, -1)", decimal(12, 2)),
        ("COALESCE(amount, 12345678901)", decimal(13, 2)),
        ("COALESCE(count, 0)", INTEGER),
        ("MIN(posted, at)", TIMESTAMP),
        ("IF(open, amount, 0)", decimal(12, 2)),
        ("IF(open, NULL, name)", STRING),
        ("COALESCE(NULL, posted)", DATE),
        ("LEN(name)", INTEGER),
        ('CONTAINS(name, "x")', BOOLEAN),
        ("DATEADD(at, 1)", DATE),
        ("DATEDIFF(posted, at)", INTEGER),
        ("TODAY()", DATE),
        ("TO_STRING(open)", STRING),
        ("TO_DECIMAL(name)", decimal(38, 18)),
        ("TO_DECIMAL(name, 12, 2)", decimal(12, 2)),
        ("TO_DECIMAL(name, 12)", decimal(12, 0)),
        ("TO_DECIMAL(count)", decimal(20, 0)),
        ("TO_DECIMAL(amount)", decimal(12, 2)),
        ("TO_DECIMAL(open)", decimal(20, 0)),
        ("TO_INTEGER(open)", INTEGER),
        ("amount > 1 AND open", BOOLEAN),
        ("posted = at", BOOLEAN),
    ],
)
def test_types_are_inferred(text: str, expected: Type) -> None:
    assert _type(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUM(amount)", decimal(22, 2)),
        ("SUM(wide)", decimal(38, 18)),
        ("SUM(count)", INTEGER),
        ("SUM(share)", DOUBLE),
        ("SUM(NULL)", INTEGER),
        ("AVG(amount)", decimal(16, 6)),
        ("AVG(count)", decimal(24, 4)),
        ("AVG(share)", DOUBLE),
        ("COUNT(name)", INTEGER),
        ("COUNT_ALL()", INTEGER),
        ("COUNT_DISTINCT(open)", INTEGER),
        ("MIN_AGG(posted)", DATE),
        ("MAX_AGG(name)", STRING),
        ("SUM(amount) / COUNT_ALL()", decimal(38, 18)),
        ("IF(COUNT_ALL() > 1, region, NULL)", STRING),
    ],
)
def test_types_of_aggregations_are_inferred(text: str, expected: Type) -> None:
    checked = check(parse(PlainText(text)), SCOPE, Grouped(frozenset({"region"})))
    assert checked.expression is not None, checked.diagnostics
    assert checked.expression.type == expected


@pytest.mark.parametrize(
    ("text", "says", "column", "length"),
    [
        ('amount = "5"', "a decimal(12,2) cannot be compared with a string", 1, 12),
        ("name > 5", "a string cannot be compared with an integer", 1, 8),
        ('posted < "2026-01-31"', "a date cannot be compared with a string", 1, 21),
        ("open = 1", "a boolean cannot be compared with an integer", 1, 8),
        ('name IN ("a", 1, 2)', "IN: a string cannot be compared with an integer", 15, 1),
        ('NULL IN ("a", 1)', "IN: a string cannot be compared with an integer", 15, 1),
        ("name + 1", "+: expected a number, this is a string", 1, 4),
        ("1 * open", "*: expected a number, this is a boolean", 5, 4),
        ("-name", "-: expected a number, this is a string", 2, 4),
        ("NOT count", "NOT: expected a boolean, this is an integer", 5, 5),
        ("open AND name", "AND: expected a boolean, this is a string", 10, 4),
        ("IF(count, 1, 2)", "IF: expected a condition, this is an integer", 4, 5),
        ('IF(open, 1, "x")', "IF: expected an integer like the values before, this is a string", 13, 3),
        ("COALESCE(name, 1)", "COALESCE: expected a string like the values before, this is an integer", 16, 1),
        ("UPPER(count)", "UPPER: expected a string, this is an integer", 7, 5),
        ("LEFT(name, 1.5)", "LEFT: expected an integer, this is a decimal(2,1)", 12, 3),
        ("YEAR(name)", "YEAR: expected a date, this is a string", 6, 4),
        ("DATEADD(posted, 1.5)", "DATEADD: expected a whole number of days, this is a decimal(2,1)", 17, 3),
        ("DATE(2026, 1)", "DATE takes a string, or a year, a month and a day", 1, 13),
        ("MIN(open, open)", "MIN: expected numbers, strings or dates, this is a boolean", 5, 4),
        ("ROUND(amount, count)", "ROUND: the number of digits must be a literal whole number", 15, 5),
        ("ROUND(amount, TRUE)", "ROUND: the number of digits must be a literal whole number", 15, 4),
        ("ROUND(amount, 39)", "ROUND: the number of digits must be between -38 and 38", 15, 2),
        ("TO_DECIMAL(name, 39)", "TO_DECIMAL: a decimal has 1 to 38 digits, not 39", 18, 2),
        ("TO_DECIMAL(name, 5, 6)", "TO_DECIMAL: the scale of decimal(5,6) is not between 0 and 5", 18, 1),
        ("TO_DECIMAL(name, TRUE)", "TO_DECIMAL: precision and scale must be literal whole numbers", 18, 4),
        ("TO_INTEGER(posted)", "TO_INTEGER: expected a string or a number, this is a date", 12, 6),
        ("TO_DATE(count)", "TO_DATE: expected a string, a date or a timestamp, this is an integer", 9, 5),
    ],
)
def test_a_wrong_type_is_a_mismatch_at_the_argument(text: str, says: str, column: int, length: int) -> None:
    problem = _problem(text)
    assert problem.code == "TypeMismatch"
    assert problem.message == says
    assert problem.span is not None
    assert (problem.span.column, problem.span.length) == (column, length)


@pytest.mark.parametrize(
    ("text", "code", "says", "hint", "place"),
    [
        ("amuont", "UnknownColumn", 'no column "amuont" in gl or fx', 'did you mean "amount"?', (1, 6)),
        ("Amount", "UnknownColumn", 'no column "Amount" in gl or fx', 'did you mean "amount"?', (1, 6)),
        ("gl.amuont", "UnknownColumn", 'no column "amuont" in gl', 'did you mean "amount"?', (4, 6)),
        ("gl.`amuont`", "UnknownColumn", 'no column "amuont" in gl', 'did you mean "amount"?', (4, 8)),
        ("fx . `odd  name`", "UnknownColumn", 'no column "odd  name" in fx', 'did you mean "odd name"?', (6, 11)),
        (
            "margin",
            "UnknownColumn",
            'no column "margin" in gl or fx',
            'step 30 "margin" adds it; this is step 10',
            (1, 6),
        ),
        ("gl.margin", "UnknownColumn", 'no column "margin" in gl', 'step 30 "margin" adds it; this is step 10', (4, 6)),
        ("gx.rate", "UnknownTable", 'no table or join alias "gx" here', None, (1, 2)),
        ("`fx `.rate", "UnknownTable", 'no table or join alias "fx " here', 'did you mean "fx"?', (1, 5)),
        ("cc.name", "UnknownTable", 'no table or join alias "cc" here', 'the alias "cc" belongs to step 20', (1, 2)),
        ("rate", "AmbiguousColumn", '"rate" could be gl.rate or fx.rate', None, (1, 4)),
        ("SUMM(amount)", "UnknownFunction", 'no function "SUMM"', 'did you mean "SUM"?', (1, 4)),
        ("NEGATE(count)", "UnknownFunction", 'no function "NEGATE"', None, (1, 6)),
        ("ſum(amount)", "UnknownFunction", 'no function "ſum"', 'did you mean "SUM"?', (1, 3)),
        (
            "LEFT(name)",
            "WrongArgumentCount",
            "LEFT takes 2 arguments, got 1",
            "it is called as LEFT(text, count)",
            (1, 4),
        ),
        ("TODAY(1)", "WrongArgumentCount", "TODAY takes no arguments, got 1", "it is called as TODAY()", (1, 5)),
        ("AND()", "WrongArgumentCount", "AND takes at least 1 argument, got 0", None, (1, 3)),
        ("ROUND(1, 2, 3, 4)", "WrongArgumentCount", "ROUND takes 1 to 3 arguments, got 4", None, (1, 5)),
        ("{{LARGE}}", "SyntaxError", "a selector reference is not allowed here", None, (1, 9)),
        ('DATE("2026-02-30")', "ValueOutOfRange", 'there is no day "2026-02-30"', None, (1, 18)),
        ("DATE(2026, 13, 1)", "ValueOutOfRange", "there is no day 1 of month 13 in the year 2026", None, (1, 17)),
        ('TO_INTEGER("x")', "ValueOutOfRange", '"x" is not a whole number', None, (1, 15)),
        (
            "9223372036854775807 + 1",
            "ValueOutOfRange",
            "9223372036854775808 does not fit integer (64 bits)",
            None,
            (1, 23),
        ),
    ],
)
def test_a_wrong_name_or_value_is_found_where_it_stands(
    text: str, code: str, says: str, hint: str | None, place: tuple[int, int]
) -> None:
    problem = _problem(text)
    assert (problem.code, problem.message) == (code, says)
    assert hint is None or problem.hint == hint
    assert problem.span is not None
    assert (problem.span.column, problem.span.length) == place


@pytest.mark.parametrize(("text", "resolved"), [("_period", "gl._period"), ("fx._period", "fx._period")])
def test_a_bare_system_column_is_that_of_the_working_table(text: str, resolved: str) -> None:
    checked = check(parse(PlainText(text)), SCOPE, HERE)
    assert checked.expression is not None
    assert text_of(checked.expression) == resolved


def test_an_underscored_column_of_a_joined_table_only_is_found_there() -> None:
    checked = check(parse(PlainText("_valid")), SCOPE, HERE)
    assert checked.expression is not None
    assert text_of(checked.expression) == "fx._valid"


def test_any_name_may_be_a_column_of_a_table_whose_columns_are_not_known() -> None:
    scope = Scope((Table("t", {"a": INTEGER}), Table("u", {}, is_opaque=True)))
    for text in ("b + 1 > 2", 'u.b = "x"', "a + b"):
        assert check(parse(PlainText(text)), scope, HERE).diagnostics == ()
    assert [d.code for d in check(parse(PlainText("t.b")), scope, HERE).diagnostics] == ["UnknownColumn"]


def test_all_problems_of_an_expression_are_reported_in_one_go() -> None:
    problems = _problems('IF(amuont > "x", UPPERR(nme), SUM(LEN(count))) + LEFT(open)')
    assert [problem.code for problem in problems] == [
        "UnknownColumn",
        "UnknownFunction",
        "UnknownColumn",
        "AggregateNotAllowed",
        "TypeMismatch",
        "WrongArgumentCount",
    ]


def test_a_part_that_is_wrong_is_not_judged_by_its_surroundings() -> None:
    assert [problem.code for problem in _problems("amuont + name")] == ["UnknownColumn"]


@pytest.mark.parametrize("aggregate", ["SUM(amount)", "1 + COUNT_ALL()", "IF(MAX_AGG(count) > 1, 1, 2)"])
def test_an_aggregate_cannot_stand_in_an_expression_on_rows(aggregate: str) -> None:
    problem = _problem(aggregate, Scalar("in a selector"))
    assert problem.code == "AggregateNotAllowed"
    assert problem.message.endswith("is an aggregate function and is not allowed in a selector")


def test_an_aggregate_cannot_stand_inside_another() -> None:
    problem = _problem("SUM(amount + MAX_AGG(count))", Grouped(frozenset()))
    assert problem.message == "MAX_AGG is an aggregate function and is not allowed inside SUM"


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("amount", 1, '"amount" is used outside an aggregate function'),
        ("SUM(amount) + count", 15, '"count" is used outside an aggregate function'),
    ],
)
def test_an_aggregation_needs_an_aggregate_around_everything_that_is_not_grouped_by(
    text: str, column: int, says: str
) -> None:
    problem = _problem(text, Grouped(frozenset({"region"})))
    assert (problem.code, problem.message) == ("AggregateRequired", says)
    assert problem.span is not None
    assert problem.span.column == column


@pytest.mark.parametrize("text", ['"total"', "1 + 2", "region", 'CONCAT(region, "!")'])
def test_an_aggregation_may_be_a_constant_or_made_from_the_keys(text: str) -> None:
    assert check(parse(PlainText(text)), SCOPE, Grouped(frozenset({"region"}))).expression is not None


def test_a_condition_may_be_null_and_must_not_be_anything_else() -> None:
    assert check_condition(parse(PlainText("NULL")), SCOPE, "in a selector").expression is not None
    assert check_condition(parse(PlainText("open")), SCOPE, "in a selector").expression is not None
    (problem,) = check_condition(parse(PlainText("amount")), SCOPE, "in a selector").diagnostics
    assert problem.message == "a condition is expected in a selector, this is decimal(12,2)"


def test_a_constant_that_is_never_reached_is_still_checked() -> None:
    assert _problem('IF(open, DATE("2026-02-30"), posted)').code == "ValueOutOfRange"


def test_comparing_exact_numbers_converts_neither_to_the_scale_of_the_other() -> None:
    for text in ("wide IN (NULL, 0.5)", "wide = 0.00000000000000000000000000000000000001", "count < 0.5"):
        checked = check(parse(PlainText(text)), SCOPE, HERE)
        assert checked.expression is not None
        assert "decimal(38,6)" not in repr(checked.expression)
