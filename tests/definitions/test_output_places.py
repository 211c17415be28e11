"""Outputs go below their root, and never over what the workspace is made of."""

from collections.abc import Callable, Mapping

import pytest

from clew.definitions import LoadedWorkspace

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]

SETTINGS = "name: t\nenvironments:\n  dev: {storage_root: managed/data}\n"


def found(
    workspace_of: WorkspaceOf, destination: str, root: str = ".", settings: str = SETTINGS
) -> list[tuple[str, int]]:
    project = (
        "id: p\ninput_dataset: d\noperations:\n  - seq: 1\n    name: a\n    type: output\n    arguments:\n"
        f"      destination: {destination}\n"
    )
    files = {
        "clew.yaml": settings,
        "datasources/here.yaml": f'id: here\ntype: files\noptions: {{root: "{root}"}}\n',
        "projects/p.yaml": project,
    }
    return [(each.message, each.span.line) for each in workspace_of(files).diagnostics if each.span]


@pytest.mark.parametrize(
    ("path", "over"),
    [
        (".", "clew.yaml"),
        ("clew.yaml", "clew.yaml"),
        ("projects", "projects"),
        ("x/../scenarios/out", "scenarios"),
        (".clew/storage", ".clew"),
        ("managed", "managed/data"),
        ("managed/data/runs", "managed/data"),
    ],
)
def test_an_output_cannot_go_where_the_workspace_keeps_its_own(workspace_of: WorkspaceOf, path: str, over: str) -> None:
    told = [(f'an output to "{path}" would write over {over}, which the workspace needs', 8)]
    assert found(workspace_of, f'{{location: {{path: "{path}"}}}}') == told
    assert found(workspace_of, f'{{datasource_id: here, path: "{path}"}}') == told


@pytest.mark.parametrize("key", ["storage_root", "sandbox_root"])
@pytest.mark.parametrize(
    ("managed", "root", "path"),
    [
        ("file:///srv/a%20b/clew", "file:///srv/a%20b", "clew/runs"),
        ("/srv/clew", "file:///srv", "clew"),
        ("s3://ledger/clew", "s3a://ledger/clew", "runs"),
        ("s3://ledger/clew", "s3://ledger", "clew"),
    ],
)
def test_an_output_cannot_go_where_an_environment_keeps_what_it_manages_however_that_is_written(
    workspace_of: WorkspaceOf, key: str, managed: str, root: str, path: str
) -> None:
    settings = f"name: t\nenvironments:\n  dev: {{}}\n  prod: {{{key}: '{managed}'}}\n"
    told = [(f'an output to "{path}" would write over {managed}, which the workspace needs', 8)]
    assert found(workspace_of, f"{{datasource_id: here, path: {path}}}", root, settings) == told
    assert found(workspace_of, "{datasource_id: here, path: reports}", root.removesuffix("/clew"), settings) == []


@pytest.mark.parametrize("path", ["out", "managed-elsewhere", "data/{period}", "projects-done/x.csv"])
def test_an_output_can_go_anywhere_else(workspace_of: WorkspaceOf, path: str) -> None:
    assert found(workspace_of, f'{{location: {{path: "{path}"}}}}') == []
    assert found(workspace_of, f'{{datasource_id: here, path: "{path}"}}', root="reports") == []


def test_an_absolute_path_does_not_lead_out_of_its_root(workspace_of: WorkspaceOf) -> None:
    told = [('the output path "/etc/x" leads out of its root', 8)]
    assert found(workspace_of, '{location: {path: "/etc/x"}}') == told
    assert found(workspace_of, '{datasource_id: here, path: "/etc/x"}', root="reports") == told


def test_an_output_goes_to_an_object_store_through_a_datasource_only(workspace_of: WorkspaceOf) -> None:
    told = [('an output cannot go to the URL "s3a://bucket/x"', 8)]
    assert found(workspace_of, '{location: {path: "s3a://bucket/x"}}') == told
    assert found(workspace_of, '{datasource_id: here, path: "s3a://bucket/x"}', root="s3a://bucket/x") == told
    assert found(workspace_of, "{datasource_id: here, path: y}", root="s3a://bucket/x") == []
    told = [('the output path "/y" leads out of its root', 8)]
    assert found(workspace_of, '{datasource_id: here, path: "/y"}', root="s3a://bucket/x") == told


@pytest.mark.parametrize("seq", [1_000_000_000, 10**20])
def test_a_seq_that_no_store_could_keep_is_refused(workspace_of: WorkspaceOf, seq: int) -> None:
    project = f"id: p\ninput_dataset: d\noperations:\n  - {{seq: {seq}, name: a, type: delete}}\n"
    [problem] = workspace_of({"projects/p.yaml": project}).diagnostics
    assert problem.message == f"expected a whole number from 1 to 999999999, found the number {seq}"
