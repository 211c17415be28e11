"""Every code of the catalogue is complete and can be told apart."""

import re
import string

import pytest

from clew.diagnostics import ClewError, Code, EngineBug, TransientFailure, UserError, raise_if_any
from clew.diagnostics.codes import CATALOGUE, FAMILIES

ALL = [code for codes in FAMILIES.values() for code in codes]


def test_names_are_unique() -> None:
    assert len(CATALOGUE) == len(ALL)


@pytest.mark.parametrize("code", ALL, ids=lambda code: code.name)
def test_a_code_has_a_name_a_message_a_meaning_and_a_remedy(code: Code) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z]+", code.name)
    assert code.message
    assert not code.message.endswith(".")
    assert code.meaning.endswith(".")
    assert code.remedy
    assert not code.remedy.endswith(".")


@pytest.mark.parametrize("code", ALL, ids=lambda code: code.name)
def test_a_message_can_be_filled_from_named_parameters(code: Code) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(code.message) if name]
    message = code.anywhere(**dict.fromkeys(names, "VALUE")).message
    assert message.count("VALUE") == len(names)


def test_errors_carry_at_least_one_diagnostic_and_show_the_first() -> None:
    first, second = (CATALOGUE["SyntaxError"].anywhere(problem=text) for text in ("one", "two"))
    for kind in (UserError, TransientFailure, EngineBug):
        error = kind(first, second)
        assert isinstance(error, ClewError)
        assert (error.code, error.diagnostic) == ("SyntaxError", first)
        assert str(error) == "SyntaxError: one; SyntaxError: two"
    with pytest.raises(ValueError, match="needs a diagnostic"):
        UserError()


def test_an_error_as_json_has_the_first_diagnostic_on_top_and_all_of_them_below() -> None:
    first, second = (CATALOGUE["SyntaxError"].anywhere(problem=text) for text in ("one", "two"))
    body = UserError(first).to_json()["error"]
    assert body == {
        "code": "SyntaxError",
        "message": "one",
        "file": None,
        "line": None,
        "column": None,
        "hint": first.hint,
    }
    both = UserError(first, second).to_json()["error"]
    assert isinstance(both, dict)
    assert both["diagnostics"] == [first.to_json(), second.to_json()]


def test_raise_if_any_raises_all_in_order_or_nothing() -> None:
    raise_if_any([])
    diagnostics = [CATALOGUE["SyntaxError"].anywhere(problem=text) for text in ("b", "a")]
    with pytest.raises(UserError) as caught:
        raise_if_any(diagnostics)
    assert [d.message for d in caught.value.diagnostics] == ["a", "b"]
