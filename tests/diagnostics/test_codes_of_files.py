"""What can be wrong in the files of a workspace, each told by `clew check` with its code and its place."""

import json
from pathlib import Path

import pytest

from clew.cli.main import run
from tests.plan.plan_workspaces import BASE, TinyWorkspace, project_text

DROP = "- {{seq: 1, name: drop, type: delete, selector: '{0}'}}"
SUM = "- {{seq: 1, name: sum, type: aggregate, arguments: {{group_by: [region], aggregations: [{0}]}}}}"
SET = "- {{seq: 1, name: set, type: update, arguments: {{assignments: [{{column: x, expression: {0}}}]}}}}"
JOIN = (
    "- {{seq: 1, name: join, type: update, arguments: {{joins: [{0}], assignments: [{{column: x, expression: {1}}}]}}}}"
)
OUT = (
    "- {{seq: {0}, name: {1}, type: output,"
    " arguments: {{destination: {{location: {{path: {1}.csv}}}}, register_as_dataset: made}}}}"
)
OTHER = "id: other\nmain_table: {name: other, columns: [{name: a, type: integer}]}\n"
FRAGMENT = "id: f\noperations:\n  - {seq: 1, name: drop, type: delete}\n"
TWICE = "id: f\noperations:\n  - {seq: 1, use: {fragment: g}}\n"


def of(operations: str = "", *, selectors: str = "", more: str = "", **files: str) -> dict[str, str]:
    """The project `p`, and other files by their names with `__` for the slash."""
    project = project_text(operations, selectors=selectors, more=f"{more}\n" if more else "")
    named = {f"{name.replace('__', '/').replace('_', '-')}.yaml": text for name, text in files.items()}
    return {"projects/p.yaml": project, **named}


CASES = {
    "UnknownTable": of(DROP.format("nowhere.amount > 1")),
    "AmbiguousColumn": of(JOIN.format("{alias: c, dataset_id: customers, on: c.id = customer_id}", "status")),
    "WrongArgumentCount": of(DROP.format("UPPER() = region")),
    "AggregateNotAllowed": of(DROP.format("SUM(amount) > 1")),
    "AggregateRequired": of(SUM.format("{column: total, expression: amount}")),
    "DuplicateKey": of(more="version: 1\nversion: 2"),
    "DuplicateId": of(datasets__again=OTHER.replace("other", "orders")),
    "DuplicateColumn": of(datasets__other=OTHER.replace("]}", ", {name: A, type: string}]}")),
    "ReservedColumn": of(SET.format("1").replace("column: x", "column: _row_id")),
    "UnknownDataset": of("- {seq: 1, name: more, type: append, arguments: {source: {dataset_id: nowhere}}}"),
    "DatasetInactive": of(
        "- {seq: 1, name: more, type: append, arguments: {source: {dataset_id: other}}}",
        datasets__other=OTHER + "status: inactive\n",
    ),
    "UnknownResolver": of(datasets__other=OTHER + "resolver_id: nowhere\n"),
    "ResolverInactive": of(
        "- {seq: 1, name: more, type: append, arguments: {source: {dataset_id: other}}}",
        datasets__other=OTHER + "resolver_id: archive\n",
        resolvers__archive="id: archive\nstatus: inactive\nrules:\n"
        "  - {name: all, strategy: {type: path, datasource_id: files, path: 'old/{table}.csv', format: csv}}\n",
    ),
    "UnknownFragment": of("- {seq: 1, use: {fragment: nowhere}}"),
    "FragmentCycle": of(
        "- {seq: 1, use: {fragment: f}}",
        fragments__f=TWICE,
        fragments__g=TWICE.replace("id: f", "id: g").replace("fragment: g", "fragment: f"),
    ),
    "UnknownSelector": of(DROP.format("{{nowhere}}")),
    "SelectorCycle": of(DROP.format("{{a}}"), selectors="a: '{{b}}'\nb: '{{a}}'"),
    "DuplicateSeq": of("- {seq: 1, name: a, type: delete}\n- {seq: 1, name: b, type: delete}"),
    "AppendColumnMismatch": of("- {seq: 1, name: more, type: append, arguments: {source: {dataset_id: customers}}}"),
    "DuplicateAlias": of(
        "- {seq: 1, use: {fragment: f, as: x}}\n- {seq: 5, use: {fragment: f, as: x}}", fragments__f=FRAGMENT
    ),
    "InvalidLabel": of("- {seq: 1, name: drop, type: delete, assign: 'a b'}"),
    "DuplicateBreakpoint": of(
        "- {seq: 1, name: a, type: delete, assign: here}\n- {seq: 2, name: b, type: delete, assign: here}"
    ),
    "InvalidControl": of(OUT.format(1, "a"), more="controls: [{name: Total, expression: region}]"),
    "InvalidCheck": of(OUT.format(1, "a"), more="checks: [{not_null: amount, at: nowhere}]"),
    "TaskNotAllowed": of("- {seq: 1, name: drop, type: delete, after_request: [{fetch: 1}]}"),
    "RegistrationConflict": of(f"{OUT.format(1, 'a')}\n{OUT.format(2, 'b')}"),
}
"""A workspace for each code."""


@pytest.mark.parametrize("code", CASES)
def test_a_mistake_in_a_file_is_told_with_its_code_and_place(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = TinyWorkspace(tmp_path / "shop")
    workspace.write(BASE)
    workspace.write(CASES[code])
    monkeypatch.chdir(workspace.root)
    assert run(["check", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["diagnostics"]
    found = [each for each in told if each["code"] == code]
    assert found, told
    assert all(each["file"] and each["line"] and each["hint"] for each in found)


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("clew.definitions.kinds.LARGEST_FILE", 10)
    TinyWorkspace(tmp_path).write({**BASE, **of()})
    monkeypatch.chdir(tmp_path)
    assert run(["check"]) == 1
    assert "FileTooLarge" in capsys.readouterr().out
