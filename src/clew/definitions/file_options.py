"""The options of file formats: which there are, what they take, and what they mean.

Options of a format that Clew reads itself are all listed here, so that a typo is an error. Those of other formats are
handed to Spark's connector, which alone knows them.
"""

import codecs
from collections.abc import Iterator, Mapping
from typing import Literal

from clew.deferred import dataclass
from clew.definitions.nodes import MapNode, Node
from clew.definitions.option_maps import OptionMap
from clew.definitions.shapes import ANY_SCALAR, JsonSchema
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic, Span, did_you_mean
from clew.diagnostics.codes.workspace import INVALID_VALUE, UNKNOWN_KEY

Takes = Literal["flag", "text", "character", "marks", "count", "encoding", "compression", "number"]

COMPRESSIONS = ("none", "gzip", "bz2", "xz", "zstd", "zip")

_SCHEMAS: Mapping[Takes, JsonSchema] = {
    "flag": {"type": ["boolean", "string"], "enum": [True, False, "true", "false"]},
    "text": {"type": ["string", "number", "boolean", "null"]},
    "character": {"type": "string", "maxLength": 1},
    "marks": {"type": "string", "minLength": 1},
    "count": {"type": "integer", "minimum": 0},
    "encoding": {"type": "string"},
    "compression": {"enum": list(COMPRESSIONS)},
    "number": {"type": ["integer", "string"]},
}


@dataclass(frozen=True, slots=True)
class FileOption:
    """An option of one or more formats."""

    name: str
    takes: Takes
    formats: tuple[str, ...]
    description: str


_TEXT_FORMATS = ("csv", "fixed_width", "jsonl")

FILE_OPTIONS = (
    FileOption(
        "header", "flag", ("csv", "xlsx"), "Whether the first row has the names of the columns; true by default."
    ),
    FileOption("delimiter", "marks", ("csv",), "What separates fields; a comma by default, \\t for a tab."),
    FileOption("sep", "marks", ("csv",), "The same as delimiter."),
    FileOption("quote", "character", ("csv",), 'What fields with delimiters stand between; " by default, "" for none.'),
    FileOption("escape", "character", ("csv",), "What stands before a quote inside of quotes; the quote by default."),
    FileOption("multiline", "flag", ("csv",), "Whether fields in quotes may have line breaks; false by default."),
    FileOption("null_value", "text", ("csv",), "The text that stands for no value; an empty field is then empty text."),
    FileOption("comment", "character", ("csv", "fixed_width"), "Lines that begin with this character are left out."),
    FileOption(
        "skip_lines", "count", ("csv", "fixed_width", "xlsx"), "How many lines or rows before the header are left out."
    ),
    FileOption("encoding", "encoding", _TEXT_FORMATS, "The encoding of the text; UTF-8 by default."),
    FileOption("compression", "compression", _TEXT_FORMATS, "How the file is compressed; by default its suffix tells."),
    FileOption("sheet", "text", ("xlsx",), "The name of the sheet; by default the first one."),
    FileOption(
        "ignoreLeadingWhiteSpace", "flag", ("csv",), "Whether blanks before fields without quotes are left out."
    ),
    FileOption(
        "ignoreTrailingWhiteSpace", "flag", ("csv",), "Whether blanks after fields without quotes are left out."
    ),
    FileOption(
        "charToEscapeQuoteEscaping", "character", ("csv",), "What stands before an escape that is meant itself."
    ),
    FileOption(
        "unescapedQuoteHandling", "text", ("csv",), "What Spark does with quotes inside of fields that are not escaped."
    ),
    FileOption("maxColumns", "number", ("csv",), "The most fields that a record may have; 20480 by default."),
)
"""All options of the formats that Clew reads itself."""

OWN_FORMATS = ("csv", "jsonl", "fixed_width", "xlsx", "parquet")
"""Formats whose options are all known."""
TEXT_FORMATS = ("csv", "jsonl", "fixed_width", "xlsx")
"""Formats whose values are read from texts, by the rules of the columns."""


def own_format(format_: str) -> str:
    """One name for a format that has two."""
    return "jsonl" if format_ == "json" else format_


def options_for(format_: str) -> dict[str, FileOption]:
    """The options that a format has, by name."""
    return {option.name: option for option in FILE_OPTIONS if own_format(format_) in option.formats}


