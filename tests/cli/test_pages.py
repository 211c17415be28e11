"""Pages on a terminal: where every line fits, they are laid out as Rich would, and Rich is not loaded."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.views.fitting import fitted, is_plain_width
from clew.cli.views.page import as_text, grid, headed, heading, label, plain, spread, stacked, width, width_of
from clew.cli.views.page_parts import Indented, PagePart, Styled
from clew.cli.views.wrapping import cell_len, wrapped

_STYLES = st.sampled_from(["", "bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan", "bold red"])
_TEXTS = st.text(st.sampled_from("abcXYZ 0189,.-_/äÅß…→✓█\n"), max_size=12)
_ODD = st.text(max_size=6)


@st.composite
def texts(draw: st.DrawFn, of: st.SearchStrategy[str] = _TEXTS) -> Styled:
    if draw(st.booleans()):
        return Styled(draw(of), draw(_STYLES), justify=draw(st.sampled_from(["left", "left", "right"])))
    return Styled.assemble(*draw(st.lists(st.one_of(of, st.tuples(of, _STYLES), st.builds(Styled, of)), max_size=3)))


def tables(cells: st.SearchStrategy[PagePart]) -> st.SearchStrategy[PagePart]:
    rows = st.lists(st.lists(cells, max_size=4), max_size=4)
    headings = st.lists(st.text("abc ", max_size=6), max_size=4)
    return st.one_of(
        st.builds(lambda given, fixed: grid(given, fixed=fixed), rows, st.integers(0, 3)),
        st.builds(lambda names, given, fixed: headed(names, given, fixed=fixed), headings, rows, st.integers(0, 3)),
    )


_PARTS: st.SearchStrategy[PagePart] = st.recursive(
    st.one_of(texts(), texts(_ODD), _TEXTS),
    lambda inner: st.one_of(
        tables(inner), st.lists(inner, max_size=3).map(lambda parts: stacked(*parts)), st.builds(Indented, inner)
    ),
    max_leaves=12,
)


def characters(text: str) -> Iterator[list[tuple[str, frozenset[str]]]]:
    """The characters of each line with their styles; spaces have none that can be seen."""
    for line in text.splitlines():
        found, style = list[tuple[str, frozenset[str]]](), frozenset[str]()
        for codes, written in re.findall(r"\x1b\[([\d;]*)m|([^\x1b])", line):
            if written:
                found.append((written, style if written != " " else frozenset()))
            else:
                style = frozenset() if codes in {"", "0"} else frozenset(codes.split(";"))
        while found and found[-1][0] == " ":
            found.pop()
        yield found


@given(parts=st.lists(_PARTS, max_size=3), room=st.integers(20, 90))
def test_a_page_that_fits_is_laid_out_as_rich_does(parts: list[PagePart], room: int) -> None:
    text = fitted(parts, room, colours=False)
    if text is not None:
        assert text == wrapped(parts, room, colours=False)


@given(parts=st.lists(_PARTS, max_size=3))
def test_colours_are_those_of_rich(parts: list[PagePart]) -> None:
    text = fitted(parts, 200, colours=True)
    if text is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERM", "xterm-256color")
            patch.delenv("NO_COLOR", raising=False)
            assert list(characters(text)) == list(characters(wrapped(parts, 200, colours=True)))


def test_a_character_is_taken_for_one_place_only_if_it_takes_one() -> None:
    known = [character for character in map(chr, range(0x10000)) if is_plain_width(character)]
    assert len(known) > 600
    assert [character for character in known if cell_len(character) != 1] == []


def test_common_pages_fit_and_others_are_wrapped() -> None:
    table = headed(["run", "status"], [[plain("a1b2c3d4"), plain("COMPLETED", "green")]])
    page: list[PagePart] = [heading("run a1"), grid([[label("kept"), plain("Zürich → 12")]]), Styled(), table]
    assert fitted(page, 40, colours=False) == "run a1\nkept     Zürich → 12\n\nrun       status\na1b2c3d4  COMPLETED\n"
    others: list[PagePart] = [plain("x" * 41), plain("東京"), spread([plain("a")]), Styled("a\tb"), headed([], [])]
    for part in others:
        assert fitted([part], 40, colours=False) is None
    assert as_text(plain("word " * 30)).count("\n") == 2


def test_the_width_is_that_of_columns_or_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width() == 120
    monkeypatch.setenv("COLUMNS", "77")
    assert width() == 77
    assert (width_of("Zürich"), width_of("東京")) == (6, 4)


def test_a_page_that_fits_loads_no_rich() -> None:
    code = (
        "import sys\nfrom clew.cli.views.page import headed, plain, show\n"
        "show(headed(['a', 'b'], [[plain('x'), plain('y', 'bold')]]))\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "a  b\nx  y\n[]\n"
