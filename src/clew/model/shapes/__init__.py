"""What a value in a file may be: how it is read into a Python value, and how it is described in JSON Schema.

A file kind is declared once, as records whose keys have a shape and a sentence. Reading, messages and schemas come from
that declaration. Shapes read nodes rather than plain data, so that whatever is wrong is reported where it stands.
"""

from clew.model.shapes.collections import ListOf, MapOf, items_of
from clew.model.shapes.located import Definition, Located, key, problems_in, record
from clew.model.shapes.records import Record
from clew.model.shapes.scalars import (
    ANY_SCALAR,
    ANY_VALUE,
    COLUMN_TYPE,
    DAY,
    EXPRESSION,
    FLAG,
    NAME,
    PATH,
    SECRET,
    SLUG,
    TEMPLATE,
    TEXT,
    Choice,
    Constant,
    Text,
    Whole,
)
from clew.model.shapes.shape import JsonSchema, Shape, refused
from clew.model.shapes.unions import ByKey, Tagged, TextOr

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
    "SLUG",
    "TEMPLATE",
    "TEXT",
    "ByKey",
    "Choice",
    "Constant",
    "Definition",
    "JsonSchema",
    "ListOf",
    "Located",
    "MapOf",
    "Record",
    "Shape",
    "Tagged",
    "Text",
    "TextOr",
    "Whole",
    "items_of",
    "key",
    "problems_in",
    "record",
    "refused",
]
