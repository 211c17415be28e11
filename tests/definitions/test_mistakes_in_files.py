"""What is wrong within one file is reported where it stands, in words of the user's world, all of it at once."""

from collections.abc import Callable, Mapping

import pytest

from clew.definitions import Delete, FilterTaskDefinition, LoadedWorkspace, OtherTask
from clew.definitions.settings import LARGEST_NODE_ID
from clew.tracelink import MAX_NODE_ID

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]

TABLE = "main_table: {name: t, columns: [{name: a, type: string}]}\n"
PROJECT = "id: p\ninput_dataset: d\noperations:\n"


def problems(workspace_of: WorkspaceOf, file: str, content: str) -> list[tuple[str, str, int, int]]:
    found = workspace_of({file: content}).diagnostics
    return [(d.code, d.message, d.span.line, d.span.column) for d in found if d.span is not None]


def hints(workspace_of: WorkspaceOf, file: str, content: str) -> list[str | None]:
    return [diagnostic.hint for diagnostic in workspace_of({file: content}).diagnostics]


def test_every_wrong_value_of_a_file_is_reported(workspace_of: WorkspaceOf) -> None:
    content = (
        "id: a b\nname: 2026\nversion: one\nstatus: actve\nnatural_key: a\nmain_table:\n  name: t\n"
        "  temporal_mode: monthly\n  columns:\n    - {name: a, type: strng}\n    - {name: b, type: 'decimal(40,2)'}\n"
        "    - {name: c, type: integer, nullable: yes}\n    - x\n    - {name: 2026-01-01, type: date}\n"
        "    - {name: , type: date}\n"
    )
    types = "string, integer, double, boolean, date, timestamp, decimal, decimal(p,s)"
    slug = "an id of letters, digits, '.', '_' and '-' that starts with a letter or digit"
    assert problems(workspace_of, "datasets/d.yaml", content) == [
        ("InvalidValue", f'expected {slug}, found the text "a b"', 1, 5),
        ("InvalidValue", "expected a name, found the number 2026", 2, 7),
        ("InvalidValue", 'expected a whole number of at least 1, found the text "one"', 3, 10),
        ("InvalidValue", 'expected draft, active or inactive; found the text "actve"', 4, 9),
        ("InvalidValue", 'expected a list of columns, found the text "a"', 5, 14),
        ("InvalidValue", 'expected period, bitemporal or none; found the text "monthly"', 8, 18),
        ("InvalidValue", f'no type "strng"; the types are {types}', 10, 23),
        ("InvalidValue", "a decimal has 1 to 38 digits, not 40", 11, 23),
        ("InvalidValue", 'expected true or false, found the text "yes"', 12, 42),
        ("InvalidValue", 'expected a column, found the text "x"', 13, 7),
        ("InvalidValue", "expected a name, found the date 2026-01-01", 14, 14),
        ("InvalidValue", "expected a name, found nothing", 15, 14),
    ]


def test_an_expression_that_a_comma_cuts_in_two_is_said_to_need_quotes(workspace_of: WorkspaceOf) -> None:
    column = "    - {name: a, type: decimal(18, 2)}\n"
    content = f"id: d\nmain_table:\n  name: t\n  temporal_mode: none\n  columns:\n{column}"
    assert "inside { } a comma ends a value: put the whole expression in quotes" in hints(
        workspace_of, "datasets/d.yaml", content
    )


def test_unknown_and_missing_keys(workspace_of: WorkspaceOf) -> None:
    content = f"id: d\nextra: 1\n{TABLE}resolver: x\n"
    found = workspace_of({"datasets/d.yaml": content, "datasets/e.yaml": "name: e\n"}).diagnostics
    assert [(d.code, d.message) for d in found] == [
        ("UnknownKey", 'unknown key "extra" in a dataset'),
        ("UnknownKey", 'unknown key "resolver" in a dataset'),
        ("MissingKey", 'the key "id" is missing in a dataset'),
        ("MissingKey", 'the key "main_table" is missing in a dataset'),
    ]
    keys = "id, name, description, version, status, resolver_id, natural_key, may_be_empty, main_table, adjusts, checks"
    assert [d.hint for d in found[:2]] == [f"the keys of a dataset are {keys}", 'did you mean "resolver_id"?']


