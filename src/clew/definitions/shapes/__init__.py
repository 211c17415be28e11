"""What a value in a file may be: how it is read into a Python value, and how JSON Schema describes it.

A file kind is declared once, as records whose keys have a shape and a sentence. Reading, messages and schemas follow
from that declaration. Shapes read nodes instead of plain data, so that every mistake is reported at its place.
"""

from clew.definitions.shapes.compound import ByKey, ListOf, MapOf, Record, Tagged, TextOr, items_of
from clew.definitions.shapes.located import Definition, JsonSchema, Located, Shape, key, problems_in, record, refused
from clew.definitions.shapes.scalars import (
    ANY_SCALAR,
    ANY_VALUE,
    COLUMN_TYPE,
    DAY,
    EXPRESSION,
    FLAG,
    NAME,
    PATH,
    SECRET,
    SELECTOR,
    SLUG,
    TEMPLATE,
    TEXT,
    Choice,
    ConstantShape,
    TextShape,
    Whole,
)

__all__ = [
    "ANY_SCALAR",
    "ANY_VALUE",
    "COLUMN_TYPE",
    "DAY",
    "EXPRESSION",
    "FLAG",
    "NAME",
    "PATH",
    "SECRET",
    "SELECTOR",
    "SLUG",
    "TEMPLATE",
    "TEXT",
    "ByKey",
    "Choice",
    "ConstantShape",
    "Definition",
    "JsonSchema",
    "ListOf",
    "Located",
    "MapOf",
    "Record",
    "Shape",
    "Tagged",
    "TextOr",
    "TextShape",
    "Whole",
    "items_of",
    "key",
    "problems_in",
    "record",
    "refused",
]
