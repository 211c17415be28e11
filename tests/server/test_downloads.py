"""Tables as files: what a spreadsheet makes of them, and who may have them."""

import csv
import io
from datetime import date, datetime, time
from decimal import Decimal

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from httpx2 import Response

from clew.api.table_downloads import FileFormat, table_file
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", '=HYPERLINK("http://x")']
NOON = datetime.fromisoformat("2026-01-31T12:30:00")
TOTALS = 'row_kind = "total"'


def as_rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_no_text_is_a_formula_in_a_spreadsheet() -> None:
    table = pa.table({"=name": FORMULAS, "amount": [-1] * len(FORMULAS)})
    [header, *lines] = as_rows(table_file(table, "x", FileFormat.CSV, is_cut=False).content)
    assert header == ["'=name", "amount"]
    assert [line[0] for line in lines] == [f"'{text}" for text in FORMULAS]
    assert {line[1] for line in lines} == {"-1"}, "a number is no formula"

    sheet = openpyxl.load_workbook(io.BytesIO(table_file(table, "x", FileFormat.XLSX, is_cut=False).content)).active
    assert sheet is not None
    for row in sheet.iter_rows():
        for cell in row:
            assert cell.data_type in {"s", "n"}, cell.value
    assert sheet["A2"].value == "=1+1"
    assert sheet["B2"].value == -1


def test_values_keep_their_types_and_all_their_digits() -> None:
    long = Decimal("12345678901234567.89")
    table = pa.table(
        {
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
            "long": pa.array([long, long], pa.decimal128(20, 2)),
            "day": [date(2026, 1, 31), date(1899, 1, 1)],
            "at": [NOON, None],
            "yes": [True, None],
            "odd": ["a\x00b", "ü"],
            "f": [0.1, float("nan")],
        }
    )
    sheet = openpyxl.load_workbook(io.BytesIO(table_file(table, "x", FileFormat.XLSX, is_cut=False).content)).active
    assert sheet is not None
    first, second = ([cell.value for cell in row] for row in sheet.iter_rows(min_row=2))
    assert first == [1.5, str(long), datetime.combine(NOON, time()), NOON, True, "a\ufffdb", 0.1]
    assert second == [None, str(long), "1899-01-01", None, None, "ü", "nan"]
    lines = as_rows(table_file(table, "x", FileFormat.CSV, is_cut=False).content)
    assert lines[1][:5] == ["1.50", str(long), "2026-01-31", "2026-01-31T12:30:00", "TRUE"]
    assert lines[2][:2] == ["", str(long)]
    kept = pq.read_table(io.BytesIO(table_file(table, "x", FileFormat.PARQUET, is_cut=False).content))
    assert kept.drop(["f"]).equals(table.drop(["f"]))


def download(served: Served, role: str = "auditor", **query: str | int) -> Response:
    return served.client(role).get(f"/api/v1/runs/{served.run_id}/download/rows", params=query)


@pytest.mark.parametrize("wanted", ["csv", "xlsx", "parquet"])
def test_a_download_has_the_rows_that_the_filter_finds(shared: Served, wanted: str) -> None:
    found = shared.client("auditor").get(
        f"/api/v1/runs/{shared.run_id}/trace/rows", params={"where": TOTALS, "limit": 100}
    )
    expected = {row["row_id"]: row["total_usd"] for row in found.json()["rows"]}
    assert len(expected) == 4
    answer = download(shared, format=wanted, where=TOTALS, columns="total_usd")
    assert answer.status_code == 200
    assert answer.headers["x-clew-truncated"] == "false"
    assert f'filename="gl-close-2026-01-step-60.{wanted}"' in answer.headers["content-disposition"]
    if wanted == "csv":
        [header, *lines] = as_rows(answer.content)
    elif wanted == "xlsx":
        sheet = openpyxl.load_workbook(io.BytesIO(answer.content)).active
        assert sheet is not None
        [header, *lines] = [[str(value) for value in row] for row in sheet.iter_rows(values_only=True)]
    else:
        table = pq.read_table(io.BytesIO(answer.content))
        header, lines = table.column_names, [[str(value) for value in row.values()] for row in table.to_pylist()]
    assert header == ["row_id", "total_usd"]
    assert {line[0]: Decimal(line[1]) for line in lines} == {key: Decimal(value) for key, value in expected.items()}


def test_a_download_of_an_output_is_what_it_has_written(shared: Served) -> None:
    answer = download(shared, output=60)
    [header, *lines] = as_rows(answer.content)
    run = shared.client("auditor").get(f"/api/v1/runs/{shared.run_id}").json()
    steps = {step["seq"]: step for step in run["steps"]}
    assert header[:4] == ["row_id", "_period", "row_kind", "journal_id"]
    assert "entered_by" not in header
    deleted = steps[30]["rows_deleted"]
    everything = as_rows(download(shared, at=60).content)[1:]
    assert 0 < len(lines) == len(everything) - deleted


def test_a_download_that_leaves_rows_out_says_so(shared: Served) -> None:
    answer = download(shared, limit=10)
    assert (answer.headers["x-clew-rows"], answer.headers["x-clew-truncated"]) == ("10", "true")
    assert "-first-10.csv" in answer.headers["content-disposition"]
    assert len(as_rows(answer.content)) == 11
    assert as_rows(download(shared, step=20, limit=5).content)[0][0] == "row_id"
    wrong = download(shared, step=20, output=60)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "InvalidRequest")


def test_downloads_are_for_those_who_may_read_rows_and_on_record(served: Served) -> None:
    assert download(served, role="viewer").status_code == 403
    assert download(served, where=TOTALS, columns="total_usd").status_code == 200
    [record] = served.client("auditor").get("/api/v1/audit", params={"subject_id": served.run_id}).json()["records"]
    assert record["detail"].startswith("download as csv: where ")
    assert "returned 4 rows" in record["detail"]


def test_the_page_of_rows_offers_what_it_shows_as_a_file(shared: Served) -> None:
    client = shared.client("auditor")
    page = as_page(client, f"/runs/{shared.run_id}/rows", {"where": TOTALS, "at": 45}).text
    address = f"/api/v1/runs/{shared.run_id}/download/rows?format=csv&amp;at=45&amp;where=row_kind+%3D+%22total%22"
    assert f'href="{address}"' in page
    assert len(as_rows(client.get(address.replace("&amp;", "&")).content)) == 5


def test_a_comparison_can_be_downloaded(shared: Served) -> None:
    client = shared.client("auditor")
    answer = client.get(f"/api/v1/runs/{shared.run_id}/download/compare", params={"other": shared.run_id})
    assert answer.status_code == 200
    assert as_rows(answer.content) == [["change", "key", "row_a", "row_b", "column", "value_a", "value_b"]]
