"""CSV: options, headers, and lines as fields."""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import BinaryIO

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.files import SourceFile
from clew.engine.loading.lines import LINE, LinesBefore, LineTotals
from clew.engine.loading.sources import NOT_UTF8, unavailable
from clew.engine.sql.literals import text_literal
from clew.plan.resolution import ResolvedSource
from clew.storage.compression import decompressed
from clew.storage.csv_records import opened_records

FIELDS = "__fields"

CORRUPT = "__corrupt"
_ABSENT = "\ue000nothing\ue001"
"""Marks an empty field without quotes, which Spark would otherwise confuse with the null value."""
_OWN_OPTIONS = frozenset(
    {
        *("header", "delimiter", "sep", "quote", "escape", "encoding", "null_value", "multiline", "comment"),
        *("skip_lines", "compression"),
    }
)
_LINES_LOOKED_AT = 1000
_UPPER_HALF = bytes(range(128, 256))
_LATIN_1 = "ISO-8859-1"
_KNOWN_TO_SPARK = {
    "utf-8": "UTF-8",
    "ascii": "US-ASCII",
    "iso8859-1": _LATIN_1,
    "utf-16": "UTF-16",
    "utf-32": "UTF-32",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
}
"""Encodings that Spark 4 reads, by Python's names for them. It refuses all others, and all other spellings."""


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How a CSV file is written."""

    has_header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    encoding: str = "utf-8"
    null_value: str = ""
    is_multiline: bool = False
    comment: str = ""
    skip_lines: int = 0
    others: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options that Spark's parser knows."""
    given: Mapping[str, str] = field(default_factory=dict, hash=False)
    """All of them, as they are written in the rule."""

    @classmethod
    def of(cls, source: ResolvedSource) -> "CsvOptions":
        """The options of a source."""
        given = source.options
        quote = given.get("quote", '"')
        try:
            encoding = codecs.lookup(given.get("encoding", "UTF-8")).name
        except LookupError:
            problem = f'the rule "{source.rule}" names the encoding "{given["encoding"]}", which is unknown'
            raise unavailable(problem, "write for example UTF-8, ISO-8859-1 or windows-1252") from None
        return cls(
            has_header=given.get("header", "true").lower() == "true",
            delimiter=given.get("delimiter", given.get("sep", ",")).replace("\\t", "\t"),
            quote=quote,
            escape=given.get("escape", quote),
            encoding="utf-8" if encoding == "utf-8-sig" else encoding,
            null_value=given.get("null_value", ""),
            is_multiline=given.get("multiline", "false").lower() == "true",
            comment=given.get("comment", ""),
            skip_lines=int(given.get("skip_lines", "0")),
            others={name: value for name, value in given.items() if name not in _OWN_OPTIONS},
            given=given,
        )

    def for_spark(self) -> dict[str, str]:
        """The options of Spark's parser."""
        return {
            **self.others,
            "sep": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "nullValue": _ABSENT if self.null_value else "",
            "emptyValue": "",
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": CORRUPT,
            "maxCharsPerColumn": "-1",
        }

    def without_absent(self, value: str) -> str:
        """SQL for a field with the null value taken for what it means."""
        if not self.null_value:
            return value
        return f"nullif(coalesce({value}, ''), {text_literal(self.null_value)})"


@dataclass(frozen=True, slots=True)
class Heading:
    """The fields of a file's first line that counts, which is the header where there is one."""

    fields: tuple[str, ...]
    before: LinesBefore
    """What stands before the rows, the header among it."""


def heading_of(spark: SparkSession, file: SourceFile, options: CsvOptions) -> Heading | None:
    """The first line of a file, or its first record; None where it has none."""
    if options.is_multiline and (known := _first_record(file, options)) is not None:
        return known
    before = LinesBefore()
    for number, text in enumerate(_first_lines(spark, file, options), start=1):
        counts = is_counted(text, options.comment)
        is_first = counts and number > options.skip_lines
        if number <= options.skip_lines or (is_first and options.has_header):
            before = LinesBefore(number, before.totals + LineTotals(int(counts), number if counts else 0))
        if is_first:
            return Heading(tuple(_split(text, options)), before)
    return None