def test_a_mistyped_key_is_not_reported_as_missing_too(workspace_of: WorkspaceOf) -> None:
    content = f"idd: d\n{TABLE}"
    assert problems(workspace_of, "datasets/d.yaml", content) == [
        ("UnknownKey", 'unknown key "idd" in a dataset', 1, 1)
    ]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (f"id: d\nname: 2026\n{TABLE}", 'put it in quotes: "2026"'),
        (f'id: d\nversion: "2"\n{TABLE}', "remove the quotes"),
        (f"id: d\nstatus: Active\n{TABLE}", 'did you mean "active"?'),
        (f"id: d\nstatus: on\n{TABLE}", "`clew schema` prints what each key takes"),
        ("id: d\nmain_table: {name: t, columns: [{name: a, type: Strnig}]}", 'did you mean "string"?'),
        ("id: d\nmain_table: t", "write a mapping with the keys name, temporal_mode, columns"),
    ],
)
def test_a_wrong_value_comes_with_what_to_write(workspace_of: WorkspaceOf, content: str, hint: str) -> None:
    assert hints(workspace_of, "datasets/d.yaml", content) == [hint]


def test_column_names_are_unique_in_any_case(workspace_of: WorkspaceOf) -> None:
    content = "id: d\nmain_table:\n  name: t\n  columns:\n    - {name: Straße, type: string}\n"
    content += "    - {name: STRASSE, type: string}\n"
    assert problems(workspace_of, "datasets/d.yaml", content) == [
        ("DuplicateColumn", 'duplicate column "STRASSE"', 6, 14)
    ]


def test_the_natural_key_names_columns_once(workspace_of: WorkspaceOf) -> None:
    content = "id: d\nnatural_key: [A, amuont, a, _period]\nmain_table:\n  name: t\n  temporal_mode: period\n"
    content += "  columns: [{name: a, type: string}, {name: amount, type: integer}]\n"
    assert problems(workspace_of, "datasets/d.yaml", content) == [
        ("UnknownColumn", 'no column "amuont" in t', 2, 18),
        ("DuplicateColumn", 'duplicate column "a"', 2, 26),
    ]


@pytest.mark.parametrize(
    ("mode", "column", "code"),
    [
        ("none", "{name: _row_id, type: string}", "ReservedColumn"),
        ("none", "{name: _Deleted, type: boolean}", "ReservedColumn"),
        ("period", "{name: _trace_id, type: integer}", "ReservedColumn"),
        ("period", "{name: _labels, type: string}", "ReservedColumn"),
        ("none", "{name: _period, type: string}", "ReservedColumn"),
        ("bitemporal", "{name: _period, type: string}", "ReservedColumn"),
        ("period", "{name: _period_from, type: date}", "ReservedColumn"),
        ("period", "{name: _period, type: integer}", "InvalidValue"),
        ("bitemporal", "{name: _period_to, type: integer}", "InvalidValue"),
        ("period", "{name: _period, type: string}", None),
        ("bitemporal", "{name: _period_from, type: string}", None),
        ("none", "{name: _mine, type: string}", None),
    ],
)
def test_system_columns_are_declared_only_where_they_belong(
    workspace_of: WorkspaceOf, mode: str, column: str, code: str | None
) -> None:
    content = f"id: d\nmain_table:\n  name: t\n  temporal_mode: {mode}\n  columns: [{column}]\n"
    assert [found[0] for found in problems(workspace_of, "datasets/d.yaml", content)] == ([code] if code else [])


