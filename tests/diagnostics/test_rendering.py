"""The excerpt with its caret, near names, and the order of diagnostics."""

import pytest

from clew.diagnostics import Code, Diagnostic, PlainText, Span, did_you_mean, in_order, nearest, render

CODE = Code("Example", "something about {what}", "When something is wrong.", "set it right")


def _rendered(text: str, start: int, end: int, hint: str | None = None) -> list[str]:
    diagnostic = CODE.at(PlainText(text, "a.yaml").span(start, end), what="it", hint=hint)
    return render(diagnostic, lambda _file: text).split("\n")


def test_a_caret_stands_under_the_culprit_and_the_hint_beside_it() -> None:
    assert _rendered("amount = nme", 9, 12, 'did you mean "name"?') == [
        "a.yaml:1:10: error Example: something about it",
        "    1 | amount = nme",
        '      |          ^^^ did you mean "name"?',
    ]


def test_the_remedy_of_the_code_is_the_hint_where_the_place_offers_none() -> None:
    assert _rendered("abc", 0, 1)[-1] == "      | ^ set it right"
    assert _rendered("abc", 0, 1, "")[-1] == "      | ^"


@pytest.mark.parametrize(
    ("text", "start", "end", "padding", "carets"),
    [
        ("名前 = x", 5, 6, " " * 7, "^"),
        ("x = 名前", 4, 6, "    ", "^^^^"),
        ("\t\tx = y", 6, 7, "\t\t    ", "^"),
        ("e\u0301te = y", 7, 8, " " * 6, "^"),
        ("\u0915\u0941 = y", 5, 6, "    ", "^"),
        ("😀 = y", 4, 5, "     ", "^"),
        ("x\u200b = y", 5, 6, "     ", "^"),
        ("ab", 2, 3, "  ", "^"),
        ("", 0, 1, "", "^"),
    ],
    ids=["wide before", "wide culprit", "tabs", "combining accent", "vowel sign", "emoji", "invisible", "end", "empty"],
)
def test_the_caret_stands_right_in_a_terminal(text: str, start: int, end: int, padding: str, carets: str) -> None:
    assert _rendered(text, start, end)[2] == f"      | {padding}{carets} set it right"


def test_a_culprit_over_several_lines_is_marked_up_to_the_end_of_the_first() -> None:
    assert _rendered('x = "a\nb"', 4, 9)[1:] == ['    1 | x = "a', "      |     ^^ set it right"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_lines_end_where_the_yaml_parser_ends_them(line_break: str) -> None:
    text = f"first{line_break}second = x{line_break}"
    start = text.index("x")
    assert _rendered(text, start, start + 1)[:2] == [
        "a.yaml:2:10: error Example: something about it",
        "    2 | second = x",
    ]


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x1d"])
def test_other_control_characters_end_no_line_and_are_made_visible(separator: str) -> None:
    text = f"a{separator}b = x"
    assert _rendered(text, 6, 7)[1:] == ["    1 | a\ufffdb = x", "      |       ^ set it right"]


def test_a_long_line_is_cut_around_the_culprit() -> None:
    text = "a" * 500 + "CULPRIT" + "b" * 500
    _, excerpt, marks = _rendered(text, 500, 507)
    assert excerpt == "    1 | … " + "a" * 40 + "CULPRIT" + "b" * 73 + " …"
    assert marks == "      |   " + " " * 40 + "^^^^^^^ set it right"


def test_a_long_culprit_is_cut_at_the_width_of_the_excerpt() -> None:
    _, excerpt, marks = _rendered("x" * 1000, 100, 900)
    assert excerpt == "    1 | … " + "x" * 120 + " …"
    assert marks == "      |   " + " " * 40 + "^" * 80 + " set it right"


@pytest.mark.parametrize("source", [None, "one line"])
def test_without_an_excerpt_the_hint_has_a_line_of_its_own(source: str | None) -> None:
    diagnostic = CODE.at(Span("a.yaml", 7, 3), what="it")
    assert render(diagnostic, lambda _file: source) == "a.yaml:7:3: error Example: something about it\n  set it right"
    assert render(CODE.anywhere(what="it"), lambda _file: source) == "error Example: something about it\n  set it right"


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    diagnostic = CODE.anywhere(what="a\x1b[31m\nb")
    assert render(diagnostic, lambda _file: None).split("\n")[0] == "error Example: something about a\ufffd[31m\ufffdb"


def test_a_message_shows_no_more_than_the_beginning_of_a_long_name() -> None:
    diagnostic = CODE.anywhere(what="x" * 10_000)
    assert len(diagnostic.message) < 600
    assert diagnostic.params["what"] == "x" * 10_000


def _at(file: str, line: int, column: int, message: str = "") -> Diagnostic:
    return Diagnostic("Example", message, span=Span(file, line, column))


def test_diagnostics_are_put_in_reading_order_without_repetitions() -> None:
    placeless = Diagnostic("Example", "anywhere")
    shuffled = [_at("b", 1, 1), _at("a", 10, 1), _at("a", 9, 5), placeless, _at("a", 9, 5), _at("a", 9, 5, "other")]
    assert in_order(shuffled) == (
        placeless,
        _at("a", 9, 5),
        _at("a", 9, 5, "other"),
        _at("a", 10, 1),
        _at("b", 1, 1),
    )


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("amuont", ["account", "amount", "mount"], "amount"),
        ("AMOUNT", ["amount"], "amount"),
        ("STRASSE", ["straße"], "straße"),
        ("x", ["amount"], None),
        ("amount", [], None),
        ("a" * 101, ["a" * 100], None),
        ("amuont", [f"amount_{n}" for n in range(3000)], None),
        ("AMOUNT_7", [f"amount_{n}" for n in range(3000)], "amount_7"),
    ],
)
def test_the_nearest_name(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(name, candidates) == expected
    assert did_you_mean(name, candidates) == (None if expected is None else f'did you mean "{expected}"?')
