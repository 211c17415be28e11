"""Writes docs/reference/keys.md: every key of every file that users write, from the declarations of the files.

Run it with `make docs`. A test fails if the page is out of date.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.definitions.schemas import SCHEMA_PLACES, schema_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "keys.md"

NOTE = "<!-- Written by `make docs` from the declarations in the code. Change those, then run it again. -->"

Schema = Mapping[str, Any]

_LONGEST_CHOICE = 12


def main() -> None:
    """Write the page."""
    PAGE.write_text(keys_page(), encoding="utf-8", newline="\n")


def keys_page() -> str:
    """Every kind of file with its keys, then the keys of everything inside of files, once each."""
    documents = {kind: schema_of(kind) for kind in SCHEMA_PLACES}
    inner = dict[str, Schema]()
    for document in documents.values():
        inner |= document["$defs"]  # type: ignore[call-overload]
    members = {
        kind: [_name(each) for each in document["oneOf"]]  # type: ignore[attr-defined]
        for kind, document in documents.items()
        if "oneOf" in document
    }
    links = {name: f"[{heading}](#{_anchor(heading)})" for name in inner for heading in [_heading(name, inner)]}
    about = (
        "Every key of every file of a workspace. [workspace.md](../workspace.md) explains them with examples; "
        "`clew schema KIND` prints the same as JSON Schema, for editors. Unknown keys are errors."
    )
    parts = [
        "# Keys of YAML files",
        NOTE,
        about,
        "## Files",
        "\n".join(f"- [{kind}](#{kind}): {SCHEMA_PLACES[kind]}" for kind in documents),
    ]
    for kind, document in documents.items():
        parts.append(f"### {kind}")
        if kind in members:
            parts.append(f"One of: {', '.join(links[name] for name in members[kind])}.")
        else:
            parts.append(str(document["description"]))
            parts.append(_keys(document, links))
    parts.append("## Parts of files")
    for name in sorted(inner, key=lambda each: _heading(each, inner)):
        parts += [f"### {_heading(name, inner)}", str(inner[name].get("description", ""))]
        if inner[name].get("properties"):
            parts.append(_keys(inner[name], links))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(name: str, inner: Mapping[str, Schema]) -> str:
    """What a part is called: its title, with the name of its declaration where others are called the same."""
    title = str(inner[name].get("title", name)).removeprefix("the ")
    alike = [other for other in inner if str(inner[other].get("title", other)).removeprefix("the ") == title]
    return title if len(alike) == 1 and title not in SCHEMA_PLACES else f"{title} ({name})"


def _anchor(heading: str) -> str:
    kept = "".join(ch for ch in heading.lower() if ch.isalnum() or ch in " -_")
    return kept.replace(" ", "-")


def _keys(schema: Schema, links: Mapping[str, str]) -> str:
    head = ["| key | takes | default | what it is |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *_rows(schema, links, "")])


def _rows(schema: Schema, links: Mapping[str, str], before: str) -> Iterator[str]:
    """A row for each key, followed by those of mappings that have no name of their own."""
    required = schema.get("required", ())
    for name, each in schema["properties"].items():
        takes = _escaped(" or ".join(dict.fromkeys(_takes(each, links))))
        default = "required" if name in required and not before else _default(each)
        yield f"| `{before}{name}` | {takes} | {default} | {_escaped(str(each.get('description', '')))} |"
        for suffix, inner in _nameless(each):
            yield from _rows(inner, links, f"{before}{name}{suffix}.")


def _nameless(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Mappings inside of a value that are written out in place, with what stands behind the key to get there."""
    if "properties" in schema:
        yield "", schema
    for each in schema.get("oneOf", schema.get("anyOf")) or ():
        yield from _nameless(each)
    if schema.get("type") == "array":
        yield from (("[]" + suffix, inner) for suffix, inner in _nameless(schema["items"]))


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if default is None or default in ("", []):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _takes(schema: Schema, links: Mapping[str, str]) -> Iterator[str]:
    """What a value may be, in words: one item for each alternative."""
    if "$ref" in schema:
        yield links[_name(schema)]
    elif "oneOf" in schema or "anyOf" in schema:
        for each in schema.get("oneOf", schema.get("anyOf")) or ():
            yield from _takes(each, links)
    elif "const" in schema:
        yield f"`{schema['const']}`"
    elif "enum" in schema:
        yield _choices(schema["enum"])
    elif schema.get("type") == "array":
        yield f"a list of {' or '.join(dict.fromkeys(_takes(schema['items'], links)))}"
    elif schema.get("type") == "object":
        yield from _mapping(schema, links)
    else:
        yield _single(schema)


def _mapping(schema: Schema, links: Mapping[str, str]) -> Iterator[str]:
    free = schema.get("additionalProperties")
    if schema.get("properties"):
        yield "a mapping with the keys below"
    elif isinstance(free, Mapping):
        yield f"a mapping of names to {' or '.join(dict.fromkeys(_takes(free, links)))}"
    else:
        yield "an empty mapping" if free is False else "a mapping"


def _choices(values: list[object]) -> str:
    if set(values) == {True, False, "true", "false"}:
        return "true or false"
    shown = [f"`{value}`" for value in values[:_LONGEST_CHOICE]]
    return ", ".join(shown) + (", ..." if len(values) > _LONGEST_CHOICE else "")


_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


def _single(schema: Schema) -> str:
    type_ = schema.get("type")
    if isinstance(type_, list):
        is_expression = set(type_) == {"string", "number", "boolean"}
        return "an expression or a value" if is_expression else " or ".join(_WORDS[each] for each in type_)
    if type_ is None:
        return "any value"
    if schema.get("format") == "date":
        return "a date"
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f"{_WORDS[type_]}, {least} to {most}"
    return f"{_WORDS[type_]}, at least {least}" if least is not None else _WORDS[type_]


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    main()