def problems_of_options(format_: str, options: Mapping[str, Scalar], node: Node) -> Iterator[Diagnostic]:
    """Unknown options of a format, and values that they do not take."""
    if own_format(format_) not in OWN_FORMATS:
        return
    known = options_for(format_)
    entries = node.entries if isinstance(node, MapNode) else {}
    for name, value in options.items():
        entry = entries.get(name)
        option = known.get(name)
        if option is None:
            place = entry.key.span if entry is not None else node.span
            yield UNKNOWN_KEY.at(place, key=name, where=f" in the options of {format_}", hint=_meant(name, format_))
            continue
        problem = _refused(option, value)
        if problem is not None:
            yield INVALID_VALUE.at(_value_place(node, name), problem=f"{name}: {problem[0]}", hint=problem[1])


def _value_place(node: Node, name: str) -> Span:
    entry = node.entries.get(name) if isinstance(node, MapNode) else None
    return entry.value.span if entry is not None else node.span


def _meant(name: str, format_: str) -> str:
    known = options_for(format_)
    others = [option for option in FILE_OPTIONS if option.name == name]
    if others:
        return f"{name} is an option of {' and '.join(others[0].formats)}"
    listed = f"the options of {format_} are {', '.join(known)}" if known else f"{format_} has no options: remove it"
    return did_you_mean(name, known) or _other_words(name) or listed


_OTHER_WORDS = {
    "skiprows": "skip_lines", "skip": "skip_lines", "skip_rows": "skip_lines", "nullvalue": "null_value",
    "na_values": "nulls", "null_values": "nulls", "dateformat": "format", "date_format": "format",
    "timestampformat": "format", "decimal": "decimal_mark", "thousands": "thousands_mark", "charset": "encoding",
    "separator": "delimiter", "quotechar": "quote", "escapechar": "escape", "sheet_name": "sheet", "trim": "trim",
    "nulls": "nulls", "decimal_mark": "decimal_mark", "thousands_mark": "thousands_mark", "format": "format",
}  # fmt: skip
"""What other tools call it."""
_OF_VALUES = frozenset({"nulls", "format", "decimal_mark", "thousands_mark", "trim"})


def _other_words(name: str) -> str | None:
    meant = _OTHER_WORDS.get(name.lower())
    if meant is None:
        return None
    return (
        f"write {meant} under `values` or `columns` of the strategy" if meant in _OF_VALUES else f"it is called {meant}"
    )


def _refused(option: FileOption, value: Scalar) -> tuple[str, str] | None:
    """Why an option does not take a value, and what to write; None where it does."""
    match option.takes:
        case "flag" if str(value).lower() not in {"true", "false"}:
            return f"expected true or false; found {value}", "write true or false"
        case "character" if not isinstance(value, str) or len(value) > 1:
            return f'expected one character; found "{value}"', "write one character in quotes"
        case "marks" if not isinstance(value, str) or not value:
            return "expected the text between two fields", "write for example ;"
        case "count" if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return f"expected how many; found {value}", "write a whole number"
        case "number" if not str(value).lstrip("-").isdigit():
            return f"expected a number; found {value}", "write a whole number"
        case "compression" if value not in COMPRESSIONS:
            return f'no compression "{value}"', f"write {', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}"
        case "encoding" if not _is_encoding(value):
            return f'no encoding "{value}"', "write for example UTF-8, ISO-8859-1 or windows-1252"
        case _:
            return None


def _is_encoding(value: Scalar) -> bool:
    """Whether bytes become text by it. Python calls other things a codec too, such as base64 and rot13."""
    try:
        return isinstance(value, str) and isinstance(codecs.getincrementaldecoder(value)().decode(b"", True), str)
    except (LookupError, UnicodeError, TypeError, ValueError):
        return False


class FileOptions(OptionMap):
    """Options of a file format; which, its format decides."""

    def schema(self, _definitions: dict[str, JsonSchema]) -> JsonSchema:
        """All options of formats that Clew reads itself; others may be those of Spark's connectors."""
        described = {
            option.name: {
                **_SCHEMAS[option.takes],
                "description": f"{option.description} For {', '.join(option.formats)}.",
            }
            for option in FILE_OPTIONS
        }
        return {
            "type": "object",
            "properties": described,
            "additionalProperties": ANY_SCALAR.own_schema,
        }


FILE_OPTION_MAP = FileOptions(ANY_SCALAR, "options")
