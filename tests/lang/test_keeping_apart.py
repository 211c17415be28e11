"""Which conversions can make two values one: known from the types alone."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.diagnostics import ClewError
from clew.lang.conversion import assignable, converter, keeps_apart
from clew.lang.typed import Value
from clew.lang.types import parse_type

VALUES: dict[str, st.SearchStrategy[Value]] = {
    "integer": st.integers(-(2**63), 2**63 - 1),
    "decimal(9,0)": st.decimals(-999, 999, places=0),
    "decimal(9,2)": st.decimals(-999, 999, places=2),
    "decimal(9,4)": st.decimals(-999, 999, places=4),
    "double": st.floats(-1e6, 1e6),
    "date": st.dates(),
    "string": st.text(max_size=3),
}
TARGETS = [*VALUES, "timestamp"]


@given(st.data(), st.sampled_from(list(VALUES)), st.sampled_from(TARGETS))
def test_values_that_are_kept_apart_never_become_one(data: st.DataObject, source: str, target: str) -> None:
    one, other = data.draw(VALUES[source]), data.draw(VALUES[source])
    types = parse_type(source), parse_type(target)
    if one == other or not assignable(*types) or not keeps_apart(*types):
        return
    convert = converter(*types)
    try:
        converted = convert(one), convert(other)
    except ClewError:
        return
    assert converted[0] != converted[1]


@pytest.mark.parametrize(
    ("source", "target", "one", "other"),
    [
        ("decimal(9,4)", "decimal(9,2)", Decimal("1.231"), Decimal("1.234")),
        ("decimal(9,2)", "integer", Decimal("1.2"), Decimal("1.3")),
        ("double", "decimal(9,2)", 1.231, 1.234),
        ("double", "integer", 1.2, 1.3),
        ("integer", "double", 2**53, 2**53 + 1),
        ("decimal(38,20)", "double", Decimal("0.1"), Decimal("0.10000000000000000001")),
    ],
)
def test_values_that_may_become_one_are_known_to(source: str, target: str, one: Value, other: Value) -> None:
    types = parse_type(source), parse_type(target)
    convert = converter(*types)
    assert convert(one) == convert(other)
    assert not keeps_apart(*types)
