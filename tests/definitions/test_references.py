"""What has to fit between files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from clew.definitions import LoadedWorkspace, Project, load_scenarios
from clew.diagnostics import UserError

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]

CALENDAR = "id: civil\ngenerate: {first_year: 2026, last_year: 2026}\n"
FILES = "id: files\ntype: files\noptions: {root: data}\n"


def dataset(name: str, more: str = "") -> str:
    return f"id: {name}\n{more}main_table: {{name: t, columns: [{{name: a, type: string}}]}}\n"


def resolver(name: str, more: str = "", *, datasource: str = "files", level: str = "any") -> str:
    strategy = f"{{type: path, datasource_id: {datasource}, path: x}}"
    return f"id: {name}\n{more}rules:\n  - {{name: r, data_level: {level}, strategy: {strategy}}}\n"


def project(name: str, more: str = "", *, datasource: str = "files") -> str:
    destination = f"{{datasource_id: {datasource}, path: out}}"
    arguments = f"{{destination: {destination}}}"
    operation = f"{{seq: 1, name: w, type: output, arguments: {arguments}}}"
    return f"id: {name}\ninput_dataset: anything\n{more}operations:\n  - {operation}\n"


def scenario(name: str, *, period: str = "2026-01", project: str = "p", periods: str = "") -> str:
    return f"name: {name}\nperiod: {period}\n{periods}project: {project}\nexpected_output: {{rows: []}}\n"


def problems(loaded: LoadedWorkspace) -> list[tuple[str, str, str]]:
    return [(str(d.span), d.code, d.message) for d in loaded.diagnostics]


def test_ids_and_names_are_unique_within_a_kind(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of(
        {
            "datasets/a.yaml": dataset("gl", "name: Ledger\n"),
            "datasets/b.yaml": dataset("gl", "name: Ledger\n"),
            "datasets/c.yaml": dataset("other", "name: Ledger\n"),
            "datasets/d.yaml": dataset("fourth", "name: gl\n"),
            "fragments/gl.yaml": "id: gl\noperations: [{seq: 1, name: x, type: delete}]\n",
        }
    )
    assert problems(loaded) == [
        ("datasets/b.yaml:1:5", "DuplicateId", 'the dataset "gl" is already defined in datasets/a.yaml:1:5'),
        ("datasets/c.yaml:2:7", "DuplicateId", 'the dataset "Ledger" is already defined in datasets/a.yaml:2:7'),
        ("datasets/d.yaml:2:7", "DuplicateId", 'the dataset "gl" is already defined in datasets/a.yaml:1:5'),
    ]


def test_an_id_counts_before_a_name(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"datasets/a.yaml": dataset("one", "name: two\n"), "datasets/b.yaml": dataset("two")})
    found = loaded.workspace.dataset("two")
    assert found is not None
    assert found.id == "two"


def test_references_to_what_does_not_exist(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of(
        {
            "calendars/c.yaml": CALENDAR,
            "datasources/f.yaml": FILES,
            "datasets/a.yaml": dataset("a", "resolver_id: montly\n"),
            "resolvers/r.yaml": resolver("monthly", datasource="file", level="monht"),
            "projects/p.yaml": project("p", "resolver_overrides: {a: monthly, b: nope}\n", datasource="nowhere"),
            "scenarios/s.yaml": scenario("s", period="2026-13", project="q"),
            "scenarios/t.yaml": scenario("t", project="q.yaml"),
        }
    )
    assert problems(loaded) == [
        ("datasets/a.yaml:2:14", "UnknownResolver", 'no resolver "montly"'),
        ("projects/p.yaml:3:37", "UnknownResolver", 'no resolver "nope"'),
        ("projects/p.yaml:5:78", "UnknownDatasource", 'no datasource "nowhere"'),
        ("resolvers/r.yaml:3:27", "InvalidValue", 'no calendar has the level "monht"'),
        ("resolvers/r.yaml:3:72", "UnknownDatasource", 'no datasource "file"'),
        ("scenarios/s.yaml:2:9", "UnknownPeriod", 'no period "2026-13"'),
        ("scenarios/s.yaml:3:10", "UnknownProject", 'no project "q"'),
        ("scenarios/t.yaml:3:10", "UnknownProject", 'no project "q.yaml"'),
    ]
    suggested = [d.hint for d in loaded.diagnostics if d.hint and d.hint.startswith("did you mean")]
    assert suggested[0] == 'did you mean "monthly"?'


def test_references_to_broken_files_are_not_reported_again(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of(
        {
            "calendars/c.yaml": CALENDAR + "x: 1\n",
            "datasources/f.yaml": FILES + "x: 1\n",
            "datasets/a.yaml": dataset("a", "resolver_id: r\n"),
            "resolvers/r.yaml": resolver("r", "x: 1\n"),
            "resolvers/s.yaml": resolver("s", level="fortnight"),
            "projects/p.yaml": project("p"),
            "projects/q.yaml": project("q", "x: 1\n"),
            "scenarios/s.yaml": scenario("s", project="q"),
            "scenarios/t.yaml": scenario("t", project="../projects/q.yaml"),
        }
    )
    assert {d.message.split(" in ")[0] for d in loaded.diagnostics} == {'unknown key "x"'}
    assert len(loaded.diagnostics) == 4


def test_one_resolver_is_the_default(workspace_of: WorkspaceOf) -> None:
    files = {f"resolvers/{name}.yaml": resolver(name, "is_default: true\n") for name in "abc"}
    loaded = workspace_of({"datasources/f.yaml": FILES, **files})
    message = 'the resolver "a" is the default already (resolvers/a.yaml:2:13)'
    assert problems(loaded) == [(f"resolvers/{name}.yaml:2:13", "InvalidValue", message) for name in "bc"]


def test_calendars_do_not_share_periods(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"calendars/a.yaml": CALENDAR, "calendars/b.yaml": CALENDAR.replace("civil", "fiscal")})
    assert problems(loaded) == [
        ("calendars/b.yaml:2:11", "DuplicateId", 'the period "2026" is already defined in calendars/a.yaml:2:11')
    ]


def test_scenarios_have_their_own_names_and_periods(workspace_of: WorkspaceOf) -> None:
    own = (
        "periods:\n  - {identifier: P1, level: month, parent: Y, start_date: 2026-01-01, end_date: 2026-01-31}\n"
        "  - {identifier: P1, level: month, start_date: 2026-02-01, end_date: 2026-02-28}\n"
    )
    loaded = workspace_of(
        {
            "calendars/c.yaml": CALENDAR,
            "datasources/f.yaml": FILES,
            "projects/p.yaml": project("p"),
            "scenarios/a.yaml": scenario("same", periods=own),
            "scenarios/b.yaml": scenario("same"),
        }
    )
    assert problems(loaded) == [
        ("scenarios/a.yaml:2:9", "UnknownPeriod", 'no period "2026-01"'),
        ("scenarios/a.yaml:4:44", "UnknownPeriod", 'no period "Y"'),
        ("scenarios/a.yaml:5:18", "DuplicateId", 'the period "P1" is already defined in scenarios/a.yaml:4:18'),
        ("scenarios/b.yaml:1:7", "DuplicateId", 'the scenario "same" is already defined in scenarios/a.yaml:1:7'),
    ]


def test_a_scenario_may_name_a_project_outside_the_projects(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of(
        {
            "calendars/c.yaml": CALENDAR,
            "scenarios/s.yaml": scenario("s", project="drafts/x.yaml"),
            "scenarios/t.yaml": scenario("t", project="scenarios/drafts/x.yaml"),
            "scenarios/drafts/x.yaml": project("x"),
        }
    )
    assert loaded.diagnostics == ()
    found = [each.project for each in loaded.workspace.scenarios]
    assert all(isinstance(each, Project) and each.id == "x" for each in found)
    assert loaded.workspace.projects == ()


def test_scenarios_of_other_folders_take_the_place_of_the_own_ones(workspace_of: WorkspaceOf, tmp_path: Path) -> None:
    loaded = workspace_of(
        {
            "calendars/c.yaml": CALENDAR,
            "datasources/f.yaml": FILES,
            "projects/p.yaml": project("p"),
            "scenarios/a.yaml": scenario("a"),
            "more/b.yaml": scenario("b"),
            "more/c.yaml": scenario("c", period="nope"),
        }
    )
    more = load_scenarios(loaded, [tmp_path / "more", tmp_path / "scenarios" / "a.yaml"])
    assert [each.name for each in more.workspace.scenarios] == ["b", "c", "a"]
    assert problems(more) == [("more/c.yaml:2:9", "UnknownPeriod", 'no period "nope"')]
    assert more.source_of("more/b.yaml") == scenario("b")
    with pytest.raises(UserError) as caught:
        load_scenarios(loaded, [tmp_path / "nowhere"])
    assert caught.value.code == "UnreadableFile"


@pytest.mark.parametrize("status", ["draft", "inactive"])
def test_a_resolver_that_is_not_active_cannot_be_relied_on(workspace_of: WorkspaceOf, status: str) -> None:
    loaded = workspace_of(
        {
            "datasources/f.yaml": FILES,
            "resolvers/a.yaml": resolver("a", f"status: {status}\n"),
            "resolvers/b.yaml": resolver("b", f"status: {status}\nis_default: true\n"),
            "datasets/d.yaml": dataset("d", "resolver_id: a\n"),
            "datasets/unused.yaml": dataset("unused", "resolver_id: a\nstatus: draft\n"),
            "projects/p.yaml": project("p", "resolver_overrides: {d: a}\n"),
        }
    )
    message = f'the resolver "{{}}" is {status}, not active'
    assert problems(loaded) == [
        ("datasets/d.yaml:2:14", "ResolverInactive", message.format("a")),
        ("projects/p.yaml:3:25", "ResolverInactive", message.format("a")),
        ("resolvers/b.yaml:2:9", "ResolverInactive", message.format("b")),
    ]


@pytest.mark.parametrize(
    ("datasource", "where", "problem"),
    [
        ("files", "table: t", 'a table needs a database, and the datasource "files" has files'),
        ("db", "path: p", 'a path needs files, and the datasource "db" is a database'),
        ("lake", "path: p", 'a path needs files, and the datasource "lake" is a catalog'),
    ],
)
def test_a_table_lies_in_a_database_and_a_path_among_files(
    workspace_of: WorkspaceOf, datasource: str, where: str, problem: str
) -> None:
    kind = where.partition(":")[0]
    output = f"type: output, arguments: {{destination: {{datasource_id: {datasource}, {where}}}}}"
    found = workspace_of(
        {
            "datasources/files.yaml": "id: files\ntype: files\noptions: {root: data}\n",
            "datasources/db.yaml": "id: db\ntype: database\noptions: {url: 'postgresql://host/db'}\n",
            "datasources/lake.yaml": "id: lake\ntype: catalog\n",
            "resolvers/r.yaml": (
                f"id: r\nrules:\n  - {{name: a, strategy: {{type: {kind}, datasource_id: {datasource}, {where}}}}}\n"
            ),
            "projects/p.yaml": f"id: p\ninput_dataset: d\noperations:\n  - {{seq: 1, name: o, {output}}}\n",
        }
    ).diagnostics
    assert [(each.message, each.span.file) for each in found if each.span] == [
        (problem, "projects/p.yaml"),
        (problem, "resolvers/r.yaml"),
    ]


def test_a_table_of_a_catalog_is_written_in_a_format_with_commits(workspace_of: WorkspaceOf) -> None:
    def output(seq: int, destination: str) -> str:
        return f"  - {{seq: {seq}, name: o{seq}, type: output, arguments: {{destination: {{{destination}}}}}}}\n"

    outputs = [
        output(1, "datasource_id: lake, table: finance.a, format: delta, create_missing: schema"),
        output(2, "datasource_id: lake, table: finance.b"),
        output(3, "datasource_id: lake, table: finance.c, format: orc"),
        output(4, "datasource_id: db, table: d, create_missing: table"),
    ]
    found = workspace_of(
        {
            "datasources/lake.yaml": "id: lake\ntype: catalog\noptions: {catalog: unity}\n",
            "resolvers/r.yaml": (
                "id: r\nrules:\n  - {name: a, strategy: {type: table, datasource_id: lake, table: finance.t}}\n"
            ),
            "datasources/db.yaml": "id: db\ntype: database\noptions: {url: 'postgresql://host/db'}\n",
            "projects/p.yaml": f"id: p\ninput_dataset: d\noperations:\n{''.join(outputs)}",
        }
    ).diagnostics
    assert [(each.span.line, each.message) for each in found if each.span] == [
        (5, "an output to a catalog needs a table with commits"),
        (6, "an output to a catalog needs a table with commits, and the format here is orc"),
        (7, "create_missing is for tables of catalogs only"),
    ]
    assert "format: delta" in str(found[0].hint)
