"""The published grammar and the parser accept the same texts and read them the same way."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from clew.diagnostics import PlainText, UserError
from clew.lang import parse
from clew.lang.syntax import Call, Literal, Node, Over, Reference, SelectorReference
from tests.tiers import examples

GRAMMAR = Path(__file__).parents[2] / "docs" / "reference" / "grammar.lark"
LARK = Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer="basic")

NAMES = st.sampled_from(["a", "größe", "名前", "_period", "`odd name`", "`a``b`", "`and`", "x1", "inn", "isx"])
KEYWORDS = st.sampled_from(["and", "OR", "Not", "IN", "is", "null", "TRUE", "False", "case", "WHEN"])
_WORDS_OF_WINDOWS = "over PARTITION By order ASC desc rows unbounded PRECEDING current Row following"
WORDS = st.sampled_from(["then", "ELSE", "End", "between", "LIKE", "escape", *_WORDS_OF_WINDOWS.split()])
NUMBERS = st.sampled_from(["0", "42", "3.14", "007", "0.50", "12345678901234567890"])
STRINGS = st.sampled_from(['"x"', '""', '"say ""hi"""', '"a\nb"', '"\'"', '"and"', '"ſ"'])
SELECTORS = st.sampled_from(["{{LARGE}}", "{{ two.parts-x }}"])
SYMBOLS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "(", ")", ",", "."])
TOKENS = st.one_of(NAMES, KEYWORDS, WORDS, NUMBERS, STRINGS, SELECTORS, SYMBOLS)
JUNK = st.sampled_from(
    ["'", '"', "`", "{{", "}}", "==", "!=", "1x", "1.", ".5", "ıs", "ſum(", "٣", "²", ";", "\u200b", "e\u0301"]
)


