"""Options and columns of files in resolver rules: what is wrong is reported at its place, with what was meant."""

from pathlib import Path

import pytest

from clew.definitions import load_workspace

RULE = """
id: r
rules:
  - name: a
    strategy: {{type: path, datasource_id: files, path: {path}, {more}}}
"""


@pytest.mark.parametrize(
    ("path", "more", "problem", "hint"),
    [
        (
            "a.csv",
            "options: {delimeter: x}",
            'unknown key "delimeter" in the options of csv',
            'did you mean "delimiter"?',
        ),
        ("a.csv", "options: {skiprows: 1}", 'unknown key "skiprows"', "it is called skip_lines"),
        ("a.csv", "options: {sheet: x}", 'unknown key "sheet"', "sheet is an option of xlsx"),
        ("a.csv", "options: {dateFormat: x}", 'unknown key "dateFormat"', "write format under"),
        ("a.csv", "options: {skip_lines: many}", "skip_lines: expected how many", "write a whole number"),
        ("a.csv", "options: {quote: ab}", "quote: expected one character", "write one character"),
        ("a.csv", "options: {encoding: klingon}", 'no encoding "klingon"', "UTF-8"),
        ("a.csv", "options: {encoding: base64}", 'no encoding "base64"', "UTF-8"),
        ("a.csv.gz", "options: {compression: rar}", 'no compression "rar"', "write none, gzip"),
        ("a.parquet", "options: {header: true}", 'unknown key "header"', "header is an option of csv and xlsx"),
        ("a.parquet", "columns: {x: {trim: true}}", "trim is for csv", "remove it"),
        ("a.csv", "columns: {x: {format: dd.QQ.yyyy}}", '"QQ" in a pattern of dates means nothing', "dd.MM.yyyy"),
        ("a.csv", "columns: {x: {format: MM.yyyy}}", "one year, one month and one day", "dd.MM.yyyy"),
        ("a.csv", "columns: {x: {formt: dd.MM.yyyy}}", 'unknown key "formt"', 'did you mean "format"?'),
        ("a.csv", "columns: {x: {start: 1}}", "start is for fixed_width", "remove it"),
        ("a.csv", "values: {decimal_mark: ',', thousands_mark: ','}", "cannot be both", "decimal_mark"),
        ("a.csv", "corrections: b.csv", "corrections are for rows in quarantine", "bad_rows: quarantine"),
        ("a.csv", "bad_rows: quarantined", "expected fail, null or quarantine", 'did you mean "quarantine"?'),
        ("a.txt", "format: fixed_width", 'the key "columns" is missing', "start: 1"),
        ("a.txt", "format: fixed_width, columns: {x: {start: 1}}", 'the key "width" is missing', ""),
        ("a", "format: delta, bad_rows: quarantine", "bad_rows is for csv", "remove it"),
    ],
)
def test_mistakes_are_reported_with_what_was_meant(
    tmp_path: Path, path: str, more: str, problem: str, hint: str
) -> None:
    (tmp_path / "clew.yaml").write_text("name: w\n")
    (tmp_path / "datasources").mkdir()
    (tmp_path / "datasources/files.yaml").write_text("{id: files, type: files, options: {root: data}}\n")
    (tmp_path / "resolvers").mkdir()
    (tmp_path / "resolvers/r.yaml").write_text(RULE.format(path=path, more=more))
    [found] = load_workspace(tmp_path).diagnostics
    assert problem in found.message
    assert hint in (found.hint or "")
    assert found.span is not None
    assert found.span.line == 5


def test_options_of_connectors_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("name: w\n")
    (tmp_path / "datasources").mkdir()
    (tmp_path / "datasources/files.yaml").write_text("{id: files, type: files, options: {root: data}}\n")
    (tmp_path / "resolvers").mkdir()
    (tmp_path / "resolvers/r.yaml").write_text(RULE.format(path="a", more="format: avro, options: {whatever: 1}"))
    assert load_workspace(tmp_path).diagnostics == ()