def test_an_operation_is_told_by_its_type(workspace_of: WorkspaceOf) -> None:
    content = (
        f"{PROJECT}  - {{seq: 1, name: a, type: updat}}\n  - {{seq: 2, name: b}}\n"
        "  - {tpye: delete, seq: 3, name: c}\n"
        "  - {seq: 4, name: d, type: 7}\n  - text\n  - {seq: 5, name: '', type: delete}\n"
        "  - {seq: 0, name: e, type: delete, arguments: {x: 1}}\n  - {use: publish}\n  - {use: {fragmnt: publish}}\n"
    )
    types = "update, aggregate, append, delete or output"
    found = workspace_of({"projects/p.yaml": content}).diagnostics
    assert [(d.message, d.span.line if d.span else None) for d in found] == [
        (f'expected {types} as the type of an operation; found the text "updat"', 4),
        ('the key "type" is missing in an operation', 5),
        ('unknown key "tpye" in an operation', 6),
        (f"expected {types} as the type of an operation; found the number 7", 7),
        ('expected an operation, found the text "text"', 8),
        ('expected a name without spaces around it, found the text ""', 9),
        ("expected a whole number from 1 to 999999999, found the number 0", 10),
        ('unknown key "x" in the arguments of a delete', 10),
        ('expected the fragment to use, found the text "publish"', 11),
        ('unknown key "fragmnt" in the fragment to use', 12),
    ]
    assert [d.hint for d in found[:3]] == ['did you mean "update"?', f"type is {types}", 'did you mean "type"?']


def test_the_arguments_of_each_type_are_checked(workspace_of: WorkspaceOf) -> None:
    content = (
        f"{PROJECT}  - {{seq: 1, name: a, type: update, arguments: {{assignments: []}}}}\n"
        "  - {seq: 2, name: b, type: update, arguments: {assignments: [{column: x, expression: }]}}\n"
        "  - {seq: 3, name: c, type: aggregate, arguments: {aggregations: [{column: x, expression: SUM(a)}]}}\n"
        "  - {seq: 4, name: d, type: append, arguments: {source: gl}}\n"
        "  - {seq: 5, name: e, type: output, arguments: {destination: {datasource_id: x}}}\n"
        "  - {seq: 6, name: f, type: output, arguments: {destination: {datasource_id: x, tabel: y}}}\n"
        "  - {seq: 7, name: g, type: update, selector: [a], arguments: {assignments: [{column: x, expression: 1}]}}\n"
        "  - {seq: 8, name: h, type: delete, selector: }\n  - {seq: 9, name: i, type: update}\n"
    )
    assert [found[1:3] for found in problems(workspace_of, "projects/p.yaml", content)] == [
        ("expected a list of assignments, at least 1; found 0", 4),
        ("expected an expression, found nothing", 5),
        ('the key "group_by" is missing in the arguments of an aggregate', 6),
        ('expected a reference to a dataset, found the text "gl"', 7),
        ('the key "path" is missing in a destination', 8),
        ('unknown key "tabel" in a table destination', 9),
        ("expected an expression, found a list", 10),
        ("expected an expression, found nothing", 11),
        ('the key "arguments" is missing in an update operation', 12),
    ]


def test_the_mode_of_an_output_stands_in_one_place(workspace_of: WorkspaceOf) -> None:
    content = (
        f"{PROJECT}  - seq: 1\n    name: a\n    type: output\n    arguments:\n      mode: append\n"
        "      destination: {location: {path: out}, mode: append}\n"
    )
    assert problems(workspace_of, "projects/p.yaml", content) == [
        ("InvalidValue", "the mode is set both in the destination and beside it", 8, 7)
    ]


