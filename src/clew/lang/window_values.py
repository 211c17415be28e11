"""What calls with a window give for rows, in plain Python: the reference for Spark's window functions.

Rows are put in order by the columns of the window, and by their ordinals where they are equal in these.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

from clew import budgets
from clew.deferred import dataclass
from clew.lang import arithmetic as exact
from clew.lang.evaluation import Row, contributing, evaluator, signature_of
from clew.lang.functions import FUNCTIONS, AggregateFunction
from clew.lang.ordering import Descending, member_of, place_of
from clew.lang.typed import OVER, Apply, Value
from clew.lang.types import Kind
from clew.lang.windowing import WindowCall

Place = tuple[Any, ...]
Member = tuple[int, Row]
"""A row by its ordinal."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a call looks at for one row, and that row's place in the order."""

    window: WindowCall
    rows: Sequence[Member]
    places: Sequence[Place]
    own: Place

    @property
    def value(self) -> Value:
        """What the call gives."""
        match self.window.function:
            case "ROW_NUMBER":
                return len(self.rows)
            case "RANK":
                return 1 + sum(place != self.own for place in self.places)
            case "DENSE_RANK":
                return len(_runs(self.places))
            case "LAG" | "LEAD":
                return evaluator(self.window.arguments[0])(self.rows[0][1]) if self.rows else None
            case _:
                return self._aggregate

    @property
    def _aggregate(self) -> Value:
        assert self.window.call is not None  # noqa: S101 - other functions have been looked at
        return _combined(self.window.call, [row for _, row in self.rows])


@dataclass(slots=True)
class Partition:
    """The rows with the same keys, in the order of a window."""

    window: WindowCall
    members: list[Member]
    places: list[Place]
    _ends: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, window: WindowCall, table: str, rows: Iterable[Member]) -> "Partition":
        """Rows put in order."""
        placed = [(_place(window, row.tables[table]), ordinal, row) for ordinal, row in rows]
        placed.sort(key=lambda each: (each[0], each[1]))
        return cls(window, [(ordinal, row) for _, ordinal, row in placed], [place for place, _, _ in placed])

    def frame(self, index: int) -> Frame:
        """What the call looks at for one row."""
        begin, end = self.bounds(index)
        return Frame(self.window, self.members[begin:end], self.places[begin:end], self.places[index])

    def bounds(self, index: int) -> tuple[int, int]:
        """Where the frame of a row begins and ends."""
        count, window = len(self.members), self.window
        if window.reach is not None:
            first, last = window.reach
            begin = 0 if first is None else min(max(index + first, 0), count)
            end = count if last is None else min(max(index + last + 1, 0), count)
            return begin, max(begin, end)
        if window.call is None:
            return 0, index + 1
        return 0, self._end_of_equals(index) if window.order else count

    def _end_of_equals(self, index: int) -> int:
        if not self._ends:
            begin = 0
            for run in _runs(self.places):
                self._ends.update(dict.fromkeys(range(begin, begin + run), begin + run))
                begin += run
        return self._ends[index]

    def values(self) -> Iterator[tuple[int, Value]]:
        """The value for each row."""
        growing = _Growing(self)
        for index, (ordinal, _) in enumerate(self.members):
            yield ordinal, growing.value(index)


class _Growing:
    """The values of the frames of a partition one after the other: equal frames are looked at once, and of frames
    that only grow what comes to them."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._last: tuple[int, int] | None = None
        self._value: Value = None
        self._total: Any = Decimal(0)
        self._count = 0
        self._reached = 0
        self._runs = 0
        call = partition.window.call
        self._grows = call is not None and _grows(call)
        self._bring = contributing(call) if call is not None and call.arguments else None

    def value(self, index: int) -> Value:
        partition = self._partition
        bounds = partition.bounds(index)
        function = partition.window.function
        if function == "ROW_NUMBER":
            return index + 1
        if function in {"RANK", "DENSE_RANK"}:
            if index == 0 or partition.places[index] != partition.places[index - 1]:
                self._runs += 1
                self._value = index + 1 if function == "RANK" else self._runs
            return self._value
        if bounds != self._last:
            budgets.check()
            self._last = bounds
            is_next = self._grows and bounds[0] == 0 and bounds[1] >= self._reached
            self._value = self._grown(bounds[1]) if is_next else partition.frame(index).value
        return self._value

    def _grown(self, end: int) -> Value:
        call = self._partition.window.call
        assert call is not None  # noqa: S101 - `_grows` says so
        for _, row in self._partition.members[self._reached : end]:
            value: Any = self._bring(row) if self._bring is not None else 0
            if value is not None:
                self._count += 1
                if call.function in {"SUM", "AVG"}:
                    self._total = exact.add(self._total, Decimal(value))
        self._reached = end
        if call.function in {"COUNT", "COUNT_ALL"}:
            return self._count
        if not self._count:
            return None
        if call.function == "AVG":
            return exact.fit(exact.divide(self._total, Decimal(self._count)), call.type)
        is_whole = call.type.kind is Kind.INTEGER
        return exact.fit_integer(int(self._total)) if is_whole else exact.fit(self._total, call.type)


def _grows(call: Apply) -> bool:
    if call.function in {"COUNT", "COUNT_ALL"}:
        return True
    return call.function in {"SUM", "AVG"} and call.type.kind in {Kind.INTEGER, Kind.DECIMAL}


def partitions(window: WindowCall, table: str, rows: Iterable[Member]) -> list[Partition]:
    """Rows by the keys of a window, each part in its order."""
    groups = defaultdict[tuple[Value, ...], list[Member]](list)
    for ordinal, row in rows:
        groups[tuple(member_of(row.tables[table][name]) for name in window.keys)].append((ordinal, row))
    return [Partition.of(window, table, members) for members in groups.values()]


def with_windows(windows: Sequence[WindowCall], table: str, rows: Iterable[Member]) -> Callable[[int, Row], Row]:
    """A function that gives a row, by its ordinal, the values of calls with a window.

    `rows` are all that the step selects. Those that it does not select see NULLs.
    """
    if not windows:
        return lambda _ordinal, row: row
    listed = list(rows)
    found = defaultdict[int, dict[str, Value]](dict)
    for window in windows:
        for partition in partitions(window, table, listed):
            for ordinal, value in partition.values():
                found[ordinal][window.column] = value
    nothing: Mapping[str, Value] = {window.column: None for window in windows}
    return lambda ordinal, row: Row({**row.tables, OVER: found.get(ordinal, nothing)}, row.today)


def _place(window: WindowCall, cells: Mapping[str, Value]) -> Place:
    places = ((place_of(cells[name]), descending) for name, descending in window.order)
    return tuple(Descending(place) if descending else place for place, descending in places)


def _runs(places: Sequence[Place]) -> list[int]:
    """How many places are equal to each other, one run after the other."""
    runs, last = list[int](), None
    for place in places:
        if runs and place == last:
            runs[-1] += 1
        else:
            runs.append(1)
        last = place
    return runs


def _combined(call: Apply, rows: Sequence[Row]) -> Value:
    """An aggregate over rows, of which there may be none."""
    function = FUNCTIONS[call.function]
    assert isinstance(function, AggregateFunction)  # noqa: S101 - the checker lets no other through
    if not call.arguments:
        return function.combine([None] * len(rows), signature_of(call))
    bring = contributing(call)
    brought = [value for row in rows if (value := bring(row)) is not None]
    return function.combine(brought, signature_of(call))
