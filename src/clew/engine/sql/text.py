"""Functions on strings in Spark SQL. Spark counts code points too, but with 32 bits and from the end where negative."""

from clew.engine.sql.call import Entries, SqlCall, calling, repeating, whole_constant

_LONGEST = 2**31 - 1


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


TEXT: Entries = {
    "CONCAT": calling("concat"),
    "UPPER": calling("upper"),
    "LOWER": calling("lower"),
    "TRIM": calling("trim"),
    "LEFT": _left,
    "RIGHT": _right,
    "LEN": lambda call: f"CAST(char_length({call.arguments[0]}) AS BIGINT)",
    "CONTAINS": calling("contains"),
    "STARTSWITH": calling("startswith"),
    "ENDSWITH": calling("endswith"),
    "REPLACE": calling("replace"),
    "SUBSTRING": _substring,
}
