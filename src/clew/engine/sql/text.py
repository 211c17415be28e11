"""Functions on strings in Spark SQL. Spark counts code points too, but with 32 bits and from the end where negative."""

from clew.engine.sql.call import Entries, SqlCall, calling, repeating, whole_constant
from clew.engine.sql.literals import text_literal
from clew.lang.functions.text import MOST_CHARACTERS, PAIRS_OF_UNICODE_17, TEXT_TOO_LONG
from clew.lang.typed import Constant

_LONGEST = 2**31 - 1
TOO_LONG = f"raise_error('{TEXT_TOO_LONG}')"


def _concat(call: SqlCall) -> str:
    """The bytes of a text are known, its characters have to be counted: few are, since few texts have so many bytes."""
    if len(call.arguments) == 1:
        return call.arguments[0]
    return repeating(_short_concat, *call.arguments)


def _short_concat(*texts: str) -> str:
    size, length = (" + ".join(f"CAST({of}({text}) AS BIGINT)" for text in texts) for of in _SIZE_AND_LENGTH)
    too_long = f"{size} > {MOST_CHARACTERS}L AND {length} > {MOST_CHARACTERS}L"
    return f"IF({too_long}, {TOO_LONG}, concat({', '.join(texts)}))"


_SIZE_AND_LENGTH = ("octet_length", "char_length")


def _replace(call: SqlCall) -> str:
    part, replacement = call.apply.arguments[1:]
    match part, replacement:
        case Constant(str(old)), Constant(str(new)) if len(new) <= len(old):
            return f"replace({', '.join(call.arguments)})"
        case _:
            return repeating(_short_replace, *call.arguments)


def _short_replace(text: str, part: str, replacement: str) -> str:
    """How often the part occurs is counted only where the text could grow too long."""
    growth = f"(CAST(char_length({replacement}) AS BIGINT) - char_length({part}))"
    longest = f"CAST(octet_length({text}) AS BIGINT) * (1L + greatest({growth}, 0L))"
    without = f"char_length(replace({text}, {part}, ''))"
    occurs = f"((char_length({text}) - {without}) DIV greatest(char_length({part}), 1))"
    length = f"char_length({text}) + {occurs} * {growth}"
    grows = f"char_length({part}) > 0 AND {growth} > 0L"
    too_long = f"{longest} > {MOST_CHARACTERS}L AND {grows} AND {length} > {MOST_CHARACTERS}L"
    return f"IF({too_long}, {TOO_LONG}, replace({text}, {part}, {replacement}))"


def _left(call: SqlCall) -> str:
    return f"substring({call.arguments[0]}, 1, {_count(call, 1)})"


def _right(call: SqlCall) -> str:
    """A length as well as a start, so that a count of 0 gives no characters rather than all."""
    text, count = call.arguments[0], _count(call, 1)
    if count.isdigit():
        return f"substring({text}, -{count}, {count})"
    return repeating(lambda text, count: f"substring({text}, -{count}, {count})", text, count)


def _substring(call: SqlCall) -> str:
    start, count = map(whole_constant, call.apply.arguments[1:])
    if start is not None and count is not None:
        position, length = min(max(start, 1), _LONGEST), count if start >= 1 else start - 1 + count
        return f"substring({call.arguments[0]}, {position}, {_bounded(length)})"
    return repeating(_substring_of_any, *call.arguments)


def _substring_of_any(text: str, start: str, count: str) -> str:
    """No sum here can leave 64 bits, whatever start and count are."""
    position = f"CASE WHEN {start} < 1L THEN 1 WHEN {start} > {_LONGEST}L THEN {_LONGEST} ELSE CAST({start} AS INT) END"
    eaten = _clamped(f"({start} + ({count} - 1L))")
    length = f"CASE WHEN {count} <= 0L THEN 0 WHEN {start} < 1L THEN {eaten} ELSE {_clamped(count)} END"
    return f"substring({text}, {position}, {length})"


def _count(call: SqlCall, index: int) -> str:
    constant = whole_constant(call.apply.arguments[index])
    return repeating(_clamped, call.arguments[index]) if constant is None else str(_bounded(constant))


def _bounded(count: int) -> int:
    return min(max(count, 0), _LONGEST)


def _clamped(count: str) -> str:
    return f"CASE WHEN {count} < 0L THEN 0 WHEN {count} > {_LONGEST}L THEN {_LONGEST} ELSE CAST({count} AS INT) END"


_UPPER_LETTERS, _LOWER_LETTERS = (
    text_literal("".join(letters)) for letters in (PAIRS_OF_UNICODE_17.keys(), PAIRS_OF_UNICODE_17.values())
)


_CASES = {"upper": (_LOWER_LETTERS, _UPPER_LETTERS), "lower": (_UPPER_LETTERS, _LOWER_LETTERS)}


def in_case(function: str, text: str) -> str:
    """Upper or lower case, with the letters that only newer versions of Spark know. Few texts can have one of them."""
    old, new = _CASES[function]

    def sql(text: str) -> str:
        is_ascii = f"octet_length({text}) = char_length({text})"
        return f"IF({is_ascii}, {function}({text}), translate({function}({text}), {old}, {new}))"

    return repeating(sql, text)


TEXT: Entries = {
    "CONCAT": _concat,
    "UPPER": lambda call: in_case("upper", call.arguments[0]),
    "LOWER": lambda call: in_case("lower", call.arguments[0]),
    "TRIM": calling("trim"),
    "LEFT": _left,
    "RIGHT": _right,
    "LEN": lambda call: f"CAST(char_length({call.arguments[0]}) AS BIGINT)",
    "CONTAINS": calling("contains"),
    "STARTSWITH": calling("startswith"),
    "ENDSWITH": calling("endswith"),
    "REPLACE": _replace,
    "SUBSTRING": _substring,
}
