"""Values of expressions as SQL, as far as DuckDB certainly computes what the Python evaluator does.

Exact numbers, texts, days and truth values; doubles and timestamps, quotients and patterns are left to the evaluator.
Some functions agree for most values only, such as UPPER for texts in ASCII. Whoever can ask the evaluator about single
rows gives a list of doubts: it gets conditions that are true for the rows about which DuckDB may be wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.lang.arithmetic import HALF_UP
from clew.lang.evaluation import Row, evaluator
from clew.lang.functions.text import MOST_CHARACTERS
from clew.lang.typed import Apply, ColumnValue, Convert, Expression, Value, columns_of
from clew.lang.types import MAX_PRECISION, Kind, Type
from clew.trace.prefilter import ColumnSql, bound, translated
from clew.trace.sql import Sql, joined, sql_type

_ORDERED = frozenset({Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.DATE})
_EXACT = _ORDERED | {Kind.BOOLEAN}
_MOST_CHARACTERS_IN_SQL = 20_000
"""Some functions name an argument more than once; a text that grows longer is left to the evaluator."""
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_MOST_DAYS = 4_000_000
_MOST_PRECISION_OF_REMAINDER = 36

Doubts = list[Sql]
"""Conditions on rows, each TRUE, FALSE or NULL; NULL counts as no doubt."""

CallSql = Callable[[Apply], Sql | None]
"""The SQL of a call that is not a function of one row; None if there is none."""


def exact_value(
    expression: Expression,
    column: ColumnSql,
    today: date,
    *,
    doubts: Doubts | None = None,
    aggregate: CallSql = lambda _call: None,
) -> Sql | None:
    """SQL with the value that an expression has for a row; None if that is not certain.

    Where the evaluator would report a value that does not fit, the query fails, or the row is among the doubts.
    `aggregate` gives the values of calls over a group.
    """
    translation = _Translation(column, today, doubts, aggregate)
    found = translation.value(expression)
    if found is None or len(found.text) > _MOST_CHARACTERS_IN_SQL:
        return None
    return found


@dataclass(frozen=True, slots=True)
class _Translation:
    column: ColumnSql
    today: date
    doubts: Doubts | None
    aggregate: CallSql

    def value(self, expression: Expression) -> Sql | None:
        if expression.type.kind not in _EXACT:
            return None
        if isinstance(expression, ColumnValue):
            return self.column(expression)
        if isinstance(expression, Apply) and (found := self.aggregate(expression)) is not None:
            return found
        if not columns_of(expression):
            return self._constant(expression)
        if expression.type.kind is Kind.BOOLEAN and (found := translated(expression, self.column, self.today)):
            return found
        if isinstance(expression, Convert):
            return self._converted(expression.operand, expression.type)
        assert isinstance(expression, Apply)  # noqa: S101 - constants read no column
        return self._applied(expression)

    def _constant(self, expression: Expression) -> Sql | None:
        """The value of an expression that reads no column."""
        try:
            value = evaluator(expression)(Row({}, self.today))
        except ClewError:
            return None
        return bound(value, expression.type)

    def _all(self, expressions: Sequence[Expression]) -> list[Sql] | None:
        found = list[Sql]()
        for each in expressions:
            sql = self.value(each)
            if sql is None or len(sql.text) > _MOST_CHARACTERS_IN_SQL:
                return None
            found.append(sql)
        return found

    def leaves(self, condition: Sql) -> bool:
        """Whether rows for which a condition is true can be left to the evaluator."""
        if self.doubts is None:
            return False
        self.doubts.append(condition)
        return True

    def _applied(self, call: Apply) -> Sql | None:
        if call.function in CONVERSIONS:
            return self._converted(call.arguments[0], call.type) if _is_plain(call) else None
        make = FUNCTIONS_IN_SQL.get(call.function)
        if make is None or isinstance(make, str):
            return None
        arguments = self._all(call.arguments)
        return None if arguments is None else make(self, call, arguments)

    # Conversions

    def _converted(self, operand: Expression, target: Type) -> Sql | None:
        inner, source = self.value(operand), operand.type
        if inner is None:
            return None
        if source == target:
            return inner
        match source.kind, target.kind:
            case (Kind.INTEGER | Kind.DECIMAL, Kind.DECIMAL) | (Kind.DECIMAL, Kind.INTEGER):
                return _cast(inner, target)
            case (Kind.BOOLEAN, Kind.INTEGER):
                return _cast(inner, target)
            case (Kind.INTEGER | Kind.DATE, Kind.STRING):
                return "CAST(" + inner + " AS VARCHAR)"
            case (Kind.BOOLEAN, Kind.STRING):
                return "upper(CAST(" + inner + " AS VARCHAR))"
            case (Kind.DECIMAL, Kind.STRING) if source.precision > source.scale:
                return "CAST(" + inner + " AS VARCHAR)"
            case (Kind.STRING, Kind.INTEGER | Kind.DECIMAL | Kind.DATE):
                return self._read(inner, target)
            case _:
                return None

    def _read(self, text: Sql, target: Type) -> Sql | None:
        """A text that is read; one of an unusual form is left to the evaluator."""
        match target.kind:
            case Kind.INTEGER:
                form = "[+-]?[0-9]{1,18}"
            case Kind.DECIMAL:
                whole = min(18, target.precision - target.scale)
                form = f"[+-]?[0-9]{{1,{whole}}}" + (rf"(\.[0-9]{{1,{target.scale}}})?" if target.scale else "")
                if not whole:
                    return None
            case _:
                form = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
        is_unusual = "NOT regexp_full_match(" + text + Sql(", ?)", (form,))
        return "TRY_" + _cast(text, target) if self.leaves(is_unusual) else None


_Maker = Callable[[_Translation, Apply, list[Sql]], Sql | None]

CONVERSIONS = frozenset({"TO_STRING", "TO_INTEGER", "TO_DECIMAL", "TO_DATE"})


def _is_plain(call: Apply) -> bool:
    """Whether a conversion follows no pattern."""
    return len(call.arguments) == 1 or call.function == "TO_DECIMAL"


def _cast(value: Sql, type_: Type) -> Sql:
    return "CAST(" + value + f" AS {sql_type(type_)})"


def _literal(translation: _Translation, call: Apply, position: int, default: Value) -> Value:
    """The value of an argument that is the same for all rows; None for another, `default` if it is not given."""
    if position >= len(call.arguments):
        return default
    argument = call.arguments[position]
    try:
        return None if columns_of(argument) else evaluator(argument)(Row({}, translation.today))
    except ClewError:
        return None


# Numbers


def _calculated(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    (left, right), name, result = operands, call.function, call.type
    types = [argument.type for argument in call.arguments]
    if result.kind is Kind.INTEGER:
        return "(" + left + f" {name} " + right + ")"
    if result.kind is not Kind.DECIMAL or any(type_.kind is not Kind.DECIMAL for type_ in types):
        return None
    if name == "*":
        is_exact = sum(type_.precision for type_ in types) <= MAX_PRECISION
        return _cast("(" + left + " * " + right + ")", result) if is_exact else None
    if result.scale != max(type_.scale for type_ in types) or result.precision >= MAX_PRECISION:
        return None
    return _cast("(" + _cast(left, result) + f" {name} " + _cast(right, result) + ")", result)


def _negated(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    return _cast("(-" + operands[0] + ")", call.type)


def _absolute(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    return _cast("abs(" + operands[0] + ")", call.type)


def _sign(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "CAST(sign(" + operands[0] + ") AS BIGINT)"


def _rounded(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    digits, mode = _literal(translation, call, 1, 0), _literal(translation, call, 2, HALF_UP)
    if not isinstance(digits, int) or digits < 0 or mode != HALF_UP:
        return None
    return operands[0] if call.type.kind is Kind.INTEGER else _cast(operands[0], call.type)


def _whole(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if call.type.kind is Kind.INTEGER:
        return operands[0]
    name = "floor" if call.function == "FLOOR" else "ceil"
    return _cast(f"{name}(" + operands[0] + ")", call.type)


def _remainder(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    """With the sign of the divisor, where DuckDB's has that of the number."""
    (left, right), types = operands, [argument.type for argument in call.arguments]
    if call.type.kind is Kind.INTEGER:
        divisor = "nullif(CAST(" + right + " AS HUGEINT), 0)"
        left = "CAST(" + left + " AS HUGEINT)"
    elif types[0] == types[1] and types[0].precision <= _MOST_PRECISION_OF_REMAINDER:
        divisor = "nullif(" + right + ", 0)"
    else:
        return None
    return _cast("(((" + left + " % " + divisor + ") + " + divisor + ") % " + divisor + ")", call.type)


