"""The JSON Schema of each file kind, made from its declaration, for editors that complete and check."""

from collections.abc import Mapping

from clew.definitions.capture_requests import CaptureFile
from clew.definitions.kinds import FILE_KINDS, WORKSPACE_FILE
from clew.definitions.shapes import JsonSchema, Record, Shape
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.workspace import UNKNOWN_KIND

DIALECT = "https://json-schema.org/draft/2020-12/schema"


CAPTURES = "captures"
"""Files of captures can be anywhere."""

SCHEMA_PLACES: Mapping[str, str] = {
    **{name: f"{kind.folder}/*.yaml" if kind.folder else WORKSPACE_FILE for name, kind in FILE_KINDS.items()},
    CAPTURES: "the file of `clew run --captures`",
}
"""The kinds of files that have a schema, with where their files are."""


def schema_of(kind: str) -> JsonSchema:
    """The JSON Schema of a kind of file. UserError if there is no such kind."""
    if kind not in SCHEMA_PLACES:
        hint = did_you_mean(kind, SCHEMA_PLACES) or f"the kinds are {', '.join(SCHEMA_PLACES)}"
        raise UserError(UNKNOWN_KIND.anywhere(name=kind, hint=hint))
    definitions: dict[str, JsonSchema] = {}
    shape: Shape[object] = Record(CaptureFile) if kind == CAPTURES else FILE_KINDS[kind].shape
    own = shape.own_schema(definitions) if isinstance(shape, Record) else shape.schema(definitions)
    title: JsonSchema = {"$schema": DIALECT, "title": f"Clew {kind} ({SCHEMA_PLACES[kind]})"}
    return title | {name: part for name, part in own.items() if name != "title"} | {"$defs": definitions}
