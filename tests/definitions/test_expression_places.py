"""Where the characters of an expression stand, for every way YAML can write it."""

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.definitions import ExpressionText, Project, project_from_data
from clew.definitions.nodes import LINE_BREAK, SourceText
from clew.definitions.shapes import Record
from clew.definitions.yaml_nodes import read_yaml
from clew.diagnostics import Span
from tests.tiers import examples

HEADER = "id: p\ninput_dataset: d\noperations: []\nselectors:\n"


def selector_in(text: str) -> ExpressionText:
    tree = read_yaml(SourceText("p.yaml", text))
    assert tree.diagnostics == ()
    assert tree.root is not None
    return Record(Project).read(tree.root).selectors["x"]


def written_at(text: str, span: Span) -> str:
    starts = [0, *(match.end() for match in LINE_BREAK.finditer(text))]
    start = starts[span.line - 1] + span.column - 1
    return text[start : start + span.length]


def check_every_character(text: str, expression: ExpressionText) -> None:
    """Each character of the value stands where its span says: as itself, as its escape, or as the line break it was."""
    previous = (0, 0)
    for index, character in enumerate(expression.value):
        span = expression.span(index, index + 1)
        written = written_at(text, span)
        assert (span.line, span.column) > previous
        previous = (span.line, span.column)
        if written == character:
            continue
        if character in " \n\u2028\u2029" and LINE_BREAK.match(written):
            continue
        if written == "''":
            assert character == "'"
        else:
            assert written.startswith("\\")
            assert yaml.safe_load(f'"{written}"') == character


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("abc xyz_.,()+-*/=<>\"'\\{}[]#:|&!%@`~?\n\t 0123456789")),
        st.characters(codec="utf-8"),
    ),
    min_size=1,
    max_size=60,
).filter(lambda text: bool(text.strip()))


@settings(max_examples=examples(200), deadline=None)
@given(
    value=TEXTS,
    style=st.sampled_from([None, '"', "'", "|", ">"]),
    width=st.sampled_from([12, 30, 1000]),
    unicode=st.booleans(),
    line_break=st.sampled_from(["\n", "\r\n"]),
)
def test_every_character_that_yaml_wrote_is_found_again(
    value: str, style: str | None, width: int, unicode: bool, line_break: str
) -> None:
    content = {"id": "p", "input_dataset": "d", "operations": [], "selectors": {"x": value}}
    text = yaml.dump(content, default_style=style, width=width, allow_unicode=unicode, line_break=line_break)
    assume(yaml.safe_load(text) == content)
    expression = selector_in(text)
    assert expression.value == value
    check_every_character(text, expression)


PLAIN_LINES = st.lists(
    st.lists(st.sampled_from(["amount", "*", "fx.rate", "ü", "1.5", "x#"]), max_size=4).map(
        lambda words: " ".join(["a", *words])
    ),
    min_size=1,
    max_size=4,
)
LINE_ENDS = st.lists(st.sampled_from(["\n", "\r\n", "  \n", "\t\n"]), min_size=4, max_size=4)
GAPS = st.lists(st.integers(0, 2), min_size=4, max_size=4)
INDENTS = st.lists(st.integers(3, 6), min_size=4, max_size=4)


def folded(lines: list[str], ends: list[str], gaps: list[int], indents: list[int]) -> str:
    """Lines as a careless writer would lay them out."""
    text = lines[0]
    for line, end, gap, indent in zip(lines[1:], ends, gaps, indents, strict=False):
        text += end + "   \n" * gap + " " * indent + line
    return text


@settings(max_examples=examples(100), deadline=None)
@given(lines=PLAIN_LINES, ends=LINE_ENDS, gaps=GAPS, indents=INDENTS, quote=st.sampled_from(["", "'", '"']))
def test_every_character_is_found_in_text_over_several_lines(
    lines: list[str], ends: list[str], gaps: list[int], indents: list[int], quote: str
) -> None:
    text = f"{HEADER}  x: {quote}{folded(lines, ends, gaps, indents)}{quote} # a comment\n  y: 1\n"
    expression = selector_in(text)
    assert expression.value == yaml.load(text, Loader=yaml.CSafeLoader)["selectors"]["x"]
    check_every_character(text, expression)


