"""Functions that choose among several values in Spark SQL."""

from clew.engine.sql.call import Entries, SqlCall, SqlOf, is_short, repeating
from clew.engine.sql.operators import compared


def _case(call: SqlCall) -> str:
    *branches, otherwise = call.arguments
    whens = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(branches[::2], branches[1::2], strict=True))
    return f"CASE {whens} ELSE {otherwise} END"


def _switch(call: SqlCall) -> str:
    """Long values are compared first, which gives the number of the result, so that they are written once."""
    count = (len(call.arguments) - 1) // 2
    value, candidates = call.arguments[0], call.arguments[1 : 2 * count + 1 : 2]
    types, results = call.types[1 : 2 * count + 1 : 2], call.arguments[2 : 2 * count + 1 : 2]
    rest = call.arguments[2 * count + 1 :]
    otherwise = f" ELSE {rest[0]}" if rest else ""

    def equal(value: str, candidate: str, index: int) -> str:
        return compared(value, "=", candidate, call.types[0], types[index])

    if is_short(value, *candidates):
        tests = [equal(value, candidate, index) for index, candidate in enumerate(candidates)]
        whens = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(tests, results, strict=True))
        return f"CASE {whens}{otherwise} END"

    def number(value: str, *candidates: str) -> str:
        tests = (f"WHEN {equal(value, each, index)} THEN {index}" for index, each in enumerate(candidates))
        return f"CASE {' '.join(tests)} END"

    whens = " ".join(f"WHEN {index} THEN {result}" for index, result in enumerate(results))
    return f"CASE {repeating(number, value, *candidates)} {whens}{otherwise} END"


def _between(call: SqlCall) -> str:
    """Not with BETWEEN, whose operand Spark evaluates even where AND or IN guard it."""

    def body(value: str, low: str, high: str) -> str:
        above = compared(value, ">=", low, call.types[0], call.types[1])
        below = compared(value, "<=", high, call.types[0], call.types[2])
        return f"({above} AND {below})"

    return repeating(body, *call.arguments)


def _null_if(call: SqlCall) -> str:
    return repeating(lambda a, b: f"IF({compared(a, '=', b, *call.types)}, NULL, {a})", *call.arguments)


def _extreme(function: str) -> SqlOf:
    def sql_of(call: SqlCall) -> str:
        return f"{function}({', '.join(call.arguments)})" if len(call.arguments) > 1 else call.arguments[0]

    return sql_of


CHOICES: Entries = {
    "CASE": _case,
    "SWITCH": _switch,
    "BETWEEN": _between,
    "NULLIF": _null_if,
    "GREATEST": _extreme("greatest"),
    "LEAST": _extreme("least"),
}
