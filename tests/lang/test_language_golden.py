"""What people review as text: expressions as typed trees, and mistakes as messages."""

from collections.abc import Callable

from clew.diagnostics import PlainText, UserError, render
from clew.lang import Expression, Grouped, Scalar, check, parse
from clew.lang.typed import Apply, ColumnValue, Constant, Convert
from tests.strategies.expressions import SCOPE

READ = """
amount * fx.`fx rate` + 1
IF(amount > 100, ROUND(amount * 0.19, 2), COALESCE(rate, 0))
NOT flag AND text IN ("EUR", "USD", NULL) OR day IS NOT NULL
-i / j
MOD(wide, 7) = share
CONCAT(UPPER(LEFT(text, 3)), "-", TO_STRING(i))
CASE WHEN amount > 100 THEN 1 WHEN flag THEN 2.5 END
CASE text WHEN "a" THEN i ELSE amount END
i BETWEEN 1 AND 5.5
text NOT LIKE "a!%" ESCAPE "!"
IFNULL(TRUNC(rate, 2), LOG(i))
DATEDIFF(at, DATE("2026-01-31")) <= 30
"""

AGGREGATED = """
SUM(amount * rate) / COUNT_ALL()
IF(COUNT(i) > 1, text, NULL)
WEIGHTED_AVG(amount, rate)
PERCENTILE(i, 0.95) - MEDIAN(amount)
"""

MISTAKEN = """
text = "open
(amount + 1
amount + 1)
amuont + 1
UPER(text)
ROUND()
text = 5
SUM(amount) > 1
cc.name = "x"
_period = fx._perod
{{LARGE}}
day > DATE("2026-02-30")
currency == "EUR"
currency != 'EUR'
amount < 1 < 2
amount IS 5
1e5
größe + 1 = 名前
text = open
CASE WHEN i = 1 THEN 2 ELSE 3
CASE i = 1 THEN 2 END
case + 1
text LIKE i
text LIKE "a!b" ESCAPE "!"
text ILIKE "a%"
amount BETWEEN 1 OR 2
REGEX_MATCH(text, "(a+)+")
REGEX_MATCH(text, ".*a.*b")
REGEX_MATCH(text, "(?=a)")
REGEX_MATCH(text, "\\bword")
REGEX_REPLACE(text, "a*", "$2")
TO_DATE(text, "DD/MM/YYYY")
TO_STRING(share, "0.00")
ROUND(amount, 2, "bankers")
ROUND(share, 2, "half_even")
DATE_TRUNC("decade", day)
SWITCH(i, 1)
COUNT(*)
NVL(i, 0)
VLOOKUP(i, fx)
SUMIFS(amount, flag)
"""


def test_expressions_are_read_as_these_trees(golden: Callable[[str, str], None]) -> None:
    parts = [
        *(_tree_of(text, Scalar("in a test")) for text in READ.strip().splitlines()),
        *(_tree_of(text, Grouped(frozenset({"text"}))) for text in AGGREGATED.strip().splitlines()),
    ]
    golden("lang/trees.txt", "\n\n".join(parts) + "\n")


def test_mistakes_are_reported_with_these_messages(golden: Callable[[str, str], None]) -> None:
    golden("lang/messages.txt", "\n\n".join(map(_messages, MISTAKEN.strip().splitlines())) + "\n")


def _tree_of(text: str, setting: Scalar | Grouped) -> str:
    checked = check(parse(PlainText(text)), SCOPE, setting)
    assert checked.expression is not None, checked.diagnostics
    return "\n".join([text, *_lines(checked.expression, "    ")])


def _lines(expression: Expression, indent: str) -> list[str]:
    match expression:
        case Constant(value, type_):
            return [f"{indent}{value!r}: {type_}"]
        case ColumnValue(table, column, type_):
            return [f"{indent}{table}.{column}: {type_}"]
        case Convert(operand, type_):
            return [f"{indent}convert: {type_}", *_lines(operand, indent + "    ")]
        case Apply(function, arguments, type_):
            below = [line for argument in arguments for line in _lines(argument, indent + "    ")]
            return [f"{indent}{function}: {type_}", *below]


def _messages(text: str) -> str:
    try:
        diagnostics = check(parse(PlainText(text)), SCOPE, Scalar("in a selector")).diagnostics
    except UserError as error:
        diagnostics = error.diagnostics
    assert diagnostics, text
    return "\n".join(render(diagnostic, lambda _file: text) for diagnostic in diagnostics)
