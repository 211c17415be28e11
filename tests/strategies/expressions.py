"""Well-typed expressions and rows for them, for tests that compare one reader of expressions with another."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import cache

from hypothesis import assume
from hypothesis import strategies as st

from clew.diagnostics import PlainText
from clew.lang import Expression, Scalar, Scope, Table, Type, Value, check, parse
from clew.lang.types import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, decimal

TABLE = "t"
JOINED = "fx"
COLUMNS: dict[str, Type] = {
    "i": INTEGER,
    "j": INTEGER,
    "amount": decimal(12, 2),
    "rate": decimal(18, 6),
    "wide": decimal(38, 18),
    "text": STRING,
    "größe": STRING,
    "flag": BOOLEAN,
    "day": DATE,
    "at": TIMESTAMP,
    "share": DOUBLE,
    "_period": STRING,
}
JOINED_COLUMNS: dict[str, Type] = {"fx rate": decimal(9, 5), "currency": STRING, "since": DATE, "_period": STRING}
SCOPE = Scope((Table(TABLE, COLUMNS), Table(JOINED, JOINED_COLUMNS)))

Texts = st.SearchStrategy[str]

_ALPHABET = st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs", "Cn", "Co"])
_WORDS = st.sampled_from(
    ["", "EUR", " a b ", "ß", "İstanbul", "ΟΔΟΣ", "名前", "naïve", "x\ty", "12", "-1.50", "2026-01-31", "😀!"]
)


def values(type_: Type) -> st.SearchStrategy[Value]:
    """Values of a type, NULL among them; doubles are finite."""
    return st.one_of(st.none(), st.none(), *[values_but_null(type_)] * 6)


def values_but_null(type_: Type) -> st.SearchStrategy[Value]:
    """Values of a type, mostly small ones, some at its edges."""
    match type_.kind:
        case Kind.INTEGER:
            return st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1))
        case Kind.DECIMAL:
            return _decimals(type_)
        case Kind.DOUBLE:
            return st.one_of(st.sampled_from([0.0, 1.5, -2.5, 1e10]), st.floats(allow_nan=False, allow_infinity=False))
        case Kind.STRING:
            return st.one_of(_WORDS, st.text(_ALPHABET, max_size=6))
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.DATE:
            return st.one_of(_days(), st.dates())
        case Kind.TIMESTAMP:
            return st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1))  # noqa: DTZ001
        case Kind.NULL:
            return st.none()


def _decimals(type_: Type) -> st.SearchStrategy[Value]:
    largest = 10**type_.precision - 1
    small = min(largest, 10 ** (type_.scale + 2))
    units = st.one_of(st.integers(-small, small), st.integers(-largest, largest))
    return units.map(
        lambda unit: Decimal(unit).scaleb(-type_.scale) if abs(unit) < 10**28 else _wide(unit, type_.scale)
    )


def _wide(unit: int, scale: int) -> Decimal:
    sign, digits = int(unit < 0), tuple(map(int, str(abs(unit))))
    return Decimal((sign, digits, -scale))


def _days() -> st.SearchStrategy[date]:
    ends = [date(2024, 2, 29), date(2023, 2, 28), date(2026, 1, 31), date(2000, 2, 29), date(1900, 3, 1)]
    return st.one_of(st.sampled_from(ends), st.dates(date(2020, 1, 1), date(2030, 12, 31)))


def rows() -> st.SearchStrategy[dict[str, dict[str, Value]]]:
    """The tables of one row: the working one and the joined one."""
    return st.fixed_dictionaries(
        {
            TABLE: st.fixed_dictionaries({name: values(type_) for name, type_ in COLUMNS.items()}),
            JOINED: st.fixed_dictionaries({name: values(type_) for name, type_ in JOINED_COLUMNS.items()}),
        }
    )


def expression_texts(*, depth: int = 3, doubles: bool = True) -> Texts:
    """Sources of well-typed expressions of any type; some have constant parts that are out of range."""
    return st.one_of(
        _numbers(depth, doubles), _texts(depth, doubles), _conditions(depth, doubles), _dates(depth, doubles)
    )


def condition_texts(*, depth: int = 3, doubles: bool = True) -> Texts:
    """Sources of conditions."""
    return _conditions(depth, doubles)


@st.composite
def expressions(draw: st.DrawFn, *, depth: int = 3, doubles: bool = True) -> Expression:
    """Typed expressions over `SCOPE`."""
    text = draw(expression_texts(depth=depth, doubles=doubles))
    expression = check(parse(PlainText(text)), SCOPE, Scalar("in a test")).expression
    assume(expression is not None)
    assert expression is not None
    return expression


def aggregation_texts(*, depth: int = 1, doubles: bool = True) -> Texts:
    """Sources of aggregations, grouped by `text`."""
    number = _numbers(depth, doubles)
    call = st.one_of(
        _apply("{}({})", st.sampled_from(["SUM", "AVG", "MIN_AGG", "MAX_AGG", "COUNT", "COUNT_DISTINCT"]), number),
        st.just("COUNT_ALL()"),
        _apply("{}({})", st.sampled_from(["MIN_AGG", "MAX_AGG", "COUNT_DISTINCT"]), _texts(depth, doubles)),
        _apply("{}({}, {})", st.sampled_from(["FIRST", "LAST"]), number, _texts(depth, doubles)),
        _apply("{}({}, day)", st.sampled_from(["FIRST", "LAST"]), _texts(depth, doubles)),
        _apply('STRING_AGG({}, "; ", {})', _texts(depth, doubles), number),
        _apply("PERCENTILE({}, {})", _numbers(depth, False), st.sampled_from(["0", "0.5", "0.333", "1"])),
        _apply("{}({})", st.sampled_from(["COUNT_IF"]), _conditions(depth, doubles)),
        _apply("SUM_IF({}, {})", number, _conditions(depth, doubles)),
        st.sampled_from(["MEDIAN(amount)", "VARIANCE(amount)", "STDDEV(i)", "WEIGHTED_AVG(amount, rate)"]),
    )
    counted = st.sampled_from(["COUNT_ALL()", "COUNT(amount)", "COUNT(text)"])
    return st.one_of(
        call,
        _apply("SUM({}) / {}", number, counted),
        _apply("COALESCE(SUM({}), 0)", number),
        _apply("IF({} > 1, text, NULL)", counted),
    )


def _apply(template: str, *parts: Texts) -> Texts:
    return st.tuples(*parts).map(lambda texts: template.format(*texts))


def _one_of(*operators: str) -> Texts:
    return st.sampled_from(operators)


def _with_depth(leaves: Texts, grown: Callable[[int], Texts], depth: int) -> Texts:
    return leaves if depth == 0 else st.one_of(leaves, grown(depth - 1), grown(depth - 1))


def _literal_of_number() -> Texts:
    return st.one_of(
        _one_of("0", "1", "2", "7", "10", "0.5", "1.50", "100.005", "12345678901234567890.5", "NULL"),
        st.integers(0, 10**9).map(str),
        st.decimals(0, 10**6, places=3).map(lambda value: f"{value:f}"),
    )


@cache
def _numbers(depth: int, doubles: bool) -> Texts:
    columns = ["i", "j", "amount", "rate", "wide", "t.amount", "fx.`fx rate`", *(["share"] if doubles else [])]
    return _with_depth(st.one_of(_one_of(*columns), _literal_of_number()), lambda d: _larger_numbers(d, doubles), depth)


def _larger_numbers(depth: int, doubles: bool) -> Texts:
    number = _numbers(depth, doubles)
    text, day, condition = _texts(depth, doubles), _dates(depth, doubles), _conditions(depth, doubles)
    return st.one_of(
        _apply("({} {} {})", number, _one_of("+", "-", "*", "/"), number),
        _apply("(-{})", number),
        _apply("{}({})", _one_of("ABS", "FLOOR", "CEIL", "ROUND"), number),
        _apply("ROUND({}, {})", number, _one_of("2", "0", "-1", "8")),
        _apply("MOD({}, {})", number, number),
        _apply("{}({}, {})", _one_of("MIN", "MAX", "COALESCE"), number, number),
        _apply("IF({}, {}, {})", condition, number, number),
        _apply("LEN({})", text),
        _apply("{}({})", _one_of("YEAR", "MONTH", "DAY"), st.one_of(day, st.just("at"))),
        _apply("DATEDIFF({}, {})", day, day),
        _apply("TO_DECIMAL({}, {})", number, _one_of("38, 6", "18, 2", "38, 0")),
        _apply("TO_INTEGER({})", number),
        _apply("ROUND({}, {}, {})", _numbers(depth, False), _one_of("2", "0", "-1"), _ROUNDINGS),
        _apply("{}({}, {})", _one_of("GREATEST", "LEAST", "NULLIF", "IFNULL"), number, number),
        _apply("CASE WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", condition, number, condition, number, number),
        _apply("SWITCH({}, {}, {}, {}, {})", text, text, number, text, number),
        _apply("SIGN({})", number),
        _apply("{}({})", _one_of("SQRT", "EXP", "LN"), number) if doubles else _apply("TRUNC({}, 1)", number),
        _apply("POWER({}, {})", number, number) if doubles else _apply("SIGN({})", number),
        _apply("FIND({}, {}, {})", text, text, _one_of("1", "2", "i")),
        _apply("WEEKDAY({})", day),
        _apply("DATEDIFF({}, {}, {})", day, day, _UNITS),
        _apply("TRY_TO_INTEGER({})", st.one_of(text, number)),
        _apply("TRY_TO_DECIMAL({}, {})", st.one_of(text, number), _one_of("38, 6", "5, 2")),
    )


_ROUNDINGS = _one_of('"half_up"', '"half_even"', '"up"', '"down"', '"floor"', '"ceiling"')
_UNITS = _one_of('"day"', '"week"', '"month"', '"quarter"', '"year"')
_PATTERNS = _one_of('"[a-zA-Z]+"', '"^.*[0-9]"', '"(-?)([0-9]+)"', '"[^a-z ]"', '"a|b|E"', '"\\s\\w$"')


@cache
def _texts(depth: int, doubles: bool) -> Texts:
    literals = _WORDS.map(lambda word: '"' + word.replace('"', '""') + '"')
    leaves = st.one_of(_one_of("text", "größe", "currency", "_period", "fx._period", "NULL"), literals)
    return _with_depth(leaves, lambda d: _larger_texts(d, doubles), depth)


def _larger_texts(depth: int, doubles: bool) -> Texts:
    text, number, condition = _texts(depth, doubles), _numbers(depth, False), _conditions(depth, doubles)
    counts = st.one_of(st.integers(0, 6).map(str), _one_of("i", "-1", "LEN(text)"))
    return st.one_of(
        _apply("CONCAT({}, {}, {})", text, text, text),
        _apply("{}({})", _one_of("UPPER", "LOWER", "TRIM"), text),
        _apply("{}({}, {})", _one_of("LEFT", "RIGHT"), text, counts),
        _apply("SUBSTRING({}, {}, {})", text, counts, counts),
        _apply("REPLACE({}, {}, {})", text, text, text),
        _apply("IF({}, {}, {})", condition, text, text),
        _apply("{}({}, {})", _one_of("MIN", "MAX", "COALESCE"), text, text),
        _apply("TO_STRING({})", st.one_of(number, condition, _dates(depth, doubles), st.just("at"))),
        _apply("TO_STRING({}, {})", number, _one_of('"0"', '"#,##0.00"', '"00000.0"')),
        _apply("TO_STRING({}, {})", st.one_of(_dates(depth, doubles), st.just("at")), _DAY_PATTERNS),
        _apply("SPLIT({}, {}, {})", text, text, _one_of("1", "2", "-1", "i")),
        _apply("{}({}, {}, {})", _one_of("LPAD", "RPAD"), text, counts, text),
        _apply("{}({})", _one_of("PROPER", "HASH"), text),
        _apply("REPEAT({}, {})", text, _one_of("0", "3", "-1")),
        _apply('UUID5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", {})', text),
        _apply("REGEX_EXTRACT({}, {})", text, _PATTERNS),
        _apply("REGEX_REPLACE({}, {}, {})", text, _PATTERNS, _one_of('""', '"<$0>1"', '"$$"')),
        _apply("{}({}, {})", _one_of("GREATEST", "LEAST", "NULLIF"), text, text),
        _apply("CASE {} WHEN {} THEN {} ELSE {} END", text, text, text, text),
    )


_DAY_PATTERNS = _one_of('"dd.MM.yyyy"', '"d/M/yy"', '"yyyyMMdd HH:mm:ss"', '"dd-MMM-yyyy"')


@cache
def _dates(depth: int, doubles: bool) -> Texts:
    literals = _days().map(lambda day: f'DATE("{day.isoformat()}")')
    leaves = st.one_of(_one_of("day", "since", "TODAY()", "NULL"), literals)
    return _with_depth(leaves, lambda d: _larger_dates(d, doubles), depth)


def _larger_dates(depth: int, doubles: bool) -> Texts:
    day, condition = _dates(depth, doubles), _conditions(depth, doubles)
    return st.one_of(
        _apply("DATEADD({}, {})", day, st.one_of(st.integers(-400, 400).map(str), st.just("i"))),
        _apply("DATE(2024, {}, {})", st.integers(1, 12).map(str), st.integers(1, 28).map(str)),
        _apply("IF({}, {}, {})", condition, day, day),
        _apply("{}({}, {})", _one_of("MIN", "MAX", "COALESCE"), day, day),
        _apply("TO_DATE({})", st.one_of(day, st.just("at"))),
        _apply("TO_DATE(TO_STRING({}))", day),
        _apply('TO_DATE(TO_STRING({}, "d-MMM-yyyy"), "d-MMM-yyyy")', day),
        _apply("TRY_TO_DATE({})", _texts(depth, doubles)),
        _apply('TRY_TO_DATE({}, "yyyy-MM-dd")', _texts(depth, doubles)),
        _apply("EOMONTH({}, {})", day, st.one_of(st.integers(-30, 30).map(str), st.just("i"))),
        _apply("EDATE({}, {})", day, st.one_of(st.integers(-30, 30).map(str), st.just("i"))),
        _apply("DATE_TRUNC({}, {})", _UNITS, day),
        _apply("WORKDAY({}, {}, {})", day, st.integers(-40, 40).map(str), day),
    )


@cache
def _conditions(depth: int, doubles: bool) -> Texts:
    leaves = _one_of("flag", "t.flag", "TRUE", "FALSE", "NULL")
    return _with_depth(leaves, lambda d: _larger_conditions(d, doubles), depth)


def _larger_conditions(depth: int, doubles: bool) -> Texts:
    condition, number = _conditions(depth, doubles), _numbers(depth, doubles)
    text, day = _texts(depth, doubles), _dates(depth, doubles)
    compare = _one_of("=", "<>", "<", "<=", ">", ">=")
    return st.one_of(
        *(_apply("({} {} {})", operand, compare, operand) for operand in (number, text, day)),
        _apply("({} {} {})", day, compare, st.just("at")),
        _apply("({} {} {} {} {})", condition, _one_of("AND", "OR"), condition, _one_of("AND", "OR"), condition),
        _apply("(NOT {})", condition),
        _apply("({} {})", st.one_of(number, text, day, condition), _one_of("IS NULL", "IS NOT NULL")),
        *(
            _apply("({} {} ({}, {}))", operand, _one_of("IN", "NOT IN"), operand, operand)
            for operand in (number, text, day)
        ),
        _apply("{}({}, {})", _one_of("CONTAINS", "STARTSWITH", "ENDSWITH"), text, text),
        _apply("IF({}, {}, {})", condition, condition, condition),
        *(_apply("({} BETWEEN {} AND {})", operand, operand, operand) for operand in (number, text, day)),
        _apply("({} {} {})", text, _one_of("LIKE", "NOT LIKE"), _one_of('"%a%"', '"_%1_"', '"E!%" ESCAPE "!"', '"%"')),
        _apply("REGEX_MATCH({}, {})", text, _PATTERNS),
    )
