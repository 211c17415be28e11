"""Exact conversions of loaded values to the types of a dataset, in SQL.

Strings follow the rules of the language (TO_INTEGER, TO_DECIMAL, TO_DATE), with one difference: digits beyond the scale
of a decimal are refused instead of rounded, since loading must not change what it loads. A string that has no meaning
in a type becomes NULL. For typed values, a table says which type of a file serves which type of a dataset. All kinds of
sources share one form of rows as read.
"""

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from clew.deferred import dataclass
from clew.engine.loading.lines import LineTotals
from clew.engine.sql import spark_type
from clew.engine.sql.literals import text_literal
from clew.lang.day_patterns import MONTHS
from clew.lang.moment_patterns import MomentPattern, moment_pattern
from clew.lang.types import Kind, Type
from clew.plan.file_rules import PLAIN, TextRules
from clew.storage.text_values import BLANKS

_INTEGER = r"^ *[+-]?[0-9]+ *\z"
_DOUBLE = r"^ *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *\z"
_TIMESTAMP = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?(?:Z|[+-][0-9]{2}(?::[0-9]{2})?)?)?\z"
)


def value_of_text(text: str, target: Type, rules: TextRules = PLAIN) -> str:
    """SQL for the value of a text, NULL where it is not one of the type."""
    if rules.formats and target.kind in {Kind.DATE, Kind.TIMESTAMP}:
        return moment_of_text(text, rules.formats, target)
    if rules.has_marks and target.kind in _NUMBERS:
        return _marked_number(text, target, rules)
    if target.kind is Kind.BOOLEAN and rules != PLAIN:
        return _word(text, rules)
    match target.kind:
        case Kind.STRING:
            return text
        case Kind.INTEGER:
            return _guarded(text, _INTEGER, f"try_cast({text} AS BIGINT)")
        case Kind.DECIMAL:
            return _guarded(text, _decimal_pattern(target.scale), f"try_cast({text} AS {spark_type(target)})")
        case Kind.DOUBLE:
            return _double(text)
        case Kind.BOOLEAN:
            return f"CASE lower({text}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"
        case Kind.DATE:
            return day_of_text(text)
        case Kind.TIMESTAMP:
            moment = f"CAST(try_cast({_with_seconds(text)} AS TIMESTAMP_LTZ) AS {spark_type(target)})"
            return f"CASE WHEN left({text}, 4) <> '0000' AND {text} RLIKE {text_literal(_TIMESTAMP)} THEN {moment} END"
        case Kind.NULL:
            raise ValueError("no column has the type null")


def _with_seconds(text: str) -> str:
    """SQL for a text with seconds before its zone: Spark does not read 10:20Z."""
    pattern, replacement = text_literal("^(.{16})(Z|[+-].*)$"), text_literal("$1:00$2")
    return f"regexp_replace({text}, {pattern}, {replacement})"


def day_of_text(text: str) -> str:
    """SQL for the day that a text YYYY-MM-DD means. Spark alone would take 2026-1-2 and 2026-01-02T10:00 too."""
    shape = (
        f"length({text}) = 10 AND substr({text}, 5, 1) = '-' AND substr({text}, 8, 1) = '-' "
        f"AND right({text}, 1) BETWEEN '0' AND '9' AND left({text}, 4) <> '0000'"
    )
    return f"CASE WHEN {shape} THEN try_cast({text} AS DATE) END"


def _word(text: str, rules: TextRules) -> str:
    true, false = (", ".join(map(text_literal, words)) for words in (rules.true_values, rules.false_values))
    return f"CASE WHEN lower({text}) IN ({true}) THEN TRUE WHEN lower({text}) IN ({false}) THEN FALSE END"


def _marked_number(text: str, target: Type, rules: TextRules) -> str:
    """Numbers with other marks: those of thousands stand between all groups of three digits, or there are none."""
    mark, group = (_in_pattern(each) for each in (rules.decimal_mark, rules.thousands_mark))
    whole = f"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})++|[0-9]++)" if group else "[0-9]++"
    plain = f"translate({text}, {text_literal(rules.decimal_mark + rules.thousands_mark)}, '.')"
    match target.kind:
        case Kind.INTEGER:
            return _guarded(text, rf"^ *[+-]?{whole} *\z", f"try_cast({plain} AS BIGINT)")
        case Kind.DECIMAL:
            zeros = rf"[0-9]{{0,{target.scale}}}0*"
            pattern = rf"^ *[+-]?(?:{whole}(?:{mark}{zeros})?|{mark}(?=[0-9]){zeros}) *\z"
            return _guarded(text, pattern, f"try_cast({plain} AS {spark_type(target)})")
        case _:
            pattern = rf"^ *[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)? *\z"
            number = f"try_cast({plain} AS DOUBLE)"
            finite = f"CASE WHEN abs({number}) < double('Infinity') THEN {number} END"
            words = f"WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN try_cast({text} AS DOUBLE)"
            return f"CASE WHEN {text} RLIKE {text_literal(pattern)} THEN {finite} {words} END"