def lines_before(spark: SparkSession, file: SourceFile, options: CsvOptions) -> LinesBefore:
    """The skipped lines of a file without a header."""
    before = LinesBefore()
    for number, text in enumerate(islice(_first_lines(spark, file, options), options.skip_lines), start=1):
        counts = is_counted(text, options.comment)
        before = LinesBefore(number, before.totals + LineTotals(int(counts), number if counts else 0))
    return before


def is_counted(line: str, comment: str) -> bool:
    """Whether a line is neither blank nor a comment."""
    return bool(line.strip(" ")) and not (comment and line.startswith(comment))


def _first_lines(spark: SparkSession, file: SourceFile, options: CsvOptions) -> Iterator[str]:
    most = options.skip_lines + _LINES_LOOKED_AT
    try:
        with decompressed(file, options.given.get("compression")) as stream:
            for number, line in enumerate(islice(universal_lines(stream), most)):
                text = line.decode(options.encoding, errors="replace")
                yield text if number else text.removeprefix("\ufeff")
    except OutOfReach:
        raise
    except OSError as error:
        raise unavailable(f"cannot read {file.shown}: {error.strerror or error}") from None
    except ValueError:  # compressed in a way that only Spark reads
        rows = spark.read.text(file.literal_path).select(F.expr("CAST(value AS BINARY) AS line")).limit(most)
        yield from (bytes(row["line"]).decode(options.encoding, errors="replace") for row in rows.collect())


def _first_record(file: SourceFile, options: CsvOptions) -> Heading | None:
    """None also where records can only be read by Spark; its lines are then all that is known."""
    try:
        with opened_records(file, options.given) as records:
            first = next(records, None)
    except (OSError, ValueError, LookupError, csv.Error):
        return None
    return None if first is None else Heading(tuple(first.fields), LinesBefore(first.line + first.lines - 1))


