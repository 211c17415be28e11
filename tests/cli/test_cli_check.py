"""`clew check`: what it says, how much it says, and how it ends."""

import re
from pathlib import Path

import pytest

from clew.sample import write_sample
from tests.cli.cli_workspaces import write_workspace
from tests.cli.conftest import Clew


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_workspace_that_is_right_is_counted_in_one_line(clew: Clew, sample: Path) -> None:
    answer = clew("check", cwd=sample)
    assert answer.code == 0
    assert answer.err == ""
    counts, _, time = answer.out.partition(" (")
    assert re.fullmatch(
        r"ok: 2 projects, 5 datasets, 2 datasources, 2 resolvers, 1 calendar, 1 fragment, \d+ scenarios", counts
    )
    assert re.fullmatch(r"\d+\.\d s\)\n", time)


def test_an_empty_workspace_is_right_too(clew: Clew, tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("name: empty\n")
    answer = clew("check")
    assert answer.code == 0
    assert answer.out.startswith("ok: no projects (")


def test_an_error_shows_place_code_caret_and_hint(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "gl-close.yaml", "SUM(transactions.amount_usd)", "SUM(transactions.amuont_usd)")
    answer = clew("check", cwd=sample)
    lines = answer.out.splitlines()
    assert answer.code == 1
    place, _, message = lines[0].partition(" error UnknownColumn: ")
    assert re.fullmatch(r"projects/gl-close\.yaml:\d+:\d+:", place)
    assert message == 'no column "amuont_usd" in transactions'
    assert lines[1].index("amuont_usd") == lines[2].index('^^^^^^^^^^ did you mean "amount_usd"?')
    assert len(lines) == 4
    assert lines[-1].startswith("1 error in 2 projects, 5 datasets")


def test_errors_of_all_files_come_in_one_go_and_in_order(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "gl-close.yaml", "STARTSWITH(", "STARTWITH(")
    edit(sample / "projects" / "group-report.yaml", "centers.region", "centers.regoin")
    edit(sample / "datasets" / "budgets.yaml", "type: string", "type: strng")
    edit(sample / "calendars" / "fiscal.yaml", "id:", "idd:")
    document = clew("check", "--json", cwd=sample).json
    files = [found["file"] for found in document["diagnostics"]]
    assert files == sorted(files)
    assert {
        "calendars/fiscal.yaml",
        "datasets/budgets.yaml",
        "projects/gl-close.yaml",
        "projects/group-report.yaml",
    } <= set(files)


def test_json_has_counts_and_diagnostics_and_nothing_else_is_printed(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "gl-close.yaml", "STARTSWITH(", "STARTWITH(")
    answer = clew("check", "--json", cwd=sample)
    assert answer.code == 1
    assert answer.err == ""
    document = answer.json
    assert document["ok"] is False
    assert document["workspace"] == "general-ledger"
    assert document["counts"]["errors"] == len(document["diagnostics"]) == 1
    assert document["counts"]["projects"] == 2
    assert document["diagnostics"][0] == {
        "code": "UnknownFunction",
        "message": 'no function "STARTWITH"',
        "file": "projects/gl-close.yaml",
        "line": 11,
        "column": 35,
        "hint": 'did you mean "STARTSWITH"?',
    }


def test_json_of_a_workspace_that_is_right(clew: Clew, sample: Path) -> None:
    document = clew("check", "--json", cwd=sample).json
    assert document["ok"] is True
    assert document["diagnostics"] == []
    assert document["counts"]["errors"] == 0


def test_a_project_is_checked_without_what_does_not_concern_it(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "group-report.yaml", "centers.region", "centers.regoin")
    edit(sample / "datasets" / "cost-centers.yaml", "status: active", "status: actve")
    assert clew("check", "gl-close", cwd=sample).code == 0
    assert clew("check", "Month close", cwd=sample).code == 0
    found = clew("check", "group-report", "--json", cwd=sample).json["diagnostics"]
    assert "datasets/cost-centers.yaml" in {each["file"] for each in found}


def test_a_project_is_checked_with_the_projects_whose_output_it_reads(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "gl-close.yaml", "STARTSWITH(", "STARTWITH(")
    found = clew("check", "group-report", "--json", cwd=sample).json["diagnostics"]
    assert [each["file"] for each in found] == ["projects/gl-close.yaml"]


def test_a_project_is_checked_with_its_fragments_and_scenarios(clew: Clew, sample: Path) -> None:
    edit(sample / "fragments" / "fx-to-usd.yaml", "fx.rate,", "fx.rte,")
    scenario = sample / "scenarios" / "drop-test-entries.yaml"
    scenario.write_text(scenario.read_text(encoding="utf-8").replace("name:", "nme:", 1), encoding="utf-8")
    found = clew("check", "gl-close", "--json", cwd=sample).json["diagnostics"]
    assert {"fragments/fx-to-usd.yaml", "scenarios/drop-test-entries.yaml"} <= {each["file"] for each in found}
    own = clew("check", "group-report", "--json", cwd=sample).json["diagnostics"]
    assert "scenarios/drop-test-entries.yaml" not in {each["file"] for each in own}


def test_a_fragment_that_fits_one_project_and_not_another_is_reported_for_the_other_only(
    clew: Clew, tmp_path: Path
) -> None:
    write_workspace(
        tmp_path,
        {
            "fragments/half.yaml": "id: half\noperations:\n  - {seq: 1, name: Halve, type: update,"
            " arguments: {assignments: [{column: half, expression: amount / 2}]}}\n",
            "datasets/names.yaml": "id: names\nmain_table: {name: names, columns: [{name: shop, type: string}]}\n",
            "projects/report.yaml": "id: report\ninput_dataset: sales\noperations: [{seq: 1, use: {fragment: half}}]\n",
            "projects/other.yaml": "id: other\ninput_dataset: names\noperations: [{seq: 1, use: {fragment: half}}]\n",
        },
    )
    assert clew("check", "report").code == 0
    assert "no column" in clew("check", "other").out


def test_a_project_whose_file_cannot_be_read_is_known_by_its_id(clew: Clew, sample: Path) -> None:
    edit(sample / "projects" / "gl-close.yaml", "status: active", "status: actve")
    answer = clew("check", "gl-close", "--json", cwd=sample)
    assert answer.code == 1
    assert {each["file"] for each in answer.json["diagnostics"]} == {"projects/gl-close.yaml"}


def test_an_unknown_project_is_not_found_and_near_names_are_offered(clew: Clew, sample: Path) -> None:
    answer = clew("check", "gl-clse", cwd=sample)
    assert answer.code == 3
    assert answer.out == ""
    assert answer.err == 'error UnknownProject: no project "gl-clse"\n  did you mean "gl-close"?\n'
    far = clew("check", "payroll", "--json", cwd=sample)
    assert far.code == 3
    assert far.json["error"]["code"] == "UnknownProject"
    assert far.json["error"]["hint"] == "the projects are gl-close, group-report"


def test_the_workspace_is_found_from_a_folder_inside_it(clew: Clew, sample: Path) -> None:
    assert clew("check", cwd=sample / "data" / "journal").code == 0


def test_the_workspace_can_be_named(clew: Clew, sample: Path, tmp_path: Path) -> None:
    assert clew("check", "--workspace", sample, cwd=tmp_path).code == 0
    assert clew("check", "-w", sample / "projects", cwd=tmp_path).code == 0


@pytest.mark.parametrize("command", [("check",), ("plan", "gl-close")])
def test_outside_a_workspace_nothing_is_found(clew: Clew, tmp_path: Path, command: tuple[str, ...]) -> None:
    answer = clew(*command)
    assert answer.code == 3
    assert answer.err.splitlines() == [
        f"error WorkspaceNotFound: no clew.yaml in {tmp_path} or above it",
        "  run `clew init` to create a workspace, or change to one",
    ]
    assert clew(*command, "--json").json["error"]["code"] == "WorkspaceNotFound"
    assert clew(*command, "-w", tmp_path / "nowhere").code == 3


def test_tabs_as_indentation_are_an_error_with_its_line(clew: Clew, tmp_path: Path) -> None:
    write_workspace(tmp_path, {"projects/tabs.yaml": "id: tabs\ninput_dataset: sales\noperations:\n\t- seq: 1\n"})
    [found] = clew("check", "--json").json["diagnostics"]
    assert (found["file"], found["line"]) == ("projects/tabs.yaml", 4)


def test_anchors_are_followed(clew: Clew, tmp_path: Path) -> None:
    content = """
id: anchors
input_dataset: sales
operations:
  - &first {seq: 1, name: Keep, type: update, arguments: &same {assignments: [{column: copy, expression: amount}]}}
  - {seq: 2, name: Keep again, type: update, arguments: *same}
"""
    write_workspace(tmp_path, {"projects/anchors.yaml": content})
    assert clew("check").code == 0


def test_anchors_that_multiply_are_refused_quickly(clew: Clew, tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    write_workspace(
        tmp_path, {"projects/laughs.yaml": "id: laughs\ninput_dataset: sales\noperations: []\n" + "\n".join(lines)}
    )
    answer = clew("check", "--json")
    assert answer.code == 1
    assert {each["file"] for each in answer.json["diagnostics"]} == {"projects/laughs.yaml"}


@pytest.mark.slow
def test_five_megabytes_of_yaml_are_checked(clew: Clew, tmp_path: Path) -> None:
    row = "  - {shop: Zürich, amount: 12.50, remark: " + "x" * 400 + "}\n"
    content = (
        "name: large\nperiod: '2026-01'\nperiods: [{identifier: '2026-01', level: month, start_date: 2026-01-01,"
        " end_date: 2026-01-31}]\nproject: report\nexpected_output: {rows: []}\ndatasets:\n- id: sales\n  rows:\n"
        + row
        * (5_000_000 // len(row) + 1)
    )
    assert len(content) >= 5_000_000
    write_workspace(tmp_path, {"scenarios/large.yaml": content})
    assert clew("check", "--json").json["counts"]["scenarios"] == 1


def test_a_file_that_is_not_utf8_is_named(clew: Clew, tmp_path: Path) -> None:
    write_workspace(tmp_path, {"projects/latin.yaml": "id: latin\nname: Zürich\n".encode("latin-1")})
    [found] = clew("check", "--json").json["diagnostics"]
    assert (found["code"], found["file"]) == ("UnreadableFile", "projects/latin.yaml")


def test_names_beyond_ascii_are_shown_as_they_are(clew: Clew, tmp_path: Path) -> None:
    content = """
id: umsatz
name: Übersicht 売上
input_dataset: sales
operations:
  - {seq: 1, name: Größe, type: delete, selector: 'größe = "ä"'}
"""
    write_workspace(tmp_path, {"projects/umsatz.yaml": content})
    answer = clew("check", "Übersicht 売上")
    assert answer.code == 1
    assert 'no column "größe"' in answer.out
    excerpt, caret = answer.out.splitlines()[1:3]
    assert excerpt[caret.index("^") :].startswith("größe")


def test_colours_are_for_terminals_only(clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(sample / "projects" / "gl-close.yaml", "STARTSWITH(", "STARTWITH(")
    plain = clew("check", cwd=sample).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = clew("check", cwd=sample).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in plain
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured).splitlines()[:3] == plain.splitlines()[:3]
    assert "\x1b" not in clew("check", cwd=sample).out


def test_the_same_workspace_in_another_place_gives_the_same_json(clew: Clew, sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path / "other")
    for root in (sample, tmp_path / "other"):
        edit(root / "projects" / "gl-close.yaml", "STARTSWITH(", "STARTWITH(")
    assert clew("check", "--json", cwd=sample).out == clew("check", "--json", cwd=tmp_path / "other").out
