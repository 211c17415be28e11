"""The verifier of packs calculates as the language does, without sharing a line with it."""

import ast
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.diagnostics import PlainText, UserError
from clew.evidence import pack_verifier
from clew.lang import Expression, Grouped, Row, Value, check, evaluator, group_evaluator, parse
from clew.lang.functions import FUNCTIONS
from clew.lang.typed import to_json
from clew.trace.json_values import json_value
from tests.strategies.expressions import JOINED, SCOPE, TABLE, aggregation_texts, expressions, rows
from tests.tiers import examples

TODAY = date(2026, 1, 31)
FAILED = "cannot be calculated"
Tables = dict[str, dict[str, Value]]


def test_it_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(pack_verifier.__file__).read_text(encoding="utf-8"))
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in named} <= set(sys.stdlib_module_names)


def test_it_knows_every_function() -> None:
    known = {*pack_verifier._FUNCTIONS, *pack_verifier._LAZY, *pack_verifier._AGGREGATES, "ISNULL", "TODAY"}
    assert known == set(FUNCTIONS)


def scope(tables: Tables) -> pack_verifier.SeenValues:
    """A row as an explanation has it."""
    values = {name: json_value(value) for name, value in tables[TABLE].items()}
    values |= {f"{JOINED}.{name}": json_value(value) for name, value in tables[JOINED].items()}
    return pack_verifier.SeenValues(values, TABLE, TODAY)


def attempted(calculate: Callable[[], Any]) -> Any:
    try:
        return calculate()
    except (UserError, ArithmeticError, ValueError):
        return FAILED


def same(ours: Any, theirs: Any) -> bool:
    expected = Fraction(ours) if isinstance(ours, Decimal) else ours
    return pack_verifier.is_same(expected, theirs)


@settings(max_examples=examples(1000))
@given(expressions(), rows())
def test_every_expression_has_the_value_that_the_language_gives_it(expression: Expression, tables: Tables) -> None:
    ours = attempted(lambda: evaluator(expression)(Row(tables, TODAY)))
    assume(ours != FAILED)  # what fails in a run is not in a pack
    theirs = attempted(lambda: pack_verifier.calculate(to_json(expression), scope(tables)))
    assert same(ours, theirs), (to_json(expression), ours, theirs)


@settings(max_examples=examples(300))
@given(aggregation_texts(), st.lists(rows(), min_size=1, max_size=8))
def test_every_aggregation_has_the_value_that_the_language_gives_it(text: str, group: list[Tables]) -> None:
    checked = check(parse(PlainText(text)), SCOPE, Grouped(frozenset({"text"}))).expression
    assume(checked is not None)
    assert checked is not None
    key = group[0][TABLE]["text"]
    alike = [{**tables, TABLE: {**tables[TABLE], "text": key}} for tables in group]
    ours = attempted(lambda: group_evaluator(checked)([Row(tables, TODAY) for tables in alike]))
    assume(ours != FAILED)
    theirs = attempted(lambda: pack_verifier.calculate_group(to_json(checked), [scope(each) for each in alike]))
    assert same(ours, theirs), (text, ours, theirs)


VECTORS = [
    # RFC 8032, section 7.1
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_signatures_of_the_standard_are_right_and_changed_ones_are_not(key: str, message: str, signature: str) -> None:
    public, text, signed = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
    assert pack_verifier.is_signed(public, text, signed)
    assert not pack_verifier.is_signed(public, text + b"\0", signed)
    for position in (0, 31, 32, 63):
        changed = bytearray(signed)
        changed[position] ^= 1
        assert not pack_verifier.is_signed(public, text, bytes(changed))