def universal_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines as Spark ends them: at \\n, \\r\\n and \\r."""
    while line := stream.readline(1 << 20):
        pieces = re.split(rb"\r\n|\r|\n", line)
        yield from pieces[:-1] if pieces[-1] == b"" else pieces


def _split(text: str, options: CsvOptions) -> list[str]:
    if len(options.delimiter) > 1:
        return [name.strip(options.quote) for name in text.split(options.delimiter)]
    if not options.quote:
        return text.split(options.delimiter)
    return next(csv.reader([text], delimiter=options.delimiter, quotechar=options.quote))


def decoded(options: CsvOptions, source: ResolvedSource) -> str:
    """SQL for a line as text. Spark reads bytes; those of a one-byte encoding are turned into their characters."""
    if options.encoding in {"utf-8", "ascii"}:
        return LINE
    latin = f"decode(CAST({LINE} AS BINARY), '{_LATIN_1}')"
    if options.encoding == "iso8859-1":
        return latin
    if not is_one_byte(options.encoding):
        problem = f'lines in the encoding "{options.encoding}" cannot be read (rule "{source.rule}")'
        raise unavailable(problem, "save the file as UTF-8")
    return _translated(latin, options.encoding)


def encoding_of_records(options: CsvOptions, source: ResolvedSource) -> str:
    """The encoding in which Spark reads records of several lines; fields of other one-byte encodings are `recoded`."""
    if options.encoding in _KNOWN_TO_SPARK:
        return _KNOWN_TO_SPARK[options.encoding]
    if not is_one_byte(options.encoding):
        problem = f'records in the encoding "{options.encoding}" cannot be read (rule "{source.rule}")'
        raise unavailable(problem, "save the file as UTF-8")
    return _LATIN_1


def recoded(field_: str, options: CsvOptions) -> str:
    """SQL for a field that was read as if it were ISO-8859-1, in the encoding that it has."""
    return field_ if options.encoding in _KNOWN_TO_SPARK else _translated(field_, options.encoding)


def is_one_byte(encoding: str) -> bool:
    """Whether every byte is a character, the lower half those of ASCII."""
    ascii_ = bytes(range(128))
    try:
        characters = _UPPER_HALF.decode(encoding, errors="replace")
        return len(characters) == len(_UPPER_HALF) and ascii_.decode(encoding) == ascii_.decode("ascii")
    except UnicodeError:
        return False


def _translated(latin: str, encoding: str) -> str:
    targets = _UPPER_HALF.decode(encoding, errors="replace")
    changed = [(chr(byte), target) for byte, target in zip(_UPPER_HALF, targets, strict=True) if chr(byte) != target]
    froms, tos = ("".join(characters) for characters in zip(*changed, strict=True))
    return f"translate({latin}, {text_literal(froms)}, {text_literal(tos)})"


def schema_of(fields: int) -> str:
    """Fields f0, f1, ... as texts, and the record itself where it does not have so many."""
    return ", ".join([*(f"f{position} STRING" for position in range(fields)), f"{CORRUPT} STRING"])


def parsed(options: CsvOptions, fields: int) -> Column:
    """The fields of a line as a struct."""
    return F.from_csv(F.col(LINE), schema_of(fields), options.for_spark())


def line_breaks(fields: int) -> str:
    """SQL for how many line breaks there are inside a record."""
    values = ", ".join(f"f{position}" for position in range(fields))
    return rf"regexp_count(concat_ws(',', {values}), '\\r\\n|\\r|\\n')"


def is_whole() -> str:
    """SQL for whether a record has as many fields as it should; its fields are then all of it."""
    return f"{CORRUPT} IS NULL"


def broken_record(fields: int) -> str:
    """SQL for why a record is broken."""
    return f"CASE WHEN {FIELDS}.{CORRUPT} IS NOT NULL THEN {_wrong_count(fields)} END"


def _wrong_count(fields: int) -> str:
    return f"'it does not have {fields} {'field' if fields == 1 else 'fields'}'"


def undecodable(options: CsvOptions) -> str:
    """SQL for why a line is not text; NULL where it is."""
    if options.encoding in {"utf-8", "ascii"}:
        return f"CASE WHEN NOT is_valid_utf8({LINE}) THEN '{NOT_UTF8}' END"
    return "CAST(NULL AS STRING)"


def broken(options: CsvOptions, fields: int) -> str:
    """SQL for why a line is broken."""
    cases = list[str]()
    if options.encoding in {"utf-8", "ascii"}:
        cases.append(f"WHEN NOT is_valid_utf8({LINE}) THEN '{NOT_UTF8}'")
    if options.quote:
        quoted_line = f"contains({LINE}, {text_literal(options.quote)})"
        shape = text_literal(_well_quoted(options))
        cases.append(
            f"WHEN {quoted_line} AND NOT ({LINE} RLIKE {shape}) THEN 'a quote is not closed, or text follows it'"
        )
    cases.append(f"WHEN {FIELDS}.{CORRUPT} IS NOT NULL THEN {_wrong_count(fields)}")
    return f"CASE {' '.join(cases)} END"


def _well_quoted(options: CsvOptions) -> str:
    """A line in which every field that starts with a quote ends with one.

    All repetitions are possessive: Java's expressions would otherwise recurse once for each and overflow the stack.
    """
    quote, escape, delimiter = (re.escape(text) for text in (options.quote, options.escape, options.delimiter))
    pair = rf"{escape}." if options.escape != options.quote else f"{quote}{quote}"
    plain = f"[^{_in_class(options.quote + options.escape)}]*+"
    in_quotes = f"{quote}{plain}(?:{pair}{plain})*+{quote}"
    other = f"[^{_in_class(options.delimiter)}]*+" if len(options.delimiter) == 1 else f"(?:(?!{delimiter}).)*+"
    one = f"(?:{in_quotes}|(?!{quote}){other})"
    return f"(?s)\\A{one}(?:{delimiter}{one})*+\\z"


def _in_class(characters: str) -> str:
    return "".join(f"\\{char}" if not char.isalnum() and char.isascii() else char for char in dict.fromkeys(characters))