def _in_pattern(mark: str) -> str:
    return "\\" + mark if mark and mark.isascii() and mark > " " else mark


def moment_of_text(text: str, formats: Sequence[str], target: Type) -> str:
    """SQL for the date or timestamp that a text of one of the patterns is; NULL where it is of none."""
    found = [_of_pattern(text, moment_pattern(each), target) for each in formats]
    return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _of_pattern(text: str, pattern: MomentPattern, target: Type) -> str:
    """The parts are put together as Spark reads them. Fixed widths need no regular expression."""
    if pattern.shape is not None:
        shape = f"translate({text}, '123456789', '000000000') = {text_literal(pattern.shape)}"
        found = {name: f"substr({text}, {start}, {width})" for name, (start, width) in pattern.starts.items()}
    else:
        whole = text_literal(rf"\A{pattern.regex}\z")
        shape = f"{text} RLIKE {whole}"
        found = {name: f"regexp_extract({text}, {whole}, {number})" for name, number in pattern.groups.items()}
    words = pattern.words
    year = f"concat('20', {found['year']})" if words["year"] == "yy" else found["year"]
    pieces = [year, "'-'", _two_digits(words["month"], found["month"]), "'-'", _two_digits(words["day"], found["day"])]
    if target.kind is Kind.TIMESTAMP:
        clock = [_two_digits(words[name], found[name]) if name in found else "'00'" for name in _CLOCK]
        pieces += ["' '", clock[0], "':'", clock[1], "':'", clock[2]]
        if "fraction" in found:
            pieces += ["'.'", found["fraction"]]
        value = f"try_cast(concat({', '.join(pieces)}) AS {spark_type(target)})"
    else:
        value = f"try_cast(concat({', '.join(pieces)}) AS DATE)"
    exists = "" if words["year"] == "yy" else f" AND {found['year']} <> '0000'"
    valid = _valid_clock(found) if pattern.has_time and target.kind is Kind.DATE else ""
    return f"CASE WHEN {shape}{exists}{valid} THEN {value} END"


_CLOCK = ("hour", "minute", "second")
_LAST = {"hour": 23, "minute": 59, "second": 59}


def _valid_clock(found: Mapping[str, str]) -> str:
    """A day with an impossible time is no day: SQL that goes on after a condition."""
    return "".join(f" AND try_cast({found[name]} AS INT) <= {_LAST[name]}" for name in _CLOCK if name in found)


def _two_digits(word: str, found: str) -> str:
    if word == "MMM":
        number = f"(locate(lower({found}), '{''.join(MONTHS).lower()}') + 2) DIV 3"
        return f"lpad(CAST({number} AS STRING), 2, '0')"
    return f"lpad({found}, 2, '0')" if len(word) == 1 else found


def _guarded(text: str, pattern: str, value: str) -> str:
    return f"CASE WHEN {text} RLIKE {text_literal(pattern)} THEN {value} END"


def _decimal_pattern(scale: int) -> str:
    """A number whose digits beyond the scale are all zeros."""
    return rf"^ *[+-]?(?:[0-9]+(?:\.[0-9]{{0,{scale}}}0*)?|\.(?=[0-9])[0-9]{{0,{scale}}}0*) *\z"


def _double(text: str) -> str:
    """Numbers too large for a double are refused; infinity must be written out."""
    number = f"try_cast({text} AS DOUBLE)"
    finite = f"CASE WHEN abs({number}) < double('Infinity') THEN {number} END"
    return (
        f"CASE WHEN {text} RLIKE {text_literal(_DOUBLE)} THEN {finite} "
        f"WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN {number} END"
    )


_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The integer types of Spark and how many digits each may have."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXTS = re.compile(r"string.*|varchar\(\d+\)|char\(\d+\)")
_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


