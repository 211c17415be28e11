"""What `exact` means for expected rows: every column, whether an expected row names it or not."""

from collections.abc import Mapping, Sequence

import pytest

from clew.definitions.scenario import ExpectedOutput, Match
from clew.definitions.yaml_scalars import Scalar
from clew.scenarios.matching import compare

WRITTEN: Sequence[Mapping[str, Scalar]] = [{"id": 1, "note": "a"}, {"id": 2, "note": "surprise", "_labels": "x"}]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_value_in_a_column_that_an_exact_row_leaves_out_is_a_mismatch(ordered: bool) -> None:
    rows: tuple[Mapping[str, Scalar], ...] = ({"id": 1, "note": "a"}, {"id": 2})
    found = compare("out", ExpectedOutput(rows=rows, match=Match.EXACT, ordered=ordered), WRITTEN, ["id", "note"])
    assert found
    assert compare("out", ExpectedOutput(rows=rows, match=Match.SUBSET, ordered=ordered), WRITTEN, ["id", "note"]) == []


def test_a_column_that_an_exact_row_leaves_out_may_be_null_and_system_columns_do_not_count() -> None:
    rows: tuple[Mapping[str, Scalar], ...] = ({"id": 1, "note": "a"}, {"id": 2})
    written = [WRITTEN[0], {**WRITTEN[1], "note": None}]
    assert compare("out", ExpectedOutput(rows=rows), written, ["id", "note"]) == []
