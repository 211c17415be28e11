"""docs/conformance.md: every rule has one row, and every test that a row names exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
NONE_YET = "no test yet"

RULES = re.findall(
    r"\S+",
    """
    OP-ATTR OP-BR-001 OP-BR-002 OP-BR-003 OP-BR-004 OP-BR-005 OP-BR-006 OP-BR-007 OP-BR-008 OP-BR-008a OP-BR-008b
    OP-BR-008c OP-BR-009 OP-BR-010 OP-BR-011 OP-BR-012 OP-BR-013 OP-BR-014 OP-BR-015 OP-UPDATE OP-AGGREGATE
    OP-APPEND OP-DELETE OP-OUTPUT OP-REGISTER OP-SNAPSHOT OP-EXAMPLE
    TR-UPDATE TR-DELETE TR-CREATE TR-OUTPUT TR-SYNC TR-FAIL TR-PRE-001 TR-PRE-002 TR-PRE-003 TR-STEP-RANGE
    TR-POST-002 TR-POST-003 TR-DELETED-STATE TR-BY-STEP TR-NOT-LIVE TR-SCOPE TR-DIFF-ONLY
    EX-1.1-SEQ EX-1.1-GAP EX-1.2-APPEND EX-1.2-TYPES EX-1.3-ENGINE EX-1.3-LOGICAL EX-1.3-KEY EX-1.4-SNAPSHOT
    EX-1.4-LAG EX-1.5-ORDER EX-1.5-REDUCE EX-1.5-RECOVER EX-2-SECRETS EX-2-ARTIFACTS EX-3-REJECT EX-3-QUEUE
    EX-3-DELAY EX-3-RECONCILE EX-3-IDEMPOTENT EX-3-LEASE EX-4-BUS EX-4-OUTBOX EX-4-DLQ EX-5-BUDGET EX-5-CRITICAL
    EX-6-ROTATE EX-6-LIMITS EX-SIGNALS
    TL-5-ISOLATION TL-6.1-ID TL-6.2-NODE TL-6.2-LEASE TL-6.2-RECORD TL-6.3-ROOT TL-6.3-ONE TL-6.3-MANY TL-7-EMIT
    TL-8.1-FIELD TL-8.1-EPOCH TL-8.2-COMPAT TL-9.2-HEADER TL-9.2-MATCH TL-9.2-PARENTS TL-10.1-FRAMES TL-10.2-LINKS
    TL-10.3-ARTIFACTS TL-10.4-WINDOWS TL-11-QUERIES TL-11.4-RECURSIVE TL-12.1-INTEGRATOR TL-13-GATE TL-14-BATCH
    TL-14.1-RING TL-14.2-DESIGNS TL-14.2.4-EXPAND TL-16-SBE
    DB-5.1-ASSIGN DB-5.2-AFTER DB-6.1-NAME DB-6.2-ALIAS DB-6.3-VALID DB-6.3-BARRIER DB-7.1-REQUEST DB-7.2-MODES
    DB-7.3-SAMPLE DB-7.4-RESPONSE DB-8.1-FREEZE DB-8.2-DEV DB-8.2-PROD DB-8.3-LIMITS DB-8.3-DEGRADE DB-9.1-COMPILE
    DB-9.2-ALLOW DB-9.3-SHARE DB-9.4-ISOLATE DB-9.5-BUDGET DB-10.1-HANDLE DB-10.2-INDEX DB-11.1-OBSERVE
    DB-11.2-TOOLS DB-12-ALLOWLIST DB-12-PROD DB-12-TTL DB-12-ACCESS DB-13-CAPABILITY
    """,
)

ROW = re.compile(r"^\| (?P<id>[A-Z]{2}-\S+) \| (?P<rule>.+?) \| (?P<tests>.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>[\w:]+)`")


def rows() -> list[tuple[str, str, str]]:
    return [(row["id"], row["rule"], row["tests"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


@cache
def names_of_tests(file: Path) -> set[str]:
    """The tests of a file, those of a class with its name before them."""
    names = set[str]()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            inner = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            names.update(f"{node.name}::{each.name}" for each in inner)
    return names


def test_every_rule_has_exactly_one_row() -> None:
    assert sorted(row[0] for row in rows()) == sorted(RULES)
    assert len(set(RULES)) == len(RULES) == 129


def test_every_line_of_a_table_is_a_row() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    headings = [line for line in lines if line.startswith(("| id |", "|---"))]
    assert len(lines) - len(headings) == len(rows())
    assert len(headings) == 2 * 5


def test_every_row_names_tests_or_says_that_there_are_none() -> None:
    for rule, _, tests in rows():
        named = [match.group() for match in TEST.finditer(tests)]
        assert (tests == NONE_YET) != bool(named), f"{rule}: {tests}"
        assert tests == NONE_YET or tests == ", ".join(named), f"{rule}: {tests}"


def test_every_test_that_a_row_names_exists() -> None:
    for rule, _, tests in rows():
        for match in TEST.finditer(tests):
            file = ROOT / match["file"]
            assert file.is_file(), f"{rule}: {match['file']} does not exist"
            assert match["name"] in names_of_tests(file), f"{rule}: no {match['name']} in {match['file']}"
