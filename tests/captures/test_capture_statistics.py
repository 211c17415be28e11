"""Columns in numbers, and two captures side by side."""

import math
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.captures.differences import diff_captures, statistics_of_rows
from clew.captures.report import report_page, sparkline
from clew.captures.requests import OmittedColumn
from clew.captures.statistics import Bin, Statistics, statistics_of
from clew.definitions import CaptureMode
from clew.diagnostics import UserError
from clew.lang.types import DOUBLE, INTEGER, Type, parse_type
from clew.trace.sql import Sql
from tests.captures.captured_files import captured
from tests.tiers import examples

LEDGER = {"id": "integer", "account": "string", "amount": "decimal(10,2)"}
CENTS = parse_type("decimal(10,2)")


def values(numbers: list[object], type_: str = "BIGINT") -> Sql:
    return Sql(f"SELECT unnest(?::{type_}[]) AS x", (numbers,))


@settings(max_examples=examples(40))
@given(st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), max_size=60))
def test_the_numbers_of_a_column_are_those_that_python_counts(numbers: list[int | None]) -> None:
    [found] = statistics_of(values(numbers), [("x", INTEGER)], top=3).columns  # type: ignore[arg-type]
    present = sorted(number for number in numbers if number is not None)
    assert (found.rows, found.nulls) == (len(numbers), numbers.count(None))
    assert found.min == (present[0] if present else None)
    assert found.max == (present[-1] if present else None)
    assert found.mean == pytest.approx(sum(present) / len(present)) if present else found.mean is None
    most = sorted(Counter(present).items(), key=lambda item: (-item[1], item[0]))[:3]
    assert [(each.value, each.count) for each in found.top] == most
    assert sum(each.count for each in found.histogram) == len(present)
    if present:
        assert found.quantiles is not None
        assert found.quantiles["p50"] == present[math.ceil(len(present) / 2) - 1]
        assert found.distinct == len(set(present))


def histogram(rows: Sql, name: str, type_: Type, bins: int) -> tuple[Bin, ...]:
    return statistics_of(rows, [(name, type_)], bins=bins).columns[0].histogram


def test_a_histogram_has_bins_of_one_width_and_the_greatest_value_is_in_the_last() -> None:
    found = histogram(values(list(range(11))), "x", INTEGER, bins=5)
    assert [(each.low, each.high, each.count) for each in found] == [
        (0.0, 2.0, 2),
        (2.0, 4.0, 2),
        (4.0, 6.0, 2),
        (6.0, 8.0, 2),
        (8.0, 10.0, 3),
    ]
    assert histogram(values([7, 7]), "x", INTEGER, bins=5)[0].count == 2
    assert histogram(values([None]), "x", INTEGER, bins=5) == ()


def test_numbers_that_are_none_do_not_spoil_a_histogram() -> None:
    found = histogram(values([1.0, 2.0, math.inf, -math.inf, math.nan], "DOUBLE"), "x", DOUBLE, bins=2)
    assert [each.count for each in found] == [1, 1]