# Choices


def _compared(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    kinds = _EXACT if call.function in {"=", "<>"} else _ORDERED
    if not _are_comparable(call.arguments, kinds):
        return None
    return "(" + operands[0] + f" {call.function} " + operands[1] + ")"


def _are_comparable(arguments: Sequence[Expression], kinds: frozenset[Kind]) -> bool:
    """Whether DuckDB compares values as they are: it converts decimals that differ, to doubles where they are long."""
    types = {argument.type for argument in arguments}
    if len({type_.kind for type_ in types}) > 1 or any(type_.kind not in kinds for type_ in types):
        return False
    if len(types) == 1:
        return True
    whole = max(type_.precision - type_.scale for type_ in types)
    return whole + max(type_.scale for type_ in types) <= MAX_PRECISION


def _connected(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    return "(" + joined(f" {call.function} ", operands) + ")"


def _not(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "(NOT " + operands[0] + ")"


def _is_null(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "(" + operands[0] + " IS NULL)"


def _among(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if not _are_comparable(call.arguments, _EXACT):
        return None
    return "(" + operands[0] + " IN (" + joined(", ", operands[1:]) + "))"


def _within(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if not _are_comparable(call.arguments, _ORDERED):
        return None
    return "(" + operands[0] + " BETWEEN " + operands[1] + " AND " + operands[2] + ")"


def _cases(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    """IF and CASE: conditions and values in turn, and a value for all else."""
    whens = [" WHEN " + operands[at] + " THEN " + operands[at + 1] for at in range(0, len(operands) - 1, 2)]
    return _cast("(CASE" + joined("", whens) + " ELSE " + operands[-1] + " END)", call.type)


def _switched(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    has_else = len(operands) % 2 == 0
    last = len(operands) - 1 if has_else else len(operands)
    if not _are_comparable([call.arguments[0], *call.arguments[1:last:2]], _EXACT):
        return None
    whens = [" WHEN " + operands[at] + " THEN " + operands[at + 1] for at in range(1, last, 2)]
    otherwise = " ELSE " + operands[-1] if has_else else Sql("")
    return _cast("(CASE " + operands[0] + joined("", whens) + otherwise + " END)", call.type)


def _coalesced(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    return _cast("coalesce(" + joined(", ", operands) + ")", call.type)


def _null_if(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if not _are_comparable(call.arguments, _EXACT):
        return None
    return "nullif(" + operands[0] + ", " + operands[1] + ")"


def _extreme(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    """MIN and MAX are NULL where a value is, LEAST and GREATEST are not."""
    if not _are_comparable(call.arguments, _ORDERED):
        return None
    name = "least" if call.function in {"MIN", "LEAST"} else "greatest"
    found = f"{name}(" + joined(", ", operands) + ")"
    if call.function in {"LEAST", "GREATEST"}:
        return found
    missing = joined(" OR ", ["(" + operand + " IS NULL)" for operand in operands])
    return "(CASE WHEN " + missing + " THEN NULL ELSE " + found + " END)"


# Texts


def _concatenated(translation: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return _short(translation, "(" + joined(" || ", operands) + ")")


def _replaced(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if not _literal(translation, call, 1, None):
        return None
    return _short(translation, "replace(" + joined(", ", operands) + ")")


def _short(translation: _Translation, text: Sql) -> Sql | None:
    """A text, of rows where it is not too long."""
    return text if translation.leaves("length(" + text + f") > {MOST_CHARACTERS}") else None


def _in_case(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    """Cases of texts beyond ASCII differ between libraries."""
    is_foreign = "strlen(" + operands[0] + ") <> length(" + operands[0] + ")"
    name = "upper" if call.function == "UPPER" else "lower"
    return f"{name}(" + operands[0] + ")" if translation.leaves(is_foreign) else None


def _trimmed(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "trim(" + operands[0] + ", ' ')"


def _end(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    """The first or last characters. DuckDB counts from the other end where a count is negative."""
    count = _literal(translation, call, 1, None)
    if not isinstance(count, int) or not 0 <= count <= MOST_CHARACTERS:
        return None
    name = "left" if call.function == "LEFT" else "right"
    return f"{name}(" + operands[0] + f", {count})"


def _part(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    start, count = _literal(translation, call, 1, None), _literal(translation, call, 2, None)
    if not isinstance(start, int) or not isinstance(count, int):
        return None
    if not (1 <= start <= MOST_CHARACTERS and 0 <= count <= MOST_CHARACTERS):
        return None
    return "substring(" + operands[0] + f", {start}, {count})"


def _length(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "length(" + operands[0] + ")"


def _hashed(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "sha256(" + operands[0] + ")"


def _tested(name: str) -> _Maker:
    return lambda _translation, _call, operands: f"{name}(" + operands[0] + ", " + operands[1] + ")"


# Days


def _part_of_day(_: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    return f"{call.function.lower()}(" + operands[0] + ")"


def _weekday(_: _Translation, _call: Apply, operands: list[Sql]) -> Sql | None:
    return "isodow(" + operands[0] + ")"


def _days_later(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    if call.arguments[0].type.kind is not Kind.DATE:
        return None
    day, count = operands
    bounded = "CAST(CASE WHEN abs(" + count + f") < {_MOST_DAYS} THEN " + count + " END AS INTEGER)"
    later = "CAST(" + day + " + " + bounded + " AS DATE)"
    inside = later + f" BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"
    is_far = "(" + count + " IS NOT NULL AND NOT coalesce(" + inside + ", FALSE))"
    return later if translation.leaves(is_far) else None


def _days_between(translation: _Translation, call: Apply, operands: list[Sql]) -> Sql | None:
    unit = _literal(translation, call, 2, "day")
    if unit != "day" or any(each.type.kind is not Kind.DATE for each in call.arguments[:2]):
        return None
    return "date_diff('day', " + operands[1] + ", " + operands[0] + ")"


_DIVIDES = "DuckDB divides decimals as doubles"
_DOUBLES = "its result is a double, whose last digits depend on the library"
_CASES = "cases of texts beyond ASCII differ between libraries"
_PATTERNS = "patterns have limits and an order of alternatives of their own, which DuckDB's engine does not share"
_FAILS = "DuckDB's counterpart fails for values that have an answer here, and the whole query with it"
_DAYS = "DuckDB knows days before the year 1 and after 9999, and where such a day is left out nothing says so"
_UNPROVEN = "nothing shows that DuckDB's counterpart gives the same for all values"

FUNCTIONS_IN_SQL: Mapping[str, _Maker | str] = {
    **dict.fromkeys(("+", "-", "*"), _calculated),
    "NEGATE": _negated,
    "ABS": _absolute,
    "SIGN": _sign,
    "ROUND": _rounded,
    **dict.fromkeys(("FLOOR", "CEIL"), _whole),
    "MOD": _remainder,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compared),
    **dict.fromkeys(("AND", "OR"), _connected),
    "NOT": _not,
    "ISNULL": _is_null,
    "IN": _among,
    "BETWEEN": _within,
    **dict.fromkeys(("IF", "CASE"), _cases),
    "SWITCH": _switched,
    "COALESCE": _coalesced,
    "NULLIF": _null_if,
    **dict.fromkeys(("MIN", "MAX", "LEAST", "GREATEST"), _extreme),
    "CONCAT": _concatenated,
    "REPLACE": _replaced,
    **dict.fromkeys(("UPPER", "LOWER"), _in_case),
    "TRIM": _trimmed,
    **dict.fromkeys(("LEFT", "RIGHT"), _end),
    "SUBSTRING": _part,
    "LEN": _length,
    "CONTAINS": _tested("contains"),
    "STARTSWITH": _tested("starts_with"),
    "ENDSWITH": _tested("ends_with"),
    **dict.fromkeys(("YEAR", "MONTH", "DAY"), _part_of_day),
    "DATEADD": _days_later,
    "DATEDIFF": _days_between,
    "WEEKDAY": _weekday,
    "HASH": _hashed,
    "/": _DIVIDES,
    **dict.fromkeys(("POWER", "SQRT", "EXP", "LN"), _DOUBLES),
    "PROPER": _CASES,
    **dict.fromkeys(("LIKE", "REGEX_MATCH", "REGEX_EXTRACT", "REGEX_REPLACE"), _PATTERNS),
    **dict.fromkeys(("LPAD", "RPAD", "REPEAT", "DATE"), _FAILS),
    **dict.fromkeys(("EOMONTH", "EDATE", "DATE_TRUNC", "WORKDAY"), _DAYS),
    **dict.fromkeys(("FIND", "SPLIT", "UUID5", "TRY_TO_INTEGER", "TRY_TO_DECIMAL", "TRY_TO_DATE"), _UNPROVEN),
}
"""Each function of single rows: how it is written in SQL, or why it is left to the evaluator.

Conversions are not among them: what they are depends on two types.
"""
