# ruff: noqa: DTZ001 - moments in workbooks have no zone
"""Workbooks and compressed files, read without Spark: what a cell says is taken whole, and damage is named."""

import gzip
import random
import zipfile
from datetime import datetime
from pathlib import Path

import openpyxl
import pytest

from clew.plan.file_rules import TextRules
from clew.plan.local_files import SourceFile
from clew.storage.compression import decompressed
from clew.storage.sheets import NO_SAVED_VALUE, SheetProblem, opened_sheet, text_of_cell


def source(path: Path) -> SourceFile:
    return SourceFile(str(path), path.name, path.stat().st_size, is_local=True)


@pytest.mark.parametrize(
    ("moment", "formats", "text"),
    [
        (datetime(2024, 4, 3), ("dd.MM.yy",), "03.04.24"),
        (datetime(1999, 4, 3), ("dd.MM.yy",), "1999-04-03"),
        (datetime(1999, 4, 3), ("dd.MM.yy", "d.M.yyyy"), "3.4.1999"),
        (datetime(2024, 4, 3, 10, 20), ("dd.MM.yyyy HH:mm",), "03.04.2024 10:20"),
        (datetime(2024, 4, 3, 10, 20, 33), ("dd.MM.yyyy HH:mm",), "2024-04-03 10:20:33"),
        (datetime(2024, 4, 3, 10, 20, 33), ("yyyy-MM-dd",), "2024-04-03 10:20:33"),
        (datetime(2024, 4, 3), (), "2024-04-03"),
    ],
)
def test_a_moment_is_written_in_a_pattern_that_says_all_of_it(
    moment: datetime, formats: tuple[str, ...], text: str
) -> None:
    assert text_of_cell(moment, TextRules(formats=formats)) == text


def test_rows_have_their_own_numbers_and_formulas_without_a_value_are_marked(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for cells in [("id", "paid"), (), (1, "=A1"), (2, 5)]:
        book["Sheet"].append(cells)
    book.save(tmp_path / "a.xlsx")
    with opened_sheet(source(tmp_path / "a.xlsx"), {}) as sheet:
        assert sheet is not None
        assert sheet.names == ("id", "paid")
        assert list(sheet.rows) == [(3, (1, NO_SAVED_VALUE)), (4, (2, 5))]


def test_a_damaged_workbook_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for number in range(50):
        book["Sheet"].append((number, f"text {number}", datetime(2024, 1, 1)))
    book.save(tmp_path / "whole.xlsx")
    whole, chance, refused = (tmp_path / "whole.xlsx").read_bytes(), random.Random(5), 0
    path = tmp_path / "damaged.xlsx"
    for _ in range(60):
        content = bytearray(whole)
        for _ in range(6):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            with opened_sheet(source(path), {}) as sheet:
                list(sheet.rows if sheet is not None else ())
        except SheetProblem as problem:
            refused += "damaged.xlsx" in str(problem)
    assert refused > 30


def test_damaged_archives_are_refused_with_their_name(tmp_path: Path) -> None:
    text = b"id,name\n1,x\n" * 1000
    with zipfile.ZipFile(tmp_path / "whole.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", text)
    whole = (tmp_path / "whole.zip").read_bytes()
    listing = whole.index(b"PK\x01\x02")

    def changed(**values: int) -> bytes:
        content = bytearray(whole)
        for position, value in values.items():
            content[int(position[1:])] = value
        return bytes(content)

    files = {
        "short.gz": gzip.compress(text)[:-20],
        "damaged.zip": changed(**{f"b{position}": 255 for position in range(45, 70)}),
        "secret.zip": changed(b6=1, **{f"b{listing + 8}": 1}),
        "unknown.zip": changed(b8=99, **{f"b{listing + 10}": 99}),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(OSError, match=name), decompressed(source(tmp_path / name)) as stream:
            stream.read()