def test_decimals_and_texts_keep_what_they_are(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", LEDGER, [(1, "<b>", Decimal("0.10")), (2, None, Decimal("123456.70"))])
    found = statistics_of_rows(rows)
    assert found.column("amount").max == "123456.70"  # type: ignore[union-attr]
    assert found.column("account").nulls == 1  # type: ignore[union-attr]
    assert found.column("nowhere") is None
    assert Statistics.from_json(found.to_json()) == found


def test_the_report_stands_for_itself_and_escapes_what_users_wrote(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", LEDGER, [(n, "<script>alert(1)</script>", Decimal(n)) for n in range(20)])
    page = report_page(rows.manifest, statistics_of_rows(rows))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 5, "most frequent values of all three columns, and histograms of the numbers"
    assert not [word for word in ("http://", "https://", "src=", "@import", "url(") if word in page]


def test_the_report_tells_what_is_masked_left_out_and_deleted_and_cuts_long_texts(tmp_path: Path) -> None:
    rows = captured(tmp_path / "a", LEDGER, [(n, "x" * 500 if n else "", Decimal(n)) for n in range(5)], deleted=[1, 2])
    masked = tuple(replace(each, mask="hash") if each.name == "account" else each for each in rows.manifest.columns)
    manifest = replace(rows.manifest, columns=masked, left_out=(OmittedColumn("name", "PERSONAL"),))
    page = report_page(manifest, statistics_of_rows(rows))
    for told in ("full_raw, 5 rows", "2, not counted below", "masked: hash", "left out: PERSONAL", "&quot;&quot; (1)"):
        assert told in page
    assert "x" * 100 not in page


def test_a_sparkline_is_as_long_as_its_bins_and_empty_bins_are_empty() -> None:
    assert sparkline([0, 1, 50, 100]) == " ▁▄█"
    assert sparkline([]) == sparkline([0, 0]) == ""


BEFORE = [(1, "a", Decimal("1.00")), (2, "b", Decimal("2.00")), (3, "c", Decimal("3.00"))]
AFTER = [(3, "c", Decimal("3.00")), (2, "b", Decimal("2.50")), (4, None, Decimal("4.00"))]


def test_rows_of_two_runs_are_compared_by_their_natural_key(tmp_path: Path) -> None:
    before = captured(tmp_path / "b", LEDGER, BEFORE, key=("id",))
    after = captured(tmp_path / "a", LEDGER, AFTER, key=("id",), run_id="run-2", mode=CaptureMode.FULL_VIEW)
    found = diff_captures(before, after)
    assert (found.key, found.added, found.removed, found.changed, found.same) == (("id",), 1, 1, 1, 1)
    [changed] = found.examples_changed
    assert changed.key == {"id": 2}
    assert {name: (each.before, each.after) for name, each in changed.columns.items()} == {"amount": ("2.00", "2.50")}
    assert [each.key["id"] for each in found.examples_added] == [4]
    assert [each.key["id"] for each in found.examples_removed] == [1]
    pairs = {pair.name: pair for pair in found.columns}
    assert pairs["amount"].changed == 1
    assert (pairs["account"].before.nulls, pairs["account"].after.nulls) == (0, 1)  # type: ignore[union-attr]


def test_rows_of_one_run_are_found_by_their_id_and_called_by_their_natural_key(tmp_path: Path) -> None:
    rows = [(1, "x", Decimal(1)), (None, "total", Decimal(1))]
    later = [(1, "x", Decimal(2)), (None, "total", Decimal(2)), (3, "y", Decimal(3))]
    before = captured(tmp_path / "b", LEDGER, rows, key=("id",))
    found = diff_captures(before, captured(tmp_path / "a", LEDGER, later, key=("id",)))
    line, total = found.examples_changed
    assert (list(line.key), line.called_by) == (["_row_id"], {"id": 1})
    assert (total.natural_key, total.called_by) == ({"id": None}, total.key)
    assert [each.called_by for each in found.examples_added] == [{"id": 3}]


def test_a_capture_does_not_differ_from_itself(tmp_path: Path) -> None:
    rows = captured(tmp_path / "b", LEDGER, BEFORE)
    found = diff_captures(rows, rows)
    assert (found.is_same, found.same, found.key) == (True, 3, ("_row_id",))


def test_rows_that_share_a_key_are_matched_in_their_order(tmp_path: Path) -> None:
    totals = [(None, "t", Decimal(1)), (None, "t", Decimal(2)), (1, "x", Decimal(3))]
    before = captured(tmp_path / "b", LEDGER, totals, key=("id",))
    after = captured(tmp_path / "a", LEDGER, [*totals, (None, "t", Decimal(9))], key=("id",), run_id="run-2")
    found = diff_captures(before, after)
    assert (found.added, found.removed, found.changed, found.same) == (1, 0, 0, 3)


def test_columns_of_one_side_only_are_told(tmp_path: Path) -> None:
    before = captured(tmp_path / "b", {"id": "integer"}, [(1,)], key=("id",))
    after = captured(tmp_path / "a", {"id": "integer", "more": "string"}, [(1, "x")], key=("id",), run_id="run-2")
    found = diff_captures(before, after)
    assert (found.is_same, [(pair.name, pair.before is None) for pair in found.columns]) == (
        True,
        [("id", False), ("more", True)],
    )


def test_columns_of_different_types_and_masks_are_compared_as_texts(tmp_path: Path) -> None:
    plain = {"id": "integer", "amount": "decimal(10,2)", "day": "date", "size": "integer", "code": "integer"}
    other = {"id": "integer", "amount": "string", "day": "boolean", "size": "decimal(12,3)", "code": "string"}
    before = captured(tmp_path / "b", plain, [(1, Decimal("1.50"), date(2026, 1, 2), 7, 5)], key=("id",))
    masked = [(1, "9f3ab", True, Decimal("7.000"), "5"), (2, None, None, None, None)]
    after = captured(tmp_path / "a", other, masked, key=("id",), run_id="run-2")
    found = diff_captures(before, after)
    assert (found.added, found.removed, found.changed) == (1, 0, 1)
    [changed] = found.examples_changed
    assert {name: (each.before, each.after) for name, each in changed.columns.items()} == {
        "amount": ("1.50", "9f3ab"),
        "day": ("2026-01-02", True),
    }
    assert diff_captures(before, after, key=["code"]).same == 0
    assert diff_captures(before, after, key=["code"]).changed == 1


def test_a_key_that_only_one_side_has_masked_tells_no_rows_apart(tmp_path: Path) -> None:
    before = captured(tmp_path / "b", LEDGER, BEFORE, key=("account",))
    after = captured(tmp_path / "a", LEDGER, AFTER, key=("account",), run_id="run-2")
    columns = tuple(replace(each, mask="hash") if each.name == "account" else each for each in after.manifest.columns)
    masked = replace(after, manifest=replace(after.manifest, columns=columns))
    for key in ([], ["account"]):
        with pytest.raises(UserError) as error:
            diff_captures(before, masked, key=key)
        assert error.value.code == "NoCommonKey"
        assert '"account" is masked' in error.value.diagnostic.message
    assert diff_captures(before, masked, key=["id"]).same == 1


def test_without_a_key_two_runs_cannot_be_compared_until_one_is_named(tmp_path: Path) -> None:
    before = captured(tmp_path / "b", LEDGER, BEFORE)
    after = captured(tmp_path / "a", LEDGER, AFTER, run_id="run-2")
    with pytest.raises(UserError) as error:
        diff_captures(before, after)
    assert error.value.code == "NoCommonKey"
    assert diff_captures(before, after, key=["id"]).changed == 1
    with pytest.raises(UserError) as error:
        diff_captures(before, after, key=["acount"])
    assert "account" in (error.value.diagnostic.hint or "")


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 3), max_size=20),
    st.dictionaries(st.integers(0, 30), st.integers(0, 3), max_size=20),
)
def test_counts_of_a_diff_are_those_of_sets(
    tmp_path_factory: pytest.TempPathFactory, left: dict[int, int], right: dict[int, int]
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    columns = {"id": "integer", "value": "integer"}
    before = captured(folder / "b", columns, list(left.items()), key=("id",))
    after = captured(folder / "a", columns, list(right.items()), key=("id",), run_id="run-2")
    found = diff_captures(before, after)
    both = left.keys() & right.keys()
    assert (found.added, found.removed) == (len(right.keys() - both), len(left.keys() - both))
    assert found.changed == sum(left[each] != right[each] for each in both)
