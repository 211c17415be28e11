"""The JSON Schema of each file kind, made from its declaration, for editors that complete and check."""

from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.workspace import UNKNOWN_KIND
from clew.model.kinds import FILE_KINDS
from clew.model.shapes import JsonSchema, Record

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: str) -> JsonSchema:
    """The JSON Schema of a file kind. UserError where there is no such kind."""
    file_kind = FILE_KINDS.get(kind)
    if file_kind is None:
        hint = did_you_mean(kind, FILE_KINDS) or f"the kinds are {', '.join(FILE_KINDS)}"
        raise UserError(UNKNOWN_KIND.anywhere(name=kind, hint=hint))
    definitions: dict[str, JsonSchema] = {}
    shape = file_kind.shape
    own = shape.own_schema(definitions) if isinstance(shape, Record) else shape.schema(definitions)
    where = f"{file_kind.folder}/*.yaml" if file_kind.folder else "clew.yaml"
    title: JsonSchema = {"$schema": DIALECT, "title": f"Clew {kind} ({where})"}
    return title | {name: part for name, part in own.items() if name != "title"} | {"$defs": definitions}
