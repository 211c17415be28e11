"""What is not YAML, or not the YAML that a workspace takes, is said in plain words at the right place."""

from collections.abc import Callable, Mapping

import pytest

from clew.definitions import LoadedWorkspace
from clew.diagnostics import Diagnostic

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]


def only_problem(workspace_of: WorkspaceOf, content: str | bytes) -> tuple[str, str, int, int]:
    [diagnostic] = workspace_of({"datasets/d.yaml": content}).diagnostics
    return where(diagnostic)


def where(diagnostic: Diagnostic) -> tuple[str, str, int, int]:
    assert diagnostic.span is not None
    assert diagnostic.span.file == "datasets/d.yaml"
    return diagnostic.code, diagnostic.message, diagnostic.span.line, diagnostic.span.column


INDENTATION = "this line does not fit the indentation of the lines before it"


@pytest.mark.parametrize(
    ("content", "problem", "line", "column"),
    [
        ("id: d\n<<<<<<< HEAD\nx: 1\n=======\nx: 2\n>>>>>>> b\n", "a merge left a conflict marker in this line", 2, 1),
        ("id: d\nx:\n\ty: 1\n", "a tab cannot indent a line", 3, 1),
        ("id: d\n\tx: 1\n", "a tab cannot indent a line", 2, 1),
        ("id: d\nname: 'x\ny: 1\n", "this quote is never closed", 2, 7),
        ('id: "d\n', "this quote is never closed", 1, 5),
        ("id: d\nname: a: b\n", '":" is not expected here', 2, 8),
        ("a:\n  b: 1\n c: 2\n", INDENTATION, 3, 2),
        ("- a\nb: 1\n", INDENTATION, 2, 1),
        ("a: 'x' y\n", "this is not expected here", 1, 8),
        ("a: [b]]\n", "this is not expected here", 1, 7),
        ("a: [1, 2\nb: 3\n", '"," or "]" is missing before this place', 2, 2),
        ("a: {x: 1\n", 'this "{" is never closed', 1, 4),
        ("a: @x\n", 'a value cannot start with "@"', 1, 4),
        ("a: * b\n", 'a value cannot start with "*" or "&"', 1, 5),
        ('a: "\\q"\n', "a backslash in double quotes must start an escape that YAML knows", 1, 5),
        ("a: - b\n", "a list cannot start here", 1, 4),
        ("a: ]\n", "a value is expected here", 1, 4),
        ("a: | x\n", "text cannot follow | or >", 1, 6),
        ("a: 1\n---\nb: 2\n", "a second document starts here; a file holds one", 2, 1),
        ("a: 1\n...\nb: 2\n", "the document has ended before this line", 3, 1),
        ("%YAML 3.0\n---\na: 1\n", "this version of YAML cannot be read", 1, 1),
        ("a: *x\n", 'there is no anchor "&x" above', 1, 4),
        ("a: &x [*x]\n", '"*x" is inside the value that it repeats', 1, 8),
        ("a: !!python/object:os.system x\n", 'tags such as "!!python/object:os.system" are not allowed', 1, 4),
        ("a: !!str 5\n", 'tags such as "!!str" are not allowed', 1, 4),
        ("a: !mine {b: 1}\n", 'tags such as "!mine" are not allowed', 1, 4),
        ("a: !un!known x\n", "tags are not allowed", 1, 4),
        ("? [a]\n: b\n", "a key cannot be a list or a mapping", 1, 3),
        ("a: {{x}}\n", '"{{" starts a mapping in YAML', 1, 4),
        ("<<: {a: 1}\n", '"<<" does not merge mappings here', 1, 1),
        ("a: \x01\n", "the character U+0001 is not allowed in a file", 1, 4),
        ("a: 1\nb: " + "[" * 200, "nested more than 100 levels deep", 2, 103),
        ("".join(f"{' ' * n}b:\n" for n in range(200)), "nested more than 100 levels deep", 101, 101),
    ],
)
def test_what_is_not_yaml_is_a_syntax_error(
    workspace_of: WorkspaceOf, content: str, problem: str, line: int, column: int
) -> None:
    assert only_problem(workspace_of, content) == ("SyntaxError", problem, line, column)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty; it should define a dataset"),
        ("# nothing yet\n", "the file is empty; it should define a dataset"),
        ("---\n", "expected a dataset, found nothing"),
        ("- a\n", "expected a dataset, found a list"),
        ("text\n", 'expected a dataset, found the text "text"'),
        ("42\n", "expected a dataset, found the number 42"),
        ("null\n", "expected a dataset, found nothing"),
    ],
)
def test_a_file_that_holds_no_mapping_is_refused(workspace_of: WorkspaceOf, content: str, problem: str) -> None:
    code, message, *_ = only_problem(workspace_of, content)
    assert (code, message) == ("InvalidValue", problem)


