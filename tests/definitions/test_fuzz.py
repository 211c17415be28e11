"""Whatever stands in a file, loading ends with definitions and diagnostics, never with another error."""

import tempfile
from contextlib import suppress
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.definitions import KINDS, load_workspace, project_from_data, schema_of
from clew.diagnostics import UserError, render
from tests.tiers import examples

SAMPLES = Path(__file__).parent / "every_key"
FILES = sorted(path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*.yaml"))


def load_with(file: str, content: bytes) -> None:
    """Load the sample workspace with other content in one file, and look at all that comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in FILES:
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if name == file else (SAMPLES / name).read_bytes())
        loaded = load_workspace(root)
    for diagnostic in loaded.diagnostics:
        assert diagnostic.span is not None
        assert render(diagnostic, loaded.source_of)
        text = loaded.source_of(diagnostic.span.file)
        if text is not None:
            lines = text.splitlines() or [""]
            assert diagnostic.span.line <= len(lines) + 1
    repr(loaded.workspace)
    hash(loaded.workspace.projects)


YAML_PIECES = st.sampled_from(
    [
        *"\n\n\n  --::::{}[],'\"|>&*!#?%@`~\t\\",
        ": ",
        "- ",
        "\n  ",
        "\n    ",
        "&a ",
        "*a",
        "<<: ",
        "---\n",
        "id: ",
        "name: x",
        "2026-02-30",
        "1e999",
        "{{x}}",
        "\r\n",
        "\u2028",
        "\ufeff",
        "é",
    ]
)


@settings(max_examples=examples(60), deadline=None)
@given(file=st.sampled_from(FILES), content=st.binary(max_size=200))
def test_any_bytes(file: str, content: bytes) -> None:
    load_with(file, content)


@settings(max_examples=examples(100), deadline=None)
@given(file=st.sampled_from(FILES), pieces=st.lists(YAML_PIECES, max_size=30))
def test_any_text_made_of_what_yaml_is_made_of(file: str, pieces: list[str]) -> None:
    load_with(file, "".join(pieces).encode())


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_any_change_to_a_file(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    content = (SAMPLES / file).read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 20))
        piece = data.draw(st.one_of(YAML_PIECES, st.text(max_size=5)))
        content = content[:start] + piece + content[start + length :]
    load_with(file, content.encode("utf-8", "surrogatepass"))


KEYS = sorted({name for kind in KINDS for name in str(schema_of(kind)).split("'") if name.isidentifier()})
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    st.text(max_size=10),
    st.sampled_from(["update", "output", "delete", "append", "files", "path", "table", "2026-01", "any", "period"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=3)), inner, max_size=5),
    ),
    max_leaves=20,
)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_any_value_in_place_of_another(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    content = yaml.load((SAMPLES / file).read_text(), Loader=yaml.CSafeLoader)
    holder = content
    while True:
        steps = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        step = data.draw(st.sampled_from(steps))
        if not isinstance(holder[step], dict | list) or not holder[step] or data.draw(st.integers(0, 3)) == 0:
            break
        holder = holder[step]
    holder[step] = data.draw(VALUES.map(_dumpable))
    load_with(file, yaml.dump(content, allow_unicode=True).encode("utf-8", "surrogatepass"))


def _dumpable(value: object) -> object:
    """Decimals as their text, since YAML itself has none."""
    match value:
        case dict():
            return {key: _dumpable(item) for key, item in value.items()}
        case list():
            return [_dumpable(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=3)), VALUES, max_size=8))
def test_any_data_as_a_project(data: dict[str, object]) -> None:
    with suppress(UserError):
        project_from_data({"id": "p", "input_dataset": "d", "operations": [], **data}, "notebook")
