"""Rows and amounts of a set of rows, by group: what reconciliation adds up.

A column with exact numbers is added up by DuckDB. Anything else is evaluated row by row in Python, as explanations do.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext

from clew.deferred import dataclass
from clew.lang.evaluation import evaluator
from clew.lang.failing import can_fail
from clew.lang.typed import Apply, ColumnValue, Constant, Expression, Value, columns_of
from clew.lang.types import BOOLEAN, Kind
from clew.plan.planned_controls import PlannedControl
from clew.trace.reader import RunTrace
from clew.trace.row_sets import Cells, RowSet
from clew.trace.sql import Sql

_DIGITS = 80
_MOST_DIGITS_IN_SQL = 28
"""Sums of longer numbers may not fit a decimal of DuckDB."""

Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class RowTotal:
    """Some rows, and what they amount to."""

    rows: int = 0
    amount: Decimal = Decimal(0)

    def __add__(self, other: "RowTotal") -> "RowTotal":
        with localcontext(prec=_DIGITS):
            return RowTotal(self.rows + other.rows, self.amount + other.amount)

    def __sub__(self, other: "RowTotal") -> "RowTotal":
        with localcontext(prec=_DIGITS):
            return RowTotal(self.rows - other.rows, self.amount - other.amount)


Totals = Mapping[Key, RowTotal]
"""Totals by the values of the keys; one with an empty key where there are none."""

NOTHING = RowTotal()


def summed(totals: Totals) -> RowTotal:
    """All groups together."""
    return sum(totals.values(), NOTHING)


def added(left: Totals, right: Totals) -> dict[Key, RowTotal]:
    """The totals of both."""
    return {key: left.get(key, NOTHING) + right.get(key, NOTHING) for key in {**left, **right}}


def without(left: Totals, right: Totals) -> dict[Key, RowTotal]:
    """What is left of the first totals without the second."""
    return {key: left.get(key, NOTHING) - right.get(key, NOTHING) for key in {**left, **right}}


def totals_of(
    trace: RunTrace, rows: RowSet, control: PlannedControl | None, *, include_deleted: bool
) -> dict[Key, RowTotal]:
    """The totals of rows; how many there are where no control is given.

    Columns that the rows do not have yet are NULL.
    """
    if _is_exact(control, rows):
        return _summed(rows, control, None, (), include_deleted=include_deleted)
    return _evaluated(trace, rows, control, None, include_deleted=include_deleted)


def selected_totals(
    trace: RunTrace, rows: RowSet, control: PlannedControl | None, selector: Expression, *, include_deleted: bool
) -> dict[Key, RowTotal]:
    """The totals of the rows for which a condition is true. It is not asked about deleted rows that do not count."""
    condition = rows.in_sql(selector, trace.today) if _is_exact(control, rows) else None
    if condition is not None:
        reads = sorted({name for _, name in columns_of(selector)})
        return _summed(rows, control, condition, reads, include_deleted=include_deleted)
    if not include_deleted and can_fail(selector):
        deleted = ColumnValue(trace.plan.input.table, "_deleted", BOOLEAN)
        selector = Apply("IF", (deleted, Constant(False, BOOLEAN), selector), BOOLEAN)
    return _evaluated(trace, rows, control, selector, include_deleted=include_deleted)


def _summed(
    rows: RowSet, control: PlannedControl | None, condition: Sql | None, reads: Iterable[str], *, include_deleted: bool
) -> dict[Key, RowTotal]:
    by = control.by if control is not None else ()
    known = [name for name in by if name in rows.names]
    found = rows.sums(_in_sql(control, rows), known, condition, reads, include_deleted=include_deleted)
    return {_key(cells, by): RowTotal(count, _exact(total)) for cells, count, total in found}


def _is_exact(control: PlannedControl | None, rows: RowSet) -> bool:
    """Whether DuckDB adds up exactly what Python would."""
    return control is None or _in_sql(control, rows) is not None or not _reads_any(control, rows)


def _in_sql(control: PlannedControl | None, rows: RowSet) -> str | None:
    """The column that a control adds up, where DuckDB adds exactly what Python would."""
    tree = control.expression.tree if control is not None else None
    if not isinstance(tree, ColumnValue) or tree.column not in rows.names:
        return None
    is_exact = tree.type.kind is Kind.INTEGER or (
        tree.type.kind is Kind.DECIMAL and tree.type.precision <= _MOST_DIGITS_IN_SQL
    )
    return tree.column if is_exact else None


def _reads_any(control: PlannedControl, rows: RowSet) -> bool:
    """Whether an amount can be other than that of rows without values: one of its columns is there, or it has none."""
    tree = control.expression.tree
    return not isinstance(tree, ColumnValue) or tree.column in rows.names


def _evaluated(
    trace: RunTrace,
    rows: RowSet,
    control: PlannedControl | None,
    selector: Expression | None,
    *,
    include_deleted: bool,
) -> dict[Key, RowTotal]:
    found = dict[Key, RowTotal]()
    by = control.by if control is not None else ()
    for key, amount in _amounts(trace, rows, control, selector, by, include_deleted=include_deleted):
        found[key] = found.get(key, NOTHING) + RowTotal(1, amount)
    return found


def _amounts(
    trace: RunTrace,
    rows: RowSet,
    control: PlannedControl | None,
    selector: Expression | None,
    by: tuple[str, ...],
    *,
    include_deleted: bool,
) -> Iterator[tuple[Key, Decimal]]:
    tree = control.expression.tree if control is not None else None
    read = {column for _, column in columns_of(tree)} if tree is not None else set()
    known = sorted(({*by, "_deleted"} | read) & rows.names)
    missing: Cells = dict.fromkeys(read - rows.names - {"_row_id"})
    value = evaluator(tree) if tree is not None else None
    for ordinal, cells in rows.matching(selector, known, trace.see):
        if cells["_deleted"] and not include_deleted:
            continue
        amount = Decimal(0)
        if value is not None and control is not None:
            amount = as_amount(value(trace.see(ordinal, {**missing, **cells})), control)
        yield _key(cells, by), amount


def as_amount(value: Value, control: PlannedControl) -> Decimal:
    """A value of an expression as an exact number: what has none contributes nothing, doubles are rounded."""
    if isinstance(value, float):
        number = Decimal(repr(value))
        if not number.is_finite():
            return Decimal(0)
        with localcontext(prec=400):
            return number.quantize(Decimal(1).scaleb(-control.scale), rounding=ROUND_HALF_UP)
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else Decimal(0)


def _exact(total: Value) -> Decimal:
    """A sum that DuckDB has made; it is NULL where no row has a value."""
    return Decimal(total) if isinstance(total, int | Decimal) else Decimal(0)


def _key(cells: Mapping[str, Value], by: tuple[str, ...]) -> Key:
    return tuple(cells.get(name) for name in by)
