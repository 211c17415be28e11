"""`clew test` as far as it needs no Spark: what cannot be run, and what there is to run."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.cli_workspaces import write_workspace
from tests.cli.conftest import Clew


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting Spark would be a mistake here."""

    def refuse(_environment: object) -> None:
        raise AssertionError("nothing needs Spark here")

    monkeypatch.setattr("clew.engine.session.session_of", refuse)


def test_a_workspace_without_scenarios_says_where_they_belong(clew: Clew, tmp_path: Path, no_spark: None) -> None:
    write_workspace(tmp_path, {})
    answer = clew("test")
    assert (answer.code, answer.out) == (0, "no scenarios; define them in scenarios/*.yaml\n")
    assert clew("test", "--json").json["scenarios"] == []


def test_a_scenario_that_cannot_be_read_is_an_error_with_its_place(clew: Clew, tmp_path: Path, no_spark: None) -> None:
    write_workspace(tmp_path, {"scenarios/wrong.yaml": 'name: wrong\nperiod: "2026"\nproject: report\nnonsense: 1\n'})
    answer = clew("test", "--junit", "results/junit.xml")
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[0] == "error wrong (scenarios/wrong.yaml)"
    assert lines[1].startswith("  scenarios/wrong.yaml:4:1: error UnknownKey")
    assert lines[-1].startswith("1 scenario: 0 passed, 1 error (")
    suite = ElementTree.parse(tmp_path / "results" / "junit.xml").getroot()
    assert suite.attrib["errors"] == "1"
    [scenario] = clew("test", "--json").json["scenarios"]
    assert (scenario["name"], scenario["status"], scenario["error"]["line"]) == ("wrong", "error", 4)


def test_a_scenario_whose_project_is_wrong_is_an_error(clew: Clew, tmp_path: Path, no_spark: None) -> None:
    scenario = 'name: one\nperiod: "2026"\nperiods: [{identifier: "2026", level: year, start_date: 2026-01-01, '
    scenario += "end_date: 2026-12-31}]\nproject: repot\nexpected_output: {rows: []}\n"
    write_workspace(tmp_path, {"scenarios/one.yaml": scenario})
    answer = clew("test")
    assert answer.code == 1
    assert 'did you mean "report"?' in answer.out


def test_a_path_that_does_not_exist_is_said(clew: Clew, tmp_path: Path, no_spark: None) -> None:
    write_workspace(tmp_path, {})
    answer = clew("test", "scenarios/none.yaml")
    assert answer.code == 3
    assert "scenarios/none.yaml" in answer.err
    assert "no such file or folder" in answer.err


ROWS_IN_FILE = """
name: filed
period: "2026"
periods: [{identifier: "2026", level: year, start_date: 2026-01-01, end_date: 2026-12-31}]
datasets:
  - id: rates
    file: FILE
    main_table:
      name: rates
      temporal_mode: bitemporal
      columns: [{name: id, type: integer}, {name: fixed, type: boolean}]
project:
  id: inline
  input_dataset: rates
  operations: [{seq: 1, name: out, type: output, arguments: {destination: {location: {path: out}}}}]
expected_output: {rows: []}
"""


@pytest.mark.parametrize(
    ("file", "content", "code", "says"),
    [
        ("rows.csv", b"id,fixed,_period_from\n1,true,2026-13\n", "SchemaMismatch", "neither a date nor a period"),
        ("rows.csv", b"id,fixed,_period_from\n1,yes,2026\n", "SchemaMismatch", '"yes" in the column "fixed" is not'),
        ("rows.csv", b"id,fixed\n1,true,x\n", "SchemaMismatch", "rows.csv, line 2 has 3 values for 2 columns"),
        ("rows.csv", b"id,fixed\n\xff,true\n", "SourceUnavailable", "cannot read rows.csv"),
        ("rows.csv", b"", "SchemaMismatch", "rows.csv is empty: it has no header"),
        ("rows.parquet", b"PAR1", "SourceUnavailable", "cannot read rows.parquet"),
        ("rows.txt", b"id\n", "SourceUnavailable", "cannot be read from rows.txt"),
        ("none.csv", None, "SourceUnavailable", "there is no file none.csv"),
    ],
)
def test_a_file_of_rows_that_is_of_no_use_is_an_error_at_its_place(
    clew: Clew, tmp_path: Path, no_spark: None, file: str, content: bytes | None, code: str, says: str
) -> None:
    write_workspace(tmp_path, {"scenarios/one.yaml": ROWS_IN_FILE.replace("FILE", file)})
    if content is not None:
        (tmp_path / "scenarios" / file).write_bytes(content)
    [scenario] = clew("test", "--json").json["scenarios"]
    assert (scenario["status"], scenario["error"]["code"], scenario["error"]["line"]) == ("error", code, 7)
    assert says in scenario["error"]["message"]
