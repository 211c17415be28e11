"""Every function is declared completely, and does what its declaration says."""

from datetime import date

import pytest

from clew.diagnostics import PlainText
from clew.lang import FUNCTIONS, Grouped, Row, Scalar, Scope, Table, Value, check, evaluator, group_evaluator, parse
from clew.lang.functions import (
    SHORTHANDS,
    AggregateFunction,
    AnyFunction,
    Example,
    Family,
    Function,
    NullRule,
    RunFunction,
    Shorthand,
    arity,
)
from clew.lang.literals import text_of_value
from clew.lang.types import INTEGER

ALL: list[AnyFunction | Shorthand] = [*FUNCTIONS.values(), *SHORTHANDS.values()]
NAMES = [function.name for function in ALL]
EXAMPLES = [(function, example) for function in ALL for example in function.examples]
TODAY = date(2026, 1, 31)

NAMES_OF_THE_LANGUAGE = """
    + - * / NEGATE = <> < <= > >= IF AND OR NOT ISNULL COALESCE IN ABS ROUND FLOOR CEIL MOD MIN MAX CONCAT UPPER LOWER
    TRIM LEFT RIGHT LEN CONTAINS STARTSWITH ENDSWITH REPLACE SUBSTRING DATE TODAY YEAR MONTH DAY DATEDIFF DATEADD
    TO_STRING TO_INTEGER TO_DECIMAL TO_DATE SUM COUNT COUNT_ALL COUNT_DISTINCT AVG MIN_AGG MAX_AGG
    CASE SWITCH BETWEEN NULLIF GREATEST LEAST SIGN POWER SQRT EXP LN FIND SPLIT LPAD RPAD PROPER REPEAT HASH UUID5 LIKE
    REGEX_MATCH REGEX_EXTRACT REGEX_REPLACE EOMONTH EDATE DATE_TRUNC WEEKDAY WORKDAY TRY_TO_INTEGER TRY_TO_DECIMAL
    TRY_TO_DATE VARIANCE PERCENTILE FIRST LAST STRING_AGG
"""
SHORT = "IFNULL TRUNC LOG COUNT_IF SUM_IF WEIGHTED_AVG MEDIAN STDDEV"


def test_the_catalogue_has_exactly_the_functions_of_the_language() -> None:
    assert set(FUNCTIONS) == set(NAMES_OF_THE_LANGUAGE.split())
    assert set(SHORTHANDS) == set(SHORT.split())


@pytest.mark.parametrize("function", ALL, ids=NAMES)
def test_a_declaration_has_all_its_pieces(function: AnyFunction | Shorthand) -> None:
    assert function.name == function.name.upper()
    assert function.sentence[0].isupper()
    assert function.sentence.endswith(".")
    assert function.returns
    assert all(parameter.name and parameter.takes for parameter in function.parameters)
    assert len({parameter.name for parameter in function.parameters}) == len(function.parameters)
    assert function.examples or isinstance(function, RunFunction)
    if not isinstance(function, Shorthand):
        assert (function.family is Family.AGGREGATE) == isinstance(function, AggregateFunction)
    assert (function.nulls is NullRule.SKIPS) <= (function.family is Family.AGGREGATE)


@pytest.mark.parametrize("function", ALL, ids=NAMES)
def test_only_the_last_parameters_may_be_left_out_or_repeated(function: AnyFunction | Shorthand) -> None:
    optional = [parameter.optional for parameter in function.parameters]
    assert optional == sorted(optional)
    assert not any(parameter.repeats for parameter in function.parameters[:-1])
    least, most = arity(function)
    assert most is None or least <= most


@pytest.mark.parametrize(
    ("function", "example"), EXAMPLES, ids=[f"{function.name}: {example.expression}" for function, example in EXAMPLES]
)
def test_an_example_gives_the_result_that_it_shows(function: AnyFunction | Shorthand, example: Example) -> None:
    assert text_of_result(_value(example)) == example.result