def value_of_typed(value: str, source: str, target: Type) -> str:
    """SQL for a value of a Spark type as one of a dataset's type that it serves; NULL where it does not fit."""
    wanted = spark_type(target)
    if holds_all(source, target):
        return f"CAST({value} AS {wanted})"
    cast = f"try_cast({value} AS {wanted})"
    return f"CASE WHEN try_cast({cast} AS {source}) = {value} THEN {cast} END"


def serves(source: str, target: Type) -> bool:
    """Whether values of a Spark type can be values of a dataset's type at all."""
    match target.kind:
        case Kind.STRING:
            return _TEXTS.fullmatch(source) is not None
        case Kind.BOOLEAN:
            return source == "boolean"
        case Kind.DATE | Kind.TIMESTAMP:
            return source in {"date", "timestamp_ltz", "timestamp_ntz"}
        case kind:
            return kind in _NUMBERS and _is_number(source)


def _is_number(source: str) -> bool:
    return source in _WHOLE or source in {"float", "double"} or _DECIMAL.fullmatch(source) is not None


def holds_all(source: str, target: Type) -> bool:
    """Whether every value of the source type is one of the target."""
    match target.kind:
        case Kind.STRING | Kind.BOOLEAN | Kind.TIMESTAMP:
            return True
        case Kind.DATE:
            return source == "date"
        case Kind.INTEGER:
            return source in _WHOLE
        case Kind.DOUBLE:
            return source in {"tinyint", "smallint", "int", "float", "double"}
        case _:
            digits = _digits(source)
            return digits is not None and digits[0] <= target.precision - target.scale and digits[1] <= target.scale


def _digits(source: str) -> tuple[int, int] | None:
    """How many digits an exact number type has before and after the decimal point."""
    if source in _WHOLE:
        return _WHOLE[source], 0
    match = _DECIMAL.fullmatch(source)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None


BROKEN = "__broken"
"""The column with the reason why a line cannot be read, in words; NULL for good ones."""


@dataclass(frozen=True, slots=True)
class TextCell:
    """The value of a column as text."""

    sql: str
    """SQL over the rows as read; NULL where the text stands for no value."""
    rules: TextRules = PLAIN

    def value(self, raw: str, target: Type) -> str:
        """SQL for the value of what was read; NULL where the text does not have one."""
        value = value_of_text(raw, target, self.rules)
        return (
            value if self.rules.default is None else f"IF({raw} IS NULL, {default_value(self.rules, target)}, {value})"
        )


@dataclass(frozen=True, slots=True)
class TypedCell:
    """The value of a column in a type of Spark that can serve the dataset's."""

    sql: str
    type: str
    rules: TextRules = PLAIN

    def value(self, raw: str, target: Type) -> str:
        """SQL for the value of what was read; NULL where it does not fit."""
        value = value_of_typed(raw, self.type, target)
        return (
            value if self.rules.default is None else f"IF({raw} IS NULL, {default_value(self.rules, target)}, {value})"
        )


RawCell = TextCell | TypedCell


def text_cell(sql: str, rules: TextRules, *, empty_is_null: bool) -> TextCell:
    """The cell of a text: without blanks around it, where they do not count, and NULL where it stands for no value."""
    kept = f"trim(BOTH {text_literal(BLANKS)} FROM {sql})" if rules.trim else sql
    absent = [*rules.nulls, *([""] if empty_is_null and rules.trim and "" not in rules.nulls else [])]
    if absent:
        kept = f"IF({kept} IN ({', '.join(map(text_literal, absent))}), NULL, {kept})"
    return TextCell(kept, rules)


def default_value(rules: TextRules, target: Type) -> str:
    """SQL for the value of rows that have none."""
    text = text_literal(rules.default or "")
    return f"CAST({value_of_text(text, target)} AS {spark_type(target)})"


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows with `__source_file`, `__source_line`, `BROKEN`, and the columns that the cells read."""

    rows: DataFrame
    cells: Mapping[str, RawCell]
    """By column of the dataset."""
    expected: LineTotals | None = None
    """What a first pass over the lines counted."""
    record: str = "CAST(NULL AS STRING)"
    """SQL for what a broken row looks like in the file."""
    has_row_ids: bool = False
    """Whether rows have `__source_row_id` too, the id that their table gives them."""
