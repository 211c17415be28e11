# ruff: noqa: DTZ001 - timestamps here have no zone
"""Dirty files on Spark, held against plain Python: formats, marks, words, fixed widths, workbooks, bad rows."""

import bz2
import csv
import io
import lzma
import re
import zipfile
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from openpyxl.chart import BarChart, Reference
from pyspark.sql import SparkSession

from clew.engine.loading import Pinned, pin
from clew.lang.types import parse_type
from clew.plan.datasets import DatasetColumn, DatasetUse
from clew.plan.file_rules import FileRules, TextRules
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE
from clew.storage.quarantine import CORRECTION, PROBLEMS, RECORD, TEXTS
from clew.storage.text_values import NotAValue, text_or_none, value_of_text
from tests.engine.loading_requests import Bench, path_source, use

CLAIMS = use("id integer!; day date; moment timestamp; paid decimal(12,2); rate double; open boolean; name string")
EUROPEAN = FileRules(
    {
        "day": TextRules(formats=("dd.MM.yyyy", "d MMM yy"), nulls=("n/a", "-"), trim=True),
        "moment": TextRules(formats=("yyyyMMdd'T'HHmmss", "d/M/yyyy H:mm"), nulls=("n/a", "-"), trim=True),
        "open": TextRules(true_values=("ja", "y"), false_values=("nein", "n"), nulls=("n/a", "-"), trim=True),
        "name": TextRules(default="nobody"),
    },
    TextRules(decimal_mark=",", thousands_mark=".", nulls=("n/a", "-"), trim=True),
)
TYPES = {column.name: column.type for column in CLAIMS.columns}


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def quarantined(bench: Bench, pinned: Pinned) -> list[dict[str, object]]:
    assert pinned.quarantine is not None
    rows = list[dict[str, object]]()
    for file in pinned.quarantine.files:
        rows += pq.read_table(bench.storage / file.path).to_pylist()
    return sorted(rows, key=lambda row: (str(row[SOURCE_FILE]), str(row[SOURCE_LINE]).zfill(9)))


_DIGITS = st.text("0123456789", min_size=1, max_size=4)
_NUMBERS = st.one_of(
    st.builds(lambda a, b: f"{a},{b}", _DIGITS, _DIGITS),
    st.builds(lambda a, b, c: f"{a}.{b},{c}", _DIGITS, st.text("0123456789", min_size=3, max_size=3), _DIGITS),
    st.sampled_from(
        ["1.234,50", "-12,5", "+7", ",5", "1.23", "12.345.678,00", "1,000", "0,100", "1e3", "5,", "--1", " 9 "]
    ),
)
_DAYS = st.one_of(
    st.dates(date(1990, 1, 1), date(2060, 1, 1)).map(lambda day: day.strftime("%d.%m.%Y")),
    st.sampled_from(
        ["3 Feb 24", "31 feb 24", "1.1.2024", "2024-01-01", "31.02.2024", "00.01.2024", "01.01.0000", " 01.02.2024 "]
    ),
    st.text("0123456789.", max_size=11),
)
_MOMENTS = st.one_of(
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)).map(lambda at: at.strftime("%Y%m%dT%H%M%S")),
    st.sampled_from(["1/2/2024 9:05", "31/12/1999 23:59", "1/2/2024 24:00", "20240101T246060", "2024-01-01T10:00:00"]),
)
_WORDS = st.sampled_from(["ja", "JA", "y", "Nein", "n", "true", "", "x", "-", " n/a"])
_NAMES = st.text(st.sampled_from('ab ;"é#'), max_size=5)
_CELLS = st.tuples(
    st.one_of(st.integers(-(10**6), 10**19).map(str), st.sampled_from(["", "x", "1.000", "1.00", "12,0"])),
    st.one_of(_DAYS, st.just("n/a")),
    _MOMENTS,
    st.one_of(_NUMBERS, st.just("-")),
    st.one_of(_NUMBERS, st.sampled_from(["NaN", "1,5e3", "1e999"])),
    _WORDS,
    _NAMES,
)


