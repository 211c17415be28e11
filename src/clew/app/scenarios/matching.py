"""Expected rows against the rows that came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from clew.model import ExpectedOutput, Match

Row = Mapping[str, object]

_SYSTEM = frozenset({"_row_id", "_period", "_labels", "_deleted", "_trace_id"})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which an output is not what was expected."""

    kind: str
    """missing row, extra row, value mismatch, missing column, extra column, order, trace or error."""
    where: str
    expected: Row | None = None
    actual: Row | None = None
    columns: tuple[str, ...] = ()
    message: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form of `test --json`."""
        return {
            "kind": self.kind,
            "where": self.where,
            "expected": _plain(self.expected),
            "actual": _plain(self.actual),
            "columns": list(self.columns),
            "message": self.message,
        }


def compare(where: str, expected: ExpectedOutput, actual: Sequence[Row], columns: Sequence[str]) -> list[Mismatch]:
    """What is different. Values compare by what they are, not by how they are written: 15000.00 is 15000.

    System columns count only where an expected row names them.
    """
    problems = _column_problems(where, expected, columns)
    if problems:
        return problems
    if expected.ordered:
        return _in_order(where, expected, actual)
    return _in_any_order(where, expected, actual)


def _column_problems(where: str, expected: ExpectedOutput, columns: Sequence[str]) -> list[Mismatch]:
    named = dict.fromkeys(name for row in expected.rows for name in row)
    missing = tuple(name for name in named if name not in columns)
    found = []
    if missing:
        found.append(Mismatch("missing column", where, columns=missing))
    if expected.match is Match.EXACT and expected.rows:
        extra = tuple(name for name in columns if name not in named and name not in _SYSTEM)
        if extra:
            found.append(Mismatch("extra column", where, columns=extra))
    return found


def _in_order(where: str, expected: ExpectedOutput, actual: Sequence[Row]) -> list[Mismatch]:
    found = list[Mismatch]()
    for index, row in enumerate(expected.rows):
        if index >= len(actual):
            found.append(Mismatch("missing row", where, expected=row))
        else:
            different = _differing(row, actual[index])
            if different:
                found.append(Mismatch("value mismatch", f"{where}, row {index + 1}", row, actual[index], different))
    if expected.match is Match.EXACT:
        found += [Mismatch("extra row", where, actual=row) for row in actual[len(expected.rows) :]]
    return found


def _in_any_order(where: str, expected: ExpectedOutput, actual: Sequence[Row]) -> list[Mismatch]:
    """Equal rows are paired first; what is left over is paired with the nearest, to show the columns that differ."""
    left: list[Row] = list(actual)
    unmatched = list[Row]()
    for row in expected.rows:
        match = next((index for index, other in enumerate(left) if not _differing(row, other)), None)
        if match is None:
            unmatched.append(row)
        else:
            left.pop(match)
    found = list[Mismatch]()
    for missing in unmatched:
        near = min(range(len(left)), key=lambda index: len(_differing(missing, left[index])), default=None)
        if near is not None and 2 * len(_differing(missing, left[near])) <= len(missing):
            other = left.pop(near)
            found.append(Mismatch("value mismatch", where, missing, other, _differing(missing, other)))
        else:
            found.append(Mismatch("missing row", where, expected=missing))
    if expected.match is Match.EXACT:
        found += [Mismatch("extra row", where, actual=row) for row in left]
    return found


def _differing(expected: Row, actual: Row) -> tuple[str, ...]:
    return tuple(name for name, value in expected.items() if not same_value(value, actual.get(name)))


def same_value(expected: object, actual: object) -> bool:
    """Whether two values are the same by type: numbers by value, dates by day, texts to the letter."""
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(actual, float):
        return isinstance(expected, int | float | Decimal) and Decimal(repr(actual)) == Decimal(str(expected))
    if isinstance(actual, int | Decimal):
        return isinstance(expected, int | Decimal | float) and Decimal(str(expected)) == Decimal(actual)
    if isinstance(actual, datetime):
        return _moment(expected) == actual
    if isinstance(actual, date):
        return str(expected) == actual.isoformat()
    return expected == actual or (isinstance(expected, date) and expected.isoformat() == actual)


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - timestamps of rows have no zone
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _plain(row: Row | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {
        name: value if value is None or isinstance(value, bool | int | float | str) else str(value)
        for name, value in row.items()
    }
