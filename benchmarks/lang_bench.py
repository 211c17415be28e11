"""What the expression language costs, against Python's own parser and against a lambda that does the same.

Run it alone with `python -m benchmarks.lang_bench`. Each figure is the best of several rounds, and the two sides of a
ratio take turns, so that both see the same machine.
"""

import ast
from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from time import perf_counter

from benchmarks.figure import Figure

from clew.diagnostics import PlainText
from clew.lang import Row, Scalar, Scope, Table, check, evaluator, parse
from clew.lang.types import BOOLEAN, DATE, INTEGER, STRING, decimal

EXPRESSIONS = 10_000
ROWS = 100_000
ROUNDS = 5
PLACE = Scalar("in a benchmark")
CENT = Decimal("0.01")

LEDGER = Table(
    "gl",
    {
        **{f"column_{n}": decimal(18, 2) for n in range(190)},
        "amount": decimal(18, 2),
        "currency": STRING,
        "account": INTEGER,
        "posted": DATE,
        "reversed": BOOLEAN,
        "text": STRING,
    },
)
RATES = Table("fx", {"rate": decimal(12, 6), "from_currency": STRING})
SCOPE = Scope((LEDGER, RATES))

TEMPLATES = (
    ("amount * fx.rate + {n}", "amount * fx.rate + {n}"),
    (
        'currency = "EUR" AND account >= {n} AND NOT reversed',
        'currency == "EUR" and account >= {n} and not reversed',
    ),
    (
        "IF(amount > {n}.50, ROUND(amount * 0.19, 2), COALESCE(amount, 0))",
        "(ROUND(amount * 0.19, 2) if amount > {n}.50 else COALESCE(amount, 0))",
    ),
    (
        'currency IN ("EUR", "USD", "CHF") OR account IN ({n}, 4711)',
        'currency in ("EUR", "USD", "CHF") or account in ({n}, 4711)',
    ),
    (
        'CONCAT(UPPER(LEFT(text, 3)), "-", TO_STRING(account + {n}))',
        'CONCAT(UPPER(LEFT(text, 3)), "-", TO_STRING(account + {n}))',
    ),
    (
        'YEAR(posted) * 100 + MONTH(posted) = {n} AND posted <= DATE("2026-01-31")',
        'YEAR(posted) * 100 + MONTH(posted) == {n} and posted <= DATE("2026-01-31")',
    ),
    ("column_7 - column_{c} * (1 - column_9 / 100)", "column_7 - column_{c} * (1 - column_9 / 100)"),
)


def measure() -> list[Figure]:
    return [*reading(), *evaluation()]


def seconds(*sides: Callable[[], object]) -> list[float]:
    best = [float("inf")] * len(sides)
    for _ in range(ROUNDS):
        for index, side in enumerate(sides):
            start = perf_counter()
            side()
            best[index] = min(best[index], perf_counter() - start)
    return best


def reading() -> list[Figure]:
    pairs = [TEMPLATES[n % len(TEMPLATES)] for n in range(EXPRESSIONS)]
    ours = [template.format(n=n, c=n % 190) for n, (template, _) in enumerate(pairs)]
    pythons = [template.format(n=n, c=n % 190) for n, (_, template) in enumerate(pairs)]
    parsing, checking, python = seconds(lambda: _parse(ours), lambda: _check(ours), lambda: _compile(pythons))
    return [
        Figure("parse an expression", parsing / EXPRESSIONS * 1e6, "µs"),
        Figure("parse and check an expression", checking / EXPRESSIONS * 1e6, "µs"),
        Figure("parse and check, to ast.parse and compile", checking / python, "times"),
    ]


def _parse(texts: Sequence[str]) -> None:
    for text in texts:
        parse(PlainText(text))


def _check(texts: Sequence[str]) -> None:
    for text in texts:
        checked = check(parse(PlainText(text)), SCOPE, PLACE)
        if checked.expression is None:
            raise ValueError(text, checked.diagnostics)


def _compile(texts: Sequence[str]) -> None:
    for text in texts:
        compile(ast.parse(text, mode="eval"), "<expression>", "eval")


def evaluation() -> list[Figure]:
    text = 'IF(currency = "EUR", amount, ROUND(amount * fx.rate, 2)) + 1'
    expression = check(parse(PlainText(text)), SCOPE, PLACE).expression
    if expression is None:
        raise ValueError(text)
    evaluate = evaluator(expression)
    today = date(2026, 1, 31)
    currencies = ("EUR", "USD", "CHF")
    rows = [
        Row(
            {
                "gl": {"amount": Decimal(n % 99_999).scaleb(-2), "currency": currencies[n % 3]},
                "fx": {"rate": Decimal(n % 7 + 900_000).scaleb(-6)},
            },
            today,
        )
        for n in range(ROWS)
    ]
    by_hand, ours = seconds(
        lambda: [_by_hand(row) for row in rows],
        lambda: [evaluate(row) for row in rows],
    )
    if [evaluate(row) for row in rows[:1000]] != [_by_hand(row) for row in rows[:1000]]:
        raise ValueError("the two sides of the benchmark differ")
    return [
        Figure("evaluate an expression on a row", ours / ROWS * 1e6, "µs"),
        Figure("evaluate, to a function written by hand", ours / by_hand, "times"),
    ]


def _by_hand(row: Row) -> Decimal:
    """The same in plain Python, as exact: quantized to the scale that the type has at each step."""
    ledger, rates = row.tables["gl"], row.tables["fx"]
    amount, rate = ledger["amount"], rates["rate"]
    if not isinstance(amount, Decimal) or not isinstance(rate, Decimal):
        raise TypeError
    chosen = amount if ledger["currency"] == "EUR" else (amount * rate).quantize(CENT, ROUND_HALF_UP)
    return (chosen + 1).quantize(CENT)


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.name:<50} {figure.value:>14,.2f} {figure.unit}")
