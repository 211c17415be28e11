"""Functions that find, cut, fill up and identify text in Spark SQL."""

from clew.engine.sql.call import Entries, SqlCall, SqlOf, binding, literal_of, repeating, whole_constant
from clew.engine.sql.literals import literal, text_literal
from clew.engine.sql.text import TOO_LONG, in_case
from clew.lang.functions.text import MOST_CHARACTERS
from clew.lang.functions.text_parts import NO_LETTERS, namespace_of

_VARIANTS = "translate({}, '0123456789abcdef', '89ab89ab89ab89ab')"


def _find(call: SqlCall) -> str:
    text, part, *start = call.arguments
    if not start:
        return f"CAST(locate({part}, {text}) AS BIGINT)"
    return repeating(_find_from, *call.arguments)


def _find_from(text: str, part: str, start: str) -> str:
    """Spark finds an empty part at the very start, wherever it begins to look."""
    first = f"greatest({start}, 1L)"
    found = f"CAST(locate({part}, {text}, CAST({first} AS INT)) AS BIGINT)"
    unknown = " OR ".join(f"{each} IS NULL" for each in (text, part, start))
    beyond = f"{start} > char_length({text}) + 1L"
    is_empty = f"char_length({part}) = 0"
    return f"CASE WHEN {unknown} THEN NULL WHEN {beyond} THEN 0L WHEN {is_empty} THEN {first} ELSE {found} END"


def _split(call: SqlCall) -> str:
    return repeating(_part, *call.arguments)


def _part(text: str, separator: str, number: str) -> str:
    """Spark gives an empty text for a part that does not exist, and fails for the number 0."""
    without = f"char_length(replace({text}, {separator}, ''))"
    count = f"((char_length({text}) - {without}) DIV greatest(char_length({separator}), 1) + 1L)"
    exists = f"{number} <> 0L AND {number} <= {count} AND {number} >= -{count}"
    return f"IF({exists}, split_part({text}, {separator}, CAST({number} AS INT)), NULL)"


def _padded(function: str) -> SqlOf:
    def body(text: str, length: str, fill: str) -> str:
        unknown = " OR ".join(f"{each} IS NULL" for each in (text, length, fill))
        too_long = f"{length} > {MOST_CHARACTERS}L"
        padded = f"{function}({text}, CAST(greatest({length}, 0L) AS INT), {fill})"
        return f"CASE WHEN {unknown} THEN NULL WHEN {too_long} THEN {TOO_LONG} ELSE {padded} END"

    def sql_of(call: SqlCall) -> str:
        return repeating(body, *call.arguments, *(["' '"] if len(call.arguments) < 3 else []))

    return sql_of


def _proper(call: SqlCall) -> str:
    """The characters one by one, each with the one before it."""
    others = text_literal(NO_LETTERS)

    def body(letters: str) -> str:
        begins = f"i = 0 OR instr({others}, element_at({letters}, i)) > 0"
        return f"array_join(transform({letters}, (c, i) -> IF({begins}, {in_case('upper', 'c')}, c)), '')"

    return binding(body, f"split({in_case('lower', call.arguments[0])}, '')")


def _repeat(call: SqlCall) -> str:
    count = whole_constant(call.apply.arguments[1])
    if count is not None and count <= 1:
        return f"repeat({call.arguments[0]}, {max(count, 0)})"
    return repeating(_repeated, *call.arguments)


def _repeated(text: str, count: str) -> str:
    length = f"CAST(char_length({text}) AS DECIMAL(20,0)) * CAST({count} AS DECIMAL(20,0))"
    none = f"{text} = '' OR {count} < 0L"
    times = f"CAST(CASE WHEN {count} IS NULL THEN NULL WHEN {none} THEN 0L ELSE {count} END AS INT)"
    return f"IF({length} > {MOST_CHARACTERS}, {TOO_LONG}, repeat({text}, {times}))"


def _uuid5(call: SqlCall) -> str:
    namespace = literal_of(call.apply.arguments[0])
    if namespace is None:
        return literal(None, call.type)
    space = namespace_of(str(namespace))
    digest = f"sha1(concat(unhex('{space.hex if space else ''}'), CAST({call.arguments[1]} AS BINARY)))"
    return repeating(_written_uuid, digest)


def _written_uuid(digest: str) -> str:
    """The digest with the version and the variant in place of some of its bits."""

    def cut(start: int, count: int) -> str:
        return f"substring({digest}, {start}, {count})"

    fourth = f"concat({_VARIANTS.format(cut(17, 1))}, {cut(18, 3)})"
    return f"concat({cut(1, 8)}, '-', {cut(9, 4)}, '-5', {cut(14, 3)}, '-', {fourth}, '-', {cut(21, 12)})"


TEXT_PARTS: Entries = {
    "FIND": _find,
    "SPLIT": _split,
    "LPAD": _padded("lpad"),
    "RPAD": _padded("rpad"),
    "PROPER": _proper,
    "REPEAT": _repeat,
    "HASH": lambda call: f"sha2({call.arguments[0]}, 256)",
    "UUID5": _uuid5,
}