@pytest.mark.parametrize(
    ("path", "offsets"),
    [
        ("../x", [0]),
        ("a/../../x", [0]),
        ("a\\..\\..\\x", [0]),
        ("a/../x", []),
        ("/absolute/..x/y", [0]),
        ("{perod}/x", [1]),
        ("x/{period}/{y}/{}", [12, 16]),
        ("x/{period", [3]),
        ("x}", [2]),
        ("{table}/{dataset}/{level}/{start_date}/{end_date}/{year}/{quarter}/{month}/{period}/*", []),
    ],
)
def test_paths_stay_in_their_folder_and_name_known_placeholders(
    workspace_of: WorkspaceOf, path: str, offsets: list[int]
) -> None:
    content = (
        f"{PROJECT}  - seq: 1\n    name: a\n    type: output\n    arguments:\n"
        f"      destination: {{location: {{path: '{path}'}}}}\n"
    )
    found = problems(workspace_of, "projects/p.yaml", content)
    assert [(code, line) for code, _, line, _ in found] == [("InvalidValue", 8)] * len(offsets)
    quote = len("      destination: {location: {path: '")
    assert [column - quote for *_, column in found] == offsets


def test_a_task_is_kept_whether_it_is_known_or_not(workspace_of: WorkspaceOf) -> None:
    content = (
        f"{PROJECT}  - seq: 1\n    name: a\n    type: delete\n    after_request:\n"
        "      - call_model: {name: m, depth: [1, {a: b}]}\n      - filter: amount > 0\n"
    )
    loaded = workspace_of({"projects/p.yaml": content})
    assert loaded.diagnostics == ()
    [operation] = loaded.workspace.projects[0].operations
    assert isinstance(operation, Delete)
    [job] = operation.after_request
    unknown, known = job.tasks
    assert isinstance(unknown, OtherTask)
    assert isinstance(known, FilterTaskDefinition)
    assert (unknown.name, unknown.arguments) == ("call_model", {"name": "m", "depth": (1, {"a": "b"})})
    assert (unknown.span.line, unknown.span.column) == (8, 9)
    assert known.expression.span(9, 10).column == 26
    assert job.place("tasks", 1).line == 9


def test_the_arguments_of_known_tasks_are_checked(workspace_of: WorkspaceOf) -> None:
    content = (
        f"{PROJECT}  - seq: 1\n    name: a\n    type: delete\n    after_request:\n      - take: many\n"
        "      - {take: 1, filter: a}\n      - sample: {row: 1}\n      - text\n      - {}\n      - project: []\n"
    )
    assert [found[1:3] for found in problems(workspace_of, "projects/p.yaml", content)] == [
        ('expected a whole number of at least 1, found the text "many"', 8),
        ("a task has one key, its name; this one has 2", 9),
        ('unknown key "row" in a sample task', 10),
        ('expected a task such as `take: 100`, found the text "text"', 11),
        ("a task has one key, its name; this one has 0", 12),
        ("expected a list of columns, at least 1; found 0", 13),
    ]


def test_settings_are_checked(workspace_of: WorkspaceOf) -> None:
    content = (
        "name: t\nenvironments:\n  prod:\n    mode: production\n    spark: {mster: x}\n    queue: {policy: reject}\n"
        "    captures: {modes: [all]}\n    storage_root: ../x\n    state_store_credential_ref: password\n"
    )
    assert [found[1:3] for found in problems(workspace_of, "clew.yaml", content)] == [
        ('expected dev or prod; found the text "production"', 4),
        ('unknown key "mster" in the Spark settings', 5),
        ('expected REJECT, QUEUE or DELAY; found the text "reject"', 6),
        ('expected stats, sample_raw, sample_view, full_raw or full_view; found the text "all"', 7),
        ('the path "../x" leads out of its folder by ".."', 8),
        ('expected a reference to a secret such as "secret://env/NAME", found the text "password"', 9),
    ]


