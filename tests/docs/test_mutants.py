"""`make mutants`: where mistakes are made, and which tests have to notice them."""

from tools.mutants.__main__ import CODE, PACKAGES
from tools.mutants.choosing import without_effect
from tools.mutants.trying import ROOT

TEXT = """
@cache
def total(amount: int | None, *, rate: float = 1.0) -> float | None:
    assert rate > 0
    return None if amount is None else amount * rate
"""


def test_no_mistakes_are_made_in_annotations_decorators_and_assertions() -> None:
    places = {(begin[0], TEXT.splitlines()[begin[0] - 1][begin[1] : end[1]]) for begin, end in without_effect(TEXT)}
    assert places == {(2, "cache"), (3, "int | None"), (3, "float"), (3, "float | None"), (4, "assert rate > 0")}


def test_every_package_has_code_to_change_and_tests_to_notice() -> None:
    for patterns, tests in PACKAGES.values():
        assert all(list((ROOT / CODE).glob(each)) for each in patterns)
        assert all((ROOT / each).exists() for each in tests)
