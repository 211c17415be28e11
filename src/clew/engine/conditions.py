"""Conditions taken apart: what a join equates, how it is kept to the rows that a step is for."""

from clew.deferred import dataclass
from clew.lang.failing import plain_column
from clew.lang.typed import Apply, ColumnValue, Constant, Expression, columns_of
from clew.lang.types import BOOLEAN


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """What an equality join compares on the joined side, and the conditions on that side alone."""

    values: tuple[Expression, ...]
    own_conditions: tuple[Expression, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose every value is compared as it is."""
        plain = (plain_column(value) for value in self.values)
        return frozenset(column.column for column in plain if column is not None)


def equality_keys(condition: Expression, alias: str) -> JoinKeys | None:
    """The keys of a join whose condition is equalities with the other side, joined by AND; None for any other join.

    Without any equality there are no keys: every two rows of the joined side that fulfil its own conditions are alike.
    """
    values, own = list[Expression](), list[Expression]()
    for conjunct in _conjuncts(condition):
        tables = _tables(conjunct)
        sides = _equated(conjunct, alias)
        if tables <= {alias}:
            own.append(conjunct)
        elif sides is not None:
            values.append(sides[0])
        elif alias in tables:
            return None
    return JoinKeys(tuple(values), tuple(own))


def guarded(condition: Expression, alias: str, guard: ColumnValue) -> Expression:
    """A condition that matches nothing, and calculates nothing on the working side, where the guard is FALSE.

    Equalities stay equalities, so that Spark can still hash them.
    """
    parts, holds_guard = list[Expression](), False
    for conjunct in _conjuncts(condition):
        sides = _equated(conjunct, alias)
        if sides is not None and columns_of(sides[1]):
            own, other = sides
            parts.append(Apply("=", (own, _where(guard, other)), BOOLEAN))
            holds_guard = True
        elif _tables(conjunct) <= {alias}:
            parts.append(conjunct)
        else:
            parts.append(Apply("IF", (guard, conjunct, Constant(False, BOOLEAN)), BOOLEAN))
            holds_guard = True
    if not holds_guard:
        parts.insert(0, guard)
    return parts[0] if len(parts) == 1 else Apply("AND", tuple(parts), BOOLEAN)


def conditions_on(condition: Expression, table: str) -> Expression | None:
    """Those conditions joined by AND that look at one table only; None where there are none."""
    own = [conjunct for conjunct in _conjuncts(condition) if _tables(conjunct) <= {table}]
    if not own:
        return None
    return own[0] if len(own) == 1 else Apply("AND", tuple(own), BOOLEAN)


def _where(guard: ColumnValue, value: Expression) -> Expression:
    return Apply("IF", (guard, value, Constant(None, value.type)), value.type)


def _conjuncts(expression: Expression) -> list[Expression]:
    if isinstance(expression, Apply) and expression.function == "AND":
        return [conjunct for argument in expression.arguments for conjunct in _conjuncts(argument)]
    return [expression]


def _tables(expression: Expression) -> set[str]:
    return {table for table, _ in columns_of(expression)}


def _equated(expression: Expression, alias: str) -> tuple[Expression, Expression] | None:
    """The joined side and the other one of an equality between the two."""
    if not (isinstance(expression, Apply) and expression.function == "="):
        return None
    left, right = expression.arguments
    for side, other in ((left, right), (right, left)):
        if _tables(side) == {alias} and alias not in _tables(other):
            return side, other
    return None