@settings(max_examples=examples(150), deadline=None)
@given(
    lines=st.lists(
        st.builds(
            lambda blanks, text: blanks + text,
            st.sampled_from(["", "", " ", "   ", "\t"]),
            st.text("ab :#'\"", max_size=8),
        ),
        min_size=1,
        max_size=6,
    ),
    header=st.builds(
        "".join, st.tuples(st.sampled_from("|>"), st.sampled_from(["", "2"]), st.sampled_from(["", "-", "+"]))
    ),
    ending=st.sampled_from(["\n", "\r\n"]),
    after=st.sampled_from(["", "  y: 1\n", "# a comment\n", "\n\n  # a comment\n  y: 1\n"]),
)
def test_every_character_is_found_in_blocks(lines: list[str], header: str, ending: str, after: str) -> None:
    block = "".join(f"    {line}{ending}" for line in lines)
    text = f"{HEADER}  x: {header}{ending}{block}{after}"
    tree = read_yaml(SourceText("p.yaml", text))
    assume(not tree.diagnostics and tree.root is not None)
    value = yaml.load(text, Loader=yaml.CSafeLoader)["selectors"]["x"]
    assume(value.strip())
    expression = selector_in(text)
    assert expression.value == value
    check_every_character(text, expression)


@pytest.mark.parametrize(
    ("written", "value", "part", "place"),
    [
        ("x: amount > 100", "amount > 100", "100", (5, 15, 3)),
        ('x: "a = \\"EMEA\\" AND bad"', 'a = "EMEA" AND bad', "bad", (5, 24, 3)),
        ('x: "a = \\"EMEA\\""', 'a = "EMEA"', '"EMEA"', (5, 11, 8)),
        ("x: 'it''s = bad'", "it's = bad", "bad", (5, 15, 3)),
        ("x: |\n    a +\n      bad\n", "a +\n  bad\n", "bad", (7, 7, 3)),
        ("x: >\n    a +\n    bad\n", "a + bad\n", "bad", (7, 5, 3)),
        ("x: a +\n    bad", "a + bad", "bad", (6, 5, 3)),
        ('x: "a + \\\n    bad"', "a + bad", "bad", (6, 5, 3)),
        ('x: "a +\n\n    bad"', "a +\nbad", "bad", (7, 5, 3)),
        ("x: &anchor amount > bad", "amount > bad", "bad", (5, 23, 3)),
        ('x: "\\u00fc + \\U0001F600 + bad"', "ü + 😀 + bad", "bad", (5, 29, 3)),
        ("x: 😀ü + bad", "😀ü + bad", "bad", (5, 11, 3)),
        ("{x: a + bad}", "a + bad", "bad", (5, 11, 3)),
        ('x:\n    "a + bad"', "a + bad", "bad", (6, 10, 3)),
    ],
)
def test_a_part_of_an_expression_is_found(written: str, value: str, part: str, place: tuple[int, int, int]) -> None:
    expression = selector_in(f"{HEADER}  {written}\n")
    assert expression.value == value
    start = value.index(part)
    assert expression.span(start, start + len(part)) == Span("p.yaml", *place)


def test_a_part_that_goes_over_the_end_of_a_line_is_marked_up_to_there() -> None:
    expression = selector_in(f"{HEADER}  x: >-\n    amount +\n    rate\n")
    assert expression.span(0, len(expression.value)) == Span("p.yaml", 6, 5, 8)


def test_the_end_of_an_expression_has_a_place() -> None:
    expression = selector_in(f'{HEADER}  x: "a +"\n')
    assert expression.span(3, 3) == Span("p.yaml", 5, 10, 1)
    assert expression.span(2, 3) == Span("p.yaml", 5, 9, 1)


def test_an_expression_behind_an_alias_stands_where_it_is_written() -> None:
    text = f"{HEADER}  a: &s 'a = bad'\n  x: *s\n"
    assert selector_in(text).span(4, 7) == Span("p.yaml", 5, 14, 3)


def test_an_expression_built_in_python_stands_at_its_origin() -> None:
    data = {"id": "p", "input_dataset": "d", "operations": [], "selectors": {"x": "a = bad"}}
    expression = project_from_data(data, "notebook").selectors["x"]
    assert expression.span(4, 7) == Span("notebook", 1, 1, 1)


def test_expressions_are_equal_by_their_text_alone() -> None:
    here = selector_in(f"{HEADER}  x: a + b\n")
    there = selector_in(f'{HEADER}\n\n  x: "a + b"\n')
    assert here == there
    assert hash(here) == hash(there)
    assert here.span(0, 1) != there.span(0, 1)


@pytest.mark.parametrize("written", ["0", "1.50", "true", "2026-01-01", "-1"])
def test_a_number_or_true_without_quotes_is_an_expression(written: str) -> None:
    assert selector_in(f"{HEADER}  x: {written}\n").value == written