def test_settings_fit_together(workspace_of: WorkspaceOf) -> None:
    content = (
        "name: t\ndefault_environment: prd\nenvironments:\n  prod:\n    bus:\n      - {id: a, type: webhook}\n"
        "      - {id: b, type: file}\n"
        "      - {id: c, type: openlineage}\n"
        "      - {id: d, type: openlineage, url: marquez/api}\n"
    )
    found = workspace_of({"clew.yaml": content}).diagnostics
    assert [(d.code, d.message) for d in found] == [
        ("UnknownEnvironment", 'no environment "prd"'),
        ("MissingKey", 'the key "url" is missing in an event bus of type webhook'),
        ("MissingKey", 'the key "path" is missing in an event bus of type file'),
        ("MissingKey", 'the key "url or path" is missing in an event bus of type openlineage'),
        ("InvalidValue", '"marquez/api" is not an http address'),
    ]
    assert found[0].hint == 'did you mean "prod"?'


def test_a_workspace_needs_an_environment_if_it_lists_any(workspace_of: WorkspaceOf) -> None:
    [(code, message, *_)] = problems(workspace_of, "clew.yaml", "name: t\nenvironments: {}\n")
    assert (code, message) == ("InvalidValue", "expected environments by name, at least 1; found 0")


@pytest.mark.parametrize(
    ("expectations", "message"),
    [
        (
            "expected_output: {rows: []}\nexpected_error: {code: TypeMismatch}\n",
            "a scenario has one of expected_output, expected_error",
        ),
        ("", 'the key "expected_output" is missing in a scenario'),
        (
            "expected_error: {code: TypeMismatch}\nexpected_trace: [{operation_seq: 1, change_type: updated}]\n",
            "a scenario that expects",
        ),
        ("expected_outputs: {}\n", "expected expected outputs by seq or name"),
    ],
)
def test_a_scenario_expects_one_thing(workspace_of: WorkspaceOf, expectations: str, message: str) -> None:
    content = (
        "name: s\nperiods: [{identifier: p, level: l, start_date: 2026-01-01, end_date: 2026-01-01}]\nperiod: p\n"
        f"project: {{input_dataset: d, operations: []}}\n{expectations}"
    )
    [(_, found, *_)] = problems(workspace_of, "scenarios/s.yaml", content)
    assert found.startswith(message)


def test_rows_of_a_scenario_stand_in_one_place_and_hold_single_values(workspace_of: WorkspaceOf) -> None:
    content = (
        "name: s\nperiods: [{identifier: p, level: l, start_date: 2026-01-01, end_date: 2026-01-01}]\nperiod: p\n"
        "project: {input_dataset: d, operations: []}\nexpected_output: {rows: []}\ndatasets:\n"
    )
    wrong = "  - {id: a}\n  - {id: b, rows: [], file: x.csv}\n"
    assert [found[1:3] for found in problems(workspace_of, "scenarios/s.yaml", content + wrong)] == [
        ('the key "rows" is missing in a dataset of a scenario', 7),
        ("the rows are given both here and in a file", 8),
    ]
    wrong = "  - {id: a, rows: [1, {x: [1]}, {x: 2026-13-01, y: 2}]}\n"
    assert [found[1:3] for found in problems(workspace_of, "scenarios/s.yaml", content + wrong)] == [
        ("expected a mapping of values by column, found the number 1", 7),
        ("expected a single value, found a list", 7),
        ("there is no date 2026-13-01", 7),
    ]


def test_a_list_of_many_mistakes_is_not_reported_without_end(workspace_of: WorkspaceOf) -> None:
    content = "id: d\nmain_table:\n  name: t\n  columns:\n" + "    - {nam: a, type: strng}\n" * 5000
    assert 100 < len(workspace_of({"datasets/d.yaml": content}).diagnostics) < 1000


def test_a_node_id_fits_into_a_trace_id(workspace_of: WorkspaceOf) -> None:
    assert LARGEST_NODE_ID == MAX_NODE_ID
    content = "name: w\nenvironments:\n  dev:\n    tracelink: {node_id: 1024}\n"
    assert problems(workspace_of, "clew.yaml", content) == [
        ("InvalidValue", "expected a whole number from 0 to 1023, found the number 1024", 4, 26)
    ]