@pytest.mark.parametrize(
    ("function", "example"), EXAMPLES, ids=[f"{function.name}: {example.expression}" for function, example in EXAMPLES]
)
def test_an_example_shows_its_function(function: AnyFunction | Shorthand, example: Example) -> None:
    written = {"NEGATE": "-", "ISNULL": "NULL"}.get(function.name, function.name)
    assert written in example.expression


def _value(example: Example) -> Value:
    if not example.rows:
        checked = check(parse(PlainText(example.expression)), Scope((Table("t", {}),)), Scalar("in an example"))
        assert checked.expression is not None, checked.diagnostics
        return evaluator(checked.expression)(Row({}, TODAY))
    scope = Scope((Table("t", dict.fromkeys(example.rows[0], INTEGER)),))
    checked = check(parse(PlainText(example.expression)), scope, Grouped(frozenset()))
    assert checked.expression is not None, checked.diagnostics
    return group_evaluator(checked.expression)([Row({"t": row}, TODAY) for row in example.rows])


def text_of_result(value: Value) -> str:
    return value.isoformat() if isinstance(value, date) else text_of_value(value)


def _calls_with_one_null(function: Function) -> list[str]:
    """An example of the function in which one argument after the other is replaced by NULL."""
    call = next(example.expression for example in function.examples if "NULL" not in example.expression)
    match function.family:
        case Family.OPERATOR if function.name == "NEGATE":
            return ["-NULL"]
        case Family.OPERATOR:
            left, _, right = call.partition(f" {function.name} ")
            return [f"NULL {function.name} {right}", f"{left} {function.name} NULL", f"NULL {function.name} NULL"]
        case _ if function.name == "NOT":
            return ["NOT NULL"]
        case _:
            arguments = _split(call.removeprefix(f"{function.name}(")[:-1])
            replaced = [[*arguments[:i], "NULL", *arguments[i + 1 :]] for i in range(len(arguments))]
            written_out = {"ROUND": 1, "TO_DECIMAL": 1, "TRY_TO_DECIMAL": 1}.get(function.name, len(arguments))
            return [f"{function.name}({', '.join(each)})" for each in replaced[:written_out]]


def _split(arguments: str) -> list[str]:
    parts, depth = [""], 0
    for character in arguments:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


PROPAGATING = [
    (function.name, call)
    for function in ALL
    if isinstance(function, Function) and function.nulls is NullRule.PROPAGATES
    for call in _calls_with_one_null(function)
]


@pytest.mark.parametrize(("name", "call"), PROPAGATING, ids=[call for _, call in PROPAGATING])
def test_null_propagates_from_every_argument(name: str, call: str) -> None:
    assert _value(Example(call, "NULL")) is None


@pytest.mark.parametrize("function", [f for f in ALL if isinstance(f, AggregateFunction)], ids=lambda f: f.name)
def test_an_aggregate_over_nulls_only_gives_null_or_counts(function: AggregateFunction) -> None:
    arguments = {"PERCENTILE": "x, 0.5", "FIRST": "x, x", "LAST": "x, x", "STRING_AGG": 'TO_STRING(x), "-"'}
    call = f"{function.name}({arguments.get(function.name, 'x') if function.parameters else ''})"
    expected = {"COUNT": 0, "COUNT_DISTINCT": 0, "COUNT_ALL": 2}.get(function.name)
    assert _value(Example(call, "", ({"x": None}, {"x": None}))) == expected


def test_a_total_of_no_rows_is_null_and_their_count_is_zero() -> None:
    """As for a check on all rows, where a selector has left none."""
    scope = Scope((Table("t", {"amount": INTEGER}),))
    for text, expected in (("SUM(amount)", None), ("COUNT_ALL()", 0), ("COALESCE(SUM(amount), 0) = 0", True)):
        checked = check(parse(PlainText(text)), scope, Grouped(frozenset()))
        assert checked.expression is not None, checked.diagnostics
        assert group_evaluator(checked.expression, TODAY)([]) == expected