def _infix(operators: list[str], operands: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    chain = st.lists(st.tuples(st.sampled_from(operators), operands), min_size=1, max_size=3)
    return st.builds(lambda first, rest: sum(([*op.split(), *x] for op, x in rest), first), operands, chain)


def _separated(operands: st.SearchStrategy[list[str]], least: int) -> st.SearchStrategy[list[str]]:
    return st.lists(operands, min_size=least, max_size=3).map(
        lambda parts: [token for part in parts for token in (",", *part)][1:]
    )


_COLUMNS = st.one_of(NAMES, WORDS).map(lambda name: [name]) | st.builds(lambda t, c: [t, ".", c], NAMES, WORDS)
_BOUNDS = st.sampled_from(
    ["unbounded preceding", "2 PRECEDING", "current row", "1 following", "UNBOUNDED FOLLOWING", "1.5 preceding"]
).map(str.split)
OVER = st.builds(
    lambda keys, order, frame: ["OVER", "(", *keys, *order, *frame, ")"],
    st.just([]) | _separated(_COLUMNS, 1).map(lambda each: ["partition", "BY", *each]),
    st.just([])
    | _separated(
        st.builds(lambda column, way: [*column, *way], _COLUMNS, st.sampled_from([[], ["desc"], ["ASC"]])), 1
    ).map(lambda each: ["Order", "by", *each]),
    st.just([]) | st.builds(lambda a, b: ["ROWS", "between", *a, "AND", *b], _BOUNDS, _BOUNDS),
)


def _larger(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    called = st.sampled_from(["SUM", "if", "Größe", "and", "OR", "in", "like", "END"])
    whens = st.lists(st.builds(lambda a, b: ["WHEN", *a, "then", *b], inner, inner), min_size=1, max_size=2)
    return st.one_of(
        _infix(["+", "-", "*", "/", "=", "<=", "<>", "AND", "or"], inner),
        st.builds(lambda sign, x: [sign, *x], st.sampled_from(["-", "+", "NOT", "not"]), inner),
        st.builds(lambda x: ["(", *x, ")"], inner),
        st.builds(lambda x, tail: [*x, *tail.split()], inner, st.sampled_from(["IS NULL", "is Not null"])),
        st.builds(
            lambda x, op, values: [*x, *op.split(), "(", *values, ")"],
            inner,
            st.sampled_from(["IN", "not in"]),
            _separated(inner, 1),
        ),
        st.builds(lambda name, values: [name, "(", *values, ")"], called, _separated(inner, 0)),
        st.builds(lambda name, values, over: [name, "(", *values, ")", *over], called, _separated(inner, 0), OVER),
        st.builds(
            lambda value, branches, otherwise: [
                "CASE",
                *value,
                *(token for branch in branches for token in branch),
                *otherwise,
                "end",
            ],
            st.one_of(st.just([]), inner),
            whens,
            st.one_of(st.just([]), inner.map(lambda x: ["ELSE", *x])),
        ),
        st.builds(
            lambda x, op, low, high: [*x, *op.split(), *low, "AND", *high],
            inner,
            st.sampled_from(["BETWEEN", "not between"]),
            inner,
            inner,
        ),
        st.builds(
            lambda x, op, pattern, tail: [*x, *op.split(), *pattern, *tail],
            inner,
            st.sampled_from(["LIKE", "Not Like"]),
            inner,
            st.sampled_from([[], ["ESCAPE", '"!"']]),
        ),
    )


OPERANDS = st.one_of(
    st.one_of(NAMES, WORDS, NUMBERS, STRINGS, SELECTORS, st.sampled_from(["TRUE", "null"])).map(lambda token: [token]),
    st.builds(lambda table, column: [table, ".", column], NAMES, st.one_of(NAMES, KEYWORDS)),
)
EXPRESSIONS = st.recursive(OPERANDS, _larger, max_leaves=12)


@st.composite
def _spaced(draw: st.DrawFn, tokens: st.SearchStrategy[list[str]]) -> str:
    gap = draw(st.sampled_from([" ", "", "\n\t ", "\u00a0"]))
    text = ""
    for token in draw(tokens):
        glue = gap or (" " if text[-1:].isalnum() and token[:1].isalnum() else "")
        text += glue + token
    return text


@st.composite
def _mutated(draw: st.DrawFn) -> list[str]:
    tokens = list(draw(EXPRESSIONS))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.integers(0, max(0, len(tokens) - 1)))
        match draw(st.sampled_from(["delete", "insert", "replace", "repeat", "swap", "junk"])):
            case "delete":
                tokens[place : place + 1] = []
            case "insert":
                tokens.insert(place, draw(TOKENS))
            case "replace":
                tokens[place : place + 1] = [draw(TOKENS)]
            case "repeat":
                tokens[place:place] = tokens[place : place + 1]
            case "swap":
                tokens[place : place + 2] = reversed(tokens[place : place + 2])
            case _:
                tokens.insert(place, draw(JUNK))
    return tokens


def _ours(text: str) -> object:
    try:
        return _form(parse(PlainText(text)))
    except UserError:
        return "refused"


def _larks(text: str) -> object:
    try:
        return _form_of_tree(LARK.parse(text).children[0])
    except LarkError:
        return "refused"


def _form(node: Node) -> object:
    match node:
        case Literal(int() | Decimal() as value) if not isinstance(value, bool):
            return ("number", str(value))
        case Literal(value):
            return ("literal", value)
        case Reference(table, column):
            return ("column", table, column)
        case SelectorReference(name):
            return ("selector", name)
        case Call(name, arguments, over=None):
            return (name, *map(_form, arguments))
        case Call(name, arguments, over=over):
            assert isinstance(over, Over)
            keys = ("partition", *map(_form, over.partition_by)) if over.partition_by else None
            order = [(_form(each.column), each.descending) for each in over.order_by]
            bounds = [(str(each.rows.value) if each.rows else None, each.direction) for each in over.frame or ()]
            return ("over", (name, *map(_form, arguments)), keys, order, bounds)


def _form_of_tree(tree: object) -> object:
    assert isinstance(tree, Tree)
    parts = [_form_of_tree(child) for child in tree.children if isinstance(child, Tree)]
    tokens = [str(child) for child in tree.children if isinstance(child, Token)]
    match tree.data:
        case "or" | "and":
            return (tree.data.upper(), *parts)
        case "negation":
            return ("NOT", *parts)
        case "operation":
            return (tokens[0], *parts)
        case "is_in" | "is_not_in":
            assert isinstance(parts[1], list)
            found = ("IN", parts[0], *parts[1])
            return found if tree.data == "is_in" else ("NOT", found)
        case "is_between" | "is_like":
            return (tree.data.removeprefix("is_").upper(), *parts)
        case "is_not_between" | "is_not_like":
            return ("NOT", (tree.data.removeprefix("is_not_").upper(), *parts))
        case "case" | "switch":
            inner = [each for part in parts for each in (part if isinstance(part, list) else [part])]
            has_otherwise = len(inner) % 2 == (1 if tree.data == "case" else 0)
            return (tree.data.upper(), *inner, *([] if has_otherwise else [("literal", None)]))
        case "when":
            return parts
        case "values":
            return parts
        case "is_null":
            return ("ISNULL", *parts)
        case "is_not_null":
            return ("NOT", ("ISNULL", *parts))
        case "plus":
            return parts[0]
        case "minus":
            return ("NEGATE", *parts)
        case "number":
            return ("number", str(Decimal(tokens[0]) if "." in tokens[0] else int(tokens[0])))
        case "text":
            return ("literal", tokens[0][1:-1].replace('""', '"'))
        case "true" | "false" | "null":
            return ("literal", {"true": True, "false": False, "null": None}[tree.data])
        case "selector":
            return ("selector", tokens[0][2:-2].strip())
        case "column_name" if not tokens:
            return parts[0]
        case "name" | "column_name":
            return tokens[0][1:-1].replace("``", "`") if tokens[0].startswith("`") else tokens[0]
        case "column":
            return ("column", None, *parts)
        case "qualified_column":
            return ("column", *parts)
        case "call" if parts and isinstance(parts[-1], dict):
            over = parts[-1]
            called = (tokens[0].upper() if tokens[0].isascii() else tokens[0], *parts[:-1])
            return ("over", called, over.get("partition"), over.get("order", []), over.get("frame", []))
        case "over":
            return {part[0]: (part if part[0] == "partition" else part[1]) for part in parts}  # type: ignore[index]
        case "partition":
            return ("partition", *parts)
        case "order" | "frame":
            return (tree.data, parts)
        case "ordered":
            return (parts[0], tokens[-1:] != [] and tokens[-1].upper() == "DESC")
        case "reference":
            return ("column", *([None] if len(parts) == 1 else []), *parts)
        case "bound" if tokens[0].upper() == "CURRENT":
            return (None, "CURRENT")
        case "bound":
            first = tokens[0]
            is_number = first[0].isdigit()
            rows = str(Decimal(first) if "." in first else int(first)) if is_number else None
            return (rows, tokens[1].upper())
        case "call":
            return (tokens[0].upper() if tokens[0].isascii() else tokens[0], *parts)
        case other:
            raise AssertionError(other)


@given(_spaced(EXPRESSIONS))
@settings(max_examples=examples(300))
@example("NOT(a) IS NULL")
@example("a - b - c / d / e * f")
@example("-a * -b + +c")
@example("a or b and not c = d or e")
@example("a IS NOT NULL = b")
@example("a between b and c and d")
@example("end between then and else")
@example("CASE end WHEN then THEN else ELSE end END")
@example("CASE WHEN a LIKE b ESCAPE c THEN 1 END + 1")
@example(
    "sum(a) over (partition by partition, t.by order by order desc, rows ROWS between 1 preceding and current row)"
)
@example("over(over) over () / f(a) OVER (ORDER BY asc ASC)")
def test_parser_and_grammar_read_an_expression_the_same_way(text: str) -> None:
    assert _ours(text) == _larks(text)


@given(_spaced(_mutated()))
@settings(max_examples=examples(600))
@example("a < b < c")
@example("a = NOT b")
@example("x ıs NULL")
@example("t.and")
@example("and.t")
@example("AND(a)")
@example("NULL(a)")
@example("`sum`(a)")
@example("a.b.c")
@example("a IN ()")
@example("f(,)")
@example("f(a,)")
@example('"a"" OR b')
@example("1.5.2")
@example("1_000")
def test_parser_and_grammar_accept_and_refuse_the_same_near_misses(text: str) -> None:
    assert _ours(text) == _larks(text)


@given(st.lists(st.one_of(TOKENS, JUNK), max_size=8).map(" ".join))
@settings(max_examples=examples(300))
def test_parser_and_grammar_agree_on_token_soup(text: str) -> None:
    assert _ours(text) == _larks(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a OR b AND c", "(OR a (AND b c))"),
        ("NOT a AND b", "(AND (NOT a) b)"),
        ("NOT a = b", "(NOT (= a b))"),
        ("NOT(a) IS NULL", "(NOT (ISNULL a))"),
        ("a + b * c", "(+ a (* b c))"),
        ("a - b - c", "(- (- a b) c)"),
        ("a / b * c", "(* (/ a b) c)"),
        ("-a * b", "(* (NEGATE a) b)"),
        ("- - a", "(NEGATE (NEGATE a))"),
        ("+a", "a"),
        ("a + b = c - d", "(= (+ a b) (- c d))"),
        ("a = 1 AND b NOT IN (1, 2) OR c IS NOT NULL", "(OR (AND (= a 1) (NOT (IN b 1 2))) (NOT (ISNULL c)))"),
        ("a AND b AND c AND d", "(AND a b c d)"),
        ("(a AND b) AND c", "(AND (AND a b) c)"),
        ("sum(a) / Count_All()", "(/ (SUM a) (COUNT_ALL))"),
    ],
)
def test_operators_bind_in_the_published_order(text: str, form: str) -> None:
    assert _short(parse(PlainText(text))) == form


def _short(node: Node) -> str:
    match node:
        case Literal(value):
            return str(value)
        case Reference(_, column):
            return column
        case SelectorReference(name):
            return name
        case Call(name, arguments):
            return f"({' '.join([name, *map(_short, arguments)])})"