def expected(texts: tuple[str | None, ...], rules: FileRules) -> tuple[tuple[object, ...], set[str | None]]:
    """The values of a row by plain Python, and the columns that are wrong."""
    values, wrong = list[object](), set[str | None]()
    for (name, type_), text in zip(TYPES.items(), texts, strict=True):
        try:
            values.append(value_of_text(text, type_, rules.of(name)))
        except NotAValue:
            values.append(None)
            wrong.add(name)
        if name == "id" and text_or_none(text, rules.of(name)) is None:
            wrong.add(name)
    return tuple(values), wrong


def told(values: tuple[object, ...]) -> str:
    """NaN is not equal to itself; texts of values are."""
    return repr(tuple(value.normalize() if isinstance(value, Decimal) else value for value in values))


def test_generated_rows_are_read_as_python_reads_them(bench: Bench) -> None:
    rows = list[tuple[str, ...]]()

    @settings(max_examples=300, phases=[Phase.generate], deadline=None)
    @given(_CELLS)
    def collect(cells: tuple[str, ...]) -> None:
        rows.append(cells)

    collect()
    text = io.StringIO("")
    text.write("delivered by somebody\nsomething, else\n# a comment\n\n")
    lines, number = list[int](), 5
    writer = csv.writer(text, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(list(TYPES))
    for index, cells in enumerate(rows):
        if index % 7 == 0:
            text.write("# no row\r\n\r\n")
            number += 2
        number += 1
        lines.append(number)
        writer.writerow(cells)
        if index % 11 == 0:
            text.write("broken;line\r\n")
            number += 1
    bench.write("a.csv", text.getvalue().encode("cp1252"))
    options = {"delimiter": ";", "skip_lines": "2", "comment": "#", "encoding": "cp1252"}
    rules = replace(EUROPEAN, bad_rows="quarantine")
    pinned = bench.pin(CLAIMS, path_source("a.csv", options=options, rules=rules))

    by_line = {line: expected(cells, rules) for line, cells in zip(lines, rows, strict=True)}
    good = {line: told(values) for line, (values, wrong) in by_line.items() if not wrong}
    bad = {line: wrong for line, (_, wrong) in by_line.items() if wrong}
    loaded = {row[0]: told(row[1:]) for row in bench.rows(pinned, SOURCE_LINE, *TYPES)}
    assert len(good) > 20
    assert len(bad) > 20
    assert loaded == good
    kept = quarantined(bench, pinned)
    found = {row[SOURCE_LINE]: {each["column"] for each in row[PROBLEMS]} for row in kept if row[RECORD] is None}  # type: ignore[attr-defined]
    assert found == bad
    broken = [row for row in kept if row[RECORD] is not None]
    assert len(broken) == len(range(0, len(rows), 11))
    assert {row[RECORD] for row in broken} == {"broken;line"}
    first = next(row for row in kept if row[RECORD] is None)
    cells = rows[lines.index(first[SOURCE_LINE])]  # type: ignore[arg-type]
    assert first[TEXTS] == [text_or_none(cell, rules.of(name)) for cell, name in zip(cells, TYPES, strict=True)]
    assert pinned.rows_read == len(rows) + len(broken) == pinned.rows_loaded + len(kept)

    bench.write("b.csv", text.getvalue().replace("broken;line\r\n", "").encode("cp1252"))
    emptied = bench.pin(
        replace(CLAIMS, columns=tuple(replace(column, nullable=True) for column in CLAIMS.columns)),
        path_source("b.csv", options=options, rules=replace(EUROPEAN, bad_rows="null")),
    )
    assert sorted(told(row) for row in bench.rows(emptied, *TYPES)) == sorted(told(v) for v, _ in by_line.values())
    counted = sum(len({each for each in wrong if each != "id"}) for _, wrong in by_line.values())
    counted += sum(1 for cells in rows if "id" in expected(cells, rules)[1] and text_or_none(cells[0], rules.of("id")))
    assert (emptied.part.details or {})["values_emptied"] == counted


def test_the_same_rules_hold_for_json_lines_fixed_widths_and_workbooks(bench: Bench) -> None:
    of = use("id integer!; day date; paid decimal(12,2); open boolean; name string")
    rules = FileRules(
        {
            "day": TextRules(formats=("dd.MM.yyyy",), nulls=("n/a",), trim=True),
            "open": TextRules(true_values=("ja",), false_values=("nein",), trim=True),
            "id": TextRules(trim=True),
        },
        TextRules(decimal_mark=",", thousands_mark=".", nulls=("n/a",), trim=True),
        {"name": "Name of it"},
        bad_rows="quarantine",
    )
    rows = [
        ("1", "03.04.2024", "1.234,50", "ja", "a"),
        ("2", "n/a", "n/a", "nein", "b"),
        ("3", "2024-04-03", "1", "ja", "c"),
    ]
    wanted = [
        (1, date(2024, 4, 3), Decimal("1234.50"), True, "a"),
        (2, None, None, False, "b"),
    ]
    names = ["id", "day", "paid", "open", "Name of it"]
    bench.write(
        "a.jsonl",
        "".join(
            f'{{"id": {r[0]}, "day": "{r[1]}", "paid": "{r[2]}", "open": "{r[3]}", "Name of it": "{r[4]}"}}\n'
            for r in rows
        ),
    )
    pinned = bench.pin(of, path_source("a.jsonl", "jsonl", rules=rules))
    assert bench.placed(pinned, *(c.name for c in of.columns)) == [
        ("a.jsonl", n, *row) for n, row in enumerate(wanted, 1)
    ]
    assert [row[SOURCE_LINE] for row in quarantined(bench, pinned)] == [3]

    widths = {"id": (1, 3), "day": (4, 10), "paid": (14, 9), "open": (23, 5), "name": (28, 4)}
    fixed = "".join(f"{r[0]:>3}{r[1]:<10}{r[2]:>9}{r[3]:<5}{r[4]}\n" for r in rows)
    bench.write("a.txt", "heading\n* comment\n" + fixed)
    source = path_source(
        "a.txt", "fixed_width", {"skip_lines": "1", "comment": "*"}, rules=replace(rules, positions=widths)
    )
    pinned = bench.pin(of, source)
    assert bench.placed(pinned, *(c.name for c in of.columns)) == [
        ("a.txt", n, *row) for n, row in enumerate(wanted, 3)
    ]
    assert [row[SOURCE_LINE] for row in quarantined(bench, pinned)] == [5]

    book = openpyxl.Workbook()
    sheet = book.create_sheet("Claims")
    for cells in [
        ("report",),
        (),
        tuple(names),
        (1, datetime(2024, 4, 3), 1234.5, True, "a"),
        (),
        ("2", "n/a", "n/a", "nein", "b"),
        rows[2],
    ]:
        sheet.append(cells)
    book.save(bench.data / "a.xlsx")
    pinned = bench.pin(of, path_source("a.xlsx", "xlsx", {"sheet": "Claims", "skip_lines": "1"}, rules=rules))
    cited = "a.xlsx, sheet Claims"
    assert bench.placed(pinned, *(c.name for c in of.columns)) == [
        (cited, n, *row) for n, row in zip((4, 6), wanted, strict=True)
    ]
    assert (pinned.part.details or {})["places"] == "row"
    [kept] = quarantined(bench, pinned)
    assert (kept[SOURCE_LINE], kept[PROBLEMS]) == (
        7,
        [{"column": "day", "value": "2024-04-03", "reason": "it is not a date"}],
    )
    assert 'no sheet "Other"' in bench.problem(
        of, path_source("a.xlsx", "xlsx", {"sheet": "Other"}), code="SourceUnavailable"
    )
    bench.write("b.xlsx", "no workbook")
    assert "not an XLSX file" in bench.problem(of, path_source("b.xlsx", "xlsx"), code="SourceUnavailable")


def test_compressed_files_keep_their_lines(bench: Bench) -> None:
    text = b'skipped\nid,name\n1,x\n\n2,"y\nz"\n3,w\n'
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("inside.csv", text)
    files = {
        "a.csv.bz2": bz2.compress(text),
        "a.csv.xz": lzma.compress(text),
        "a.csv.zip": archive.getvalue(),
        "a.data": lzma.compress(text),
    }
    of = use("id integer!; name string")
    for name, content in files.items():
        bench.write(name, content)
        options = {"skip_lines": "1", "multiline": "true"} | ({"compression": "xz"} if name == "a.data" else {})
        pinned = bench.pin(of, path_source(name, options=options))
        assert bench.placed(pinned, "id") == [(name, 3, 1), (name, 5, 2), (name, 7, 3)]
        assert pinned.part.sources[0].size == len(content)
    bench.write("b.csv.xz", b"nonsense")
    assert "b.csv.xz" in bench.problem(of, path_source("b.csv.xz"), code="SourceUnavailable")
    for name, content in _damaged(text * 1000).items():
        bench.write(name, content)
        assert name in bench.problem(of, path_source(name), code="SourceUnavailable")


def test_skipped_lines_of_a_windows_file_with_records_over_several_lines(bench: Bench) -> None:
    """The skipped lines end as the others do: else a carriage return would be left at the end of every record."""
    text = 'Payments;;\r\nmade by – us\r\n\r\n id ;name\r\n# page 1\r\n1;"y\r\nz"\r\n# page 2\r\n\r\n2;-\r\n3;"–"\r\n'
    bench.write("a.csv", text.encode("cp1252"))
    options = {"delimiter": ";", "skip_lines": "3", "multiline": "true", "comment": "#", "encoding": "cp1252"}
    rules = FileRules(others=TextRules(trim=True, nulls=("-",)))
    pinned = bench.pin(use("id integer!; name string"), path_source("a.csv", options=options, rules=rules))
    placed = {key: (line, name) for _, line, key, name in bench.placed(pinned, "id", "name")}
    assert placed == {1: (6, "y\nz"), 2: (10, None), 3: (11, "–")}


def _damaged(text: bytes) -> dict[str, bytes]:
    """Files that break off, whose bytes were changed, or that ask for a password or an unknown program."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("inside.csv", text)
    whole = archive.getvalue()
    listing = whole.index(b"PK\x01\x02")

    def changed(*bytes_: tuple[int, int]) -> bytes:
        found = bytearray(whole)
        for position, value in bytes_:
            found[position] = value
        return bytes(found)

    return {
        "short.csv.xz": lzma.compress(text)[:-20],
        "damaged.csv.zip": changed(*((position, 255) for position in range(45, 90))),
        "secret.csv.zip": changed((6, 1), (listing + 8, 1)),
        "unknown.csv.zip": changed((8, 99), (listing + 10, 99)),
    }


def _workbook(bench: Bench, name: str, rows: list[tuple[object, ...]], saved: str | None = None) -> None:
    """A workbook as a program without formulas writes it; with `saved`, formulas have what a spreadsheet keeps."""
    book = openpyxl.Workbook()
    bars = BarChart()
    bars.add_data(Reference(book["Sheet"], min_col=1, min_row=1, max_row=2))
    book.create_chartsheet("Chart", 0).add_chart(bars)
    for cells in rows:
        book["Sheet"].append(list(cells))
    content = io.BytesIO()
    book.save(content)
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(bench.data / name, "w") as new:
        for entry in old.namelist():
            text = old.read(entry)
            if saved is not None and "worksheets/sheet" in entry:
                text = re.sub(rb'<c r="(\w+)"( t="\w+")?><f>([^<]*)</f><v ?/?>(</v>)?</c>', saved.encode(), text)
            new.writestr(entry, text)


def test_moments_in_workbooks_are_loaded_whole_or_refused(bench: Bench) -> None:
    of = use("id integer!; day date; moment timestamp")
    rules = FileRules(
        {
            "day": TextRules(formats=("dd.MM.yy", "d.M.yyyy")),
            "moment": TextRules(formats=("dd.MM.yyyy HH:mm",)),
        },
        bad_rows="quarantine",
    )
    rows: list[tuple[object, ...]] = [
        ("id", "day", "moment"),
        (1, datetime(2024, 4, 3), datetime(2024, 4, 3, 10, 20)),
        (2, datetime(1999, 4, 3), datetime(1999, 4, 3)),
        (3, datetime(2024, 4, 3), datetime(2024, 4, 3, 10, 20, 33)),
        (4, datetime(2024, 4, 3, 12), None),
    ]
    _workbook(bench, "a.xlsx", rows)
    pinned = bench.pin(of, path_source("a.xlsx", "xlsx", rules=rules))
    assert bench.rows(pinned, "id", "day", "moment") == [
        (1, date(2024, 4, 3), datetime(2024, 4, 3, 10, 20)),
        (2, date(1999, 4, 3), datetime(1999, 4, 3)),
    ]
    assert [[each["value"] for each in row[PROBLEMS]] for row in quarantined(bench, pinned)] == [  # type: ignore[attr-defined]
        ["2024-04-03 10:20:33"],
        ["2024-04-03 12:00:00"],
    ]


def test_a_formula_without_a_saved_value_is_no_empty_cell(bench: Bench) -> None:
    of = use("id integer!; paid decimal(10,2); name string")
    rows: list[tuple[object, ...]] = [("id", "other", "paid", "name"), (1, "=A2", 5, "a"), (2, None, "=C2+1", "b")]
    _workbook(bench, "a.xlsx", rows)
    assert bench.problem(of, path_source("a.xlsx", "xlsx"), code="SourceUnavailable") == (
        'the formula in the column "paid" has no saved value, in a.xlsx, sheet Sheet, row 3'
    )
    _workbook(bench, "b.xlsx", rows, saved=r'<c r="\1"><f>\3</f><v>6</v></c>')
    assert bench.rows(bench.pin(of, path_source("b.xlsx", "xlsx")), "id", "paid") == [
        (1, Decimal("5.00")),
        (2, Decimal("6.00")),
    ]
    _workbook(bench, "c.xlsx", rows, saved=r'<c r="\1" t="str"><f>\3</f><v></v></c>')
    assert bench.rows(bench.pin(of, path_source("c.xlsx", "xlsx")), "id", "paid") == [(1, Decimal("5.00")), (2, None)]
    whole = (bench.data / "b.xlsx").read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(bench.data / "d.xlsx", "w") as new:
        for entry in old.namelist():
            text = old.read(entry)
            new.writestr(entry, text.replace(b"</sheetData>", b"</sheet") if "worksheets/sheet" in entry else text)
    assert "d.xlsx, sheet Sheet, is damaged" in bench.problem(
        of, path_source("d.xlsx", "xlsx"), code="SourceUnavailable"
    )


def test_nested_json_keeps_its_digits(bench: Bench) -> None:
    bench.write(
        "a.jsonl", '{"id": 1.50, "name": {"x": 1.10, "y": [1e5, "2.50", {"z": -0.0}]}}\n{"id": 2, "name": [100.00]}\n'
    )
    pinned = bench.pin(use("id decimal(5,2); name string"), path_source("a.jsonl", "jsonl"))
    assert bench.placed(pinned, "id", "name") == [
        ("a.jsonl", 1, Decimal("1.50"), '{"x":1.10,"y":[1e5,"2.50",{"z":-0.0}]}'),
        ("a.jsonl", 2, Decimal("2.00"), "[100.00]"),
    ]


PEOPLE = DatasetUse(
    "people",
    "people",
    "people",
    "none",
    (
        DatasetColumn("id", parse_type("integer"), nullable=False),
        DatasetColumn("born", parse_type("date"), privacy="personal"),
        DatasetColumn("paid", parse_type("decimal(10,2)")),
    ),
)
APART = FileRules(bad_rows="quarantine")


def test_corrected_rows_are_loaded_and_cite_both_places(bench: Bench) -> None:
    bench.write("a.csv", "id,born,paid\n1,2000-01-01,5\n2,soon,6\nx,2001-01-01,7\n")
    source = path_source("a.csv", rules=APART, corrections="fixed.csv")
    assert [row[SOURCE_LINE] for row in quarantined(bench, bench.pin(PEOPLE, source))] == [3, 4]
    bench.write(
        "fixed.csv",
        "_source_file,_source_line,_problem,id,born,paid\na.csv,3,,2,2002-02-02,6\na.csv,4,,y,2001-01-01,7\n",
    )
    pinned = bench.pin(PEOPLE, source)
    assert bench.placed(pinned, "id", "born") == [
        ("a.csv", 2, 1, date(2000, 1, 1)),
        ("fixed.csv (corrects a.csv, line 3)", 2, 2, date(2002, 2, 2)),
    ]
    kept = quarantined(bench, pinned)
    assert [(row[SOURCE_FILE], row[SOURCE_LINE], row[CORRECTION]) for row in kept] == [
        ("a.csv", 3, "fixed.csv, line 2"),
        ("a.csv", 4, "fixed.csv, line 3"),
        ("fixed.csv (corrects a.csv, line 4)", 3, None),
    ]
    assert [source.name for source in pinned.part.sources] == ["a.csv", "fixed.csv"]
    bench.write("fixed.csv", "_source_file,_source_line,id,born,paid\na.csv,2,1,2002-02-02,6\n")
    assert bench.problem(PEOPLE, source) == "fixed.csv, line 2, corrects a.csv, line 2, which is not in quarantine"
    bench.write("fixed.csv", "_source_file,_source_line,id,born,paid\na.csv,3,1,,6\na.csv,3,1,,6\n")
    assert "is corrected twice" in bench.problem(PEOPLE, source)


def test_corrected_rows_belong_to_the_period_of_their_own_file(bench: Bench) -> None:
    of = use("id integer!; paid integer", "period")
    sources = []
    for month in ("2026-01", "2026-02"):
        bench.write(f"{month}.csv", "id,paid\n1,5\n2,x\n3,7,7\n")
        rows = f"{month}.csv,3,2,6\n"
        bench.write(f"fixed-{month}.csv", "_source_file,_source_line,id,paid\n" + rows)
        source = path_source(f"{month}.csv", of=month, tied=True, rules=APART, corrections=f"fixed-{month}.csv")
        sources.append(source)
    rows = "_source_file,_source_line,_period,paid,id\n2026-02.csv,4,,7,3\n2026-02.csv,3,2026-02,6,2\n"
    bench.write("fixed-2026-02.csv", rows)
    pinned = bench.pin(of, *sources, at="2026-Q1")
    assert sorted(bench.rows(pinned, "_period", "id", "paid")) == [
        ("2026-01", 1, 5),
        ("2026-01", 2, 6),
        ("2026-02", 1, 5),
        ("2026-02", 2, 6),
        ("2026-02", 3, 7),
    ]


def test_a_run_without_a_good_row_says_so(bench: Bench) -> None:
    bench.write("a.csv", "id,born,paid\nx,,\n")
    request = replace(bench.request(PEOPLE, [path_source("a.csv", rules=APART)], "2026-01"), may_be_empty=False)
    with pytest.raises(Exception, match="1 of 1 rows are not as the dataset says"):
        pin(bench.spark, request)
    assert bench.stored() == {}
