"""The insurance sample on Spark, against what plain Python reads and computes from the same dirty files."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

import clew
from clew.api.run import Run
from clew.sample import write_sample
from tests.sample.insurer import MONTHS, Insurer


@dataclass(frozen=True)
class Closed:
    """The sample after its runs."""

    root: Path
    runs: dict[tuple[str, str], Run]
    expected: Insurer

    def csv(self, path: str) -> list[dict[str, str]]:
        with (self.root / "out" / path).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Closed]:
    del spark
    root = tmp_path_factory.mktemp("insurer") / "insurer"
    write_sample(root, "insurance")
    due = [("payments-close", month) for month in MONTHS]
    due += [(project, "2026-Q1") for project in ("claims-incurred", "loss-triangle", "loss-ratio")]
    with clew.open(root) as workspace:
        runs = {(project, period): workspace.run(project, period=period) for project, period in due}
        yield Closed(root, runs, Insurer(root / "data"))


@pytest.mark.parametrize("month", MONTHS)
def test_payments_are_those_that_another_reader_finds_in_the_dirty_files(closed: Closed, month: str) -> None:
    table = ds.dataset(closed.root / "out" / "closed" / month, format="parquet").to_table()
    found = {row["payment_id"]: row for row in table.to_pylist()}
    expected = {each.payment: each for each in closed.expected.closed[month]}
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        row = found[name]
        told = (row["claim_id"], row["contract_number"], row["line"], row["loss_date"], row["booked_on"])
        assert told == (each.claim, each.contract, each.line, each.loss, each.booked), name
        assert (row["paid"], row["ceded"]) == (each.paid, each.ceded), name
        assert (row["loss_quarter"], row["development"]) == (each.loss_quarter, each.development), name


@pytest.mark.parametrize("month", MONTHS)
def test_each_line_of_business_has_a_list_in_order(closed: Closed, month: str) -> None:
    lines = {each.line for each in closed.expected.closed[month]}
    assert {path.stem for path in (closed.root / "out" / "payments" / month).glob("*.csv")} == lines
    for line in lines:
        rows = closed.csv(f"payments/{month}/{line}.csv")
        expected = sorted(
            (each.booked.isoformat(), each.payment, each.paid)
            for each in closed.expected.closed[month]
            if each.line == line
        )
        assert [(row["booked_on"], row["payment_id"], Decimal(row["paid"])) for row in rows] == expected


@pytest.mark.parametrize("month", MONTHS)
def test_rows_that_cannot_be_read_are_kept_apart_with_their_lines(closed: Closed, month: str) -> None:
    rows = closed.runs["payments-close", month].quarantine()
    assert [row.line for row in rows] == closed.expected.bad.get(month, [])
    assert [row.line for row in rows if row.correction] == ([25] if month == "2026-01" else [])


def test_incurred_claims_and_what_reinsurers_pay(closed: Closed) -> None:
    rows = closed.csv("incurred_2026-Q1.csv")
    names = ("paid_total", "incurred", "kept", "recovered")
    assert {row["claim_id"]: tuple(Decimal(row[name]) for name in names) for row in rows} == closed.expected.incurred()
    assert [(row["line"], int(row["place"])) for row in rows] == sorted(
        (row["line"], int(row["place"])) for row in rows
    )
    for line in {row["line"] for row in rows}:
        amounts = [Decimal(row["incurred"]) for row in rows if row["line"] == line]
        assert amounts == sorted(amounts, reverse=True)


def test_triangles(closed: Closed) -> None:
    found = ds.dataset(closed.root / "out" / "triangles" / "2026-Q1", format="parquet", partitioning="hive").to_table()
    cells = {
        (row["line"], row["loss_quarter"], row["development"]): (row["paid_in_quarter"], row["paid_so_far"])
        for row in found.to_pylist()
    }
    assert cells == closed.expected.triangle()


def test_loss_ratios(closed: Closed) -> None:
    found = {
        row["line"]: tuple(Decimal(row[name]) for name in ("earned_total", "paid_total", "ratio"))
        for row in closed.csv("ratios_2026-Q1.csv")
    }
    assert found == closed.expected.ratios()


def test_a_total_leads_through_both_projects_to_the_line_of_a_file(closed: Closed) -> None:
    run = closed.runs["claims-incurred", "2026-Q1"]
    claims = Counter(each.claim for each in closed.expected.quarter)
    loaded = (each for each in reversed(closed.expected.closed["2026-01"]) if each.line_of_file)
    claim = next(each for each in loaded if claims[each.claim] == 1)
    [row] = run.trace(where=f'claim_id = "{claim.claim}" AND paid_total IS NOT NULL').rows
    text = run.explain(row.row_id, "paid_total").to_text()
    assert "recomputed: equal" in text
    assert f"zahlungen_2026-01.csv line {claim.line_of_file}" in text


def test_a_payment_that_was_replaced_is_followed_into_the_close(closed: Closed) -> None:
    run = closed.runs["claims-incurred", "2026-Q1"]
    found = run.why_not('payment_id = "Z910001"').to_text()
    assert "quarantined at load" in found
    assert "zahlungen_2026-01.csv line 24" in found