def test_every_key_that_stands_again_is_reported_with_the_line_of_the_first(workspace_of: WorkspaceOf) -> None:
    content = 'id: d\nmain_table: {name: t, columns: [{name: a, type: string}]}\n"id": e\nname: n\nid: f\n'
    found = [where(diagnostic) for diagnostic in workspace_of({"datasets/d.yaml": content}).diagnostics]
    message = 'duplicate key "id"; first used in line 1'
    assert found == [("DuplicateKey", message, 3, 1), ("DuplicateKey", message, 5, 1)]


def test_aliases_stand_for_the_value_of_their_anchor(workspace_of: WorkspaceOf) -> None:
    content = "id: d\nnatural_key: &k [a, b]\nmain_table:\n  name: &t t\n  columns:\n"
    content += "    - &c {name: a, type: &s string}\n    - {name: b, type: *s, description: *t}\n"
    loaded = workspace_of({"datasets/d.yaml": content})
    assert loaded.diagnostics == ()
    [dataset] = loaded.workspace.datasets
    assert [str(column.type) for column in dataset.main_table.columns] == ["string", "string"]
    assert dataset.main_table.columns[1].description == "t"


def test_what_is_wrong_with_an_aliased_value_is_reported_once_where_it_is_written(workspace_of: WorkspaceOf) -> None:
    content = "id: d\nmain_table:\n  name: t\n  columns:\n    - {name: a, type: &s strng}\n    - {name: b, type: *s}\n"
    assert only_problem(workspace_of, content)[2:] == (5, 26)


def test_a_small_file_cannot_expand_into_a_large_one(workspace_of: WorkspaceOf) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    code, message, line, _ = only_problem(workspace_of, "\n".join(lines))
    assert (code, message, line) == ("SyntaxError", "aliases repeat more than 100000 values", 5)


def test_aliases_cannot_nest_deeper_than_written_values(workspace_of: WorkspaceOf) -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))]
    code, message, *_ = only_problem(workspace_of, "\n".join(lines))
    assert (code, message) == ("SyntaxError", "nested more than 100 levels deep")


def test_a_byte_order_mark_does_not_shift_columns(workspace_of: WorkspaceOf) -> None:
    content = "\ufeffidd: d\n".encode() + b"main_table: {name: t, columns: [{name: a, type: string}]}\n"
    assert only_problem(workspace_of, content) == ("UnknownKey", 'unknown key "idd" in a dataset', 1, 1)


def test_lines_are_counted_with_any_line_ending(workspace_of: WorkspaceOf) -> None:
    content = "id: d\r\nname: n\r\nversion: x\r\nmain_table: {name: t, columns: [{name: a, type: string}]}\r\n"
    assert only_problem(workspace_of, content)[2:] == (3, 10)


def test_columns_count_characters_not_bytes(workspace_of: WorkspaceOf) -> None:
    line = "main_table: {name: 'ü😀', columns: [{name: é, type: strng}]}"
    assert only_problem(workspace_of, f"id: d\n{line}\n")[2:] == (2, line.index("strng") + 1)
