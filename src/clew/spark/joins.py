"""Runtime joins that keep row identity: at most one match for each row, or an error that names the row."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.lang.typed import Apply, ColumnValue, Convert, Expression, columns_of
from clew.plan.steps import Join, UpdateStep
from clew.spark.names import joined_column
from clew.spark.narrow import Expressing
from clew.spark.sql import quoted
from clew.trace.layout import ORDINAL

_EXAMPLES = 2


def joined_rows(pinned: DataFrame, join: Join) -> DataFrame:
    """The rows of a joined dataset under the names that the expressions of an update use."""
    return pinned.select(
        *(F.col(quoted(column.name)).alias(joined_column(join.alias, column.name)) for column in join.dataset.columns)
    )


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """What an equality join compares: columns of the joined side, and conditions on that side alone."""

    columns: tuple[str, ...]
    own_conditions: tuple[Expression, ...]


def equality_keys(join: Join) -> JoinKeys | None:
    """The keys of a join whose condition is equalities with the other side, joined by AND; None for any other join."""
    columns, own = list[str](), list[Expression]()
    for conjunct in _conjuncts(join.on.tree):
        tables = {table for table, _ in columns_of(conjunct)}
        if tables <= {join.alias}:
            own.append(conjunct)
            continue
        column = _equated_column(conjunct, join.alias)
        if column is not None:
            columns.append(column)
        elif join.alias in tables:
            return None
    return JoinKeys(tuple(columns), tuple(own)) if columns else None


def _conjuncts(expression: Expression) -> list[Expression]:
    if isinstance(expression, Apply) and expression.function == "AND":
        return [conjunct for argument in expression.arguments for conjunct in _conjuncts(argument)]
    return [expression]


def _equated_column(expression: Expression, alias: str) -> str | None:
    """The column of the joined side in `alias.column = expression of the other side`."""
    if not (isinstance(expression, Apply) and expression.function == "="):
        return None
    left, right = expression.arguments
    for side, other in ((left, right), (right, left)):
        plain = side.operand if isinstance(side, Convert) else side
        if isinstance(plain, ColumnValue) and plain.table == alias and alias not in {t for t, _ in columns_of(other)}:
            return plain.column
    return None


def require_unique(rows: DataFrame, step: UpdateStep, join: Join, other: DataFrame, expressing: Expressing) -> None:
    """Refuse a join that matches a row more than once.

    A joined side whose keys are unique cannot; only where they are not, or where the join compares by more than
    equality, are the rows themselves joined to see.
    """
    keys = equality_keys(join)
    if keys is not None and (_is_natural_key(join, keys) or _keys_are_unique(other, join, keys, expressing)):
        return
    matches = (
        rows.where(expressing.selected(step) if not _selector_needs(step) else "NOT `_deleted`")
        .join(other, F.expr(expressing.sql(join.on.tree)), "inner")
        .groupBy(ORDINAL)
        .agg(F.count(F.lit(1)).alias("__matches"))
        .where("__matches > 1")
    )
    doubled = matches.orderBy(ORDINAL).limit(1).collect()
    if doubled:
        raise _not_unique(rows, step, join, other, expressing, matches.count(), doubled[0][0], doubled[0][1])


def _selector_needs(step: UpdateStep) -> bool:
    """Whether the selector looks at joined columns, which are not there yet."""
    aliases = {join.alias for join in step.joins}
    return step.selector is not None and any(table in aliases for table, _ in columns_of(step.selector.tree))


def _is_natural_key(join: Join, keys: JoinKeys) -> bool:
    """Natural keys were found unique when the dataset was loaded; bitemporal rows are one per key as of a day."""
    return bool(join.dataset.natural_key) and set(join.dataset.natural_key) <= set(keys.columns)


def _keys_are_unique(other: DataFrame, join: Join, keys: JoinKeys, expressing: Expressing) -> bool:
    names = [quoted(joined_column(join.alias, column)) for column in keys.columns]
    candidates = other
    for condition in keys.own_conditions:
        candidates = candidates.where(expressing.sql(condition))
    repeated = candidates.dropna(subset=[joined_column(join.alias, column) for column in keys.columns])
    return repeated.groupBy(*names).agg(F.count(F.lit(1)).alias("__n")).where("__n > 1").isEmpty()


def _not_unique(
    rows: DataFrame,
    step: UpdateStep,
    join: Join,
    other: DataFrame,
    expressing: Expressing,
    affected: int,
    ordinal: int,
    matches: int,
) -> UserError:
    columns = [joined_column(join.alias, column.name) for column in join.dataset.columns]
    doubled = (
        rows.where(f"{ORDINAL} = {ordinal}L")
        .join(other, F.expr(expressing.sql(join.on.tree)), "inner")
        .select(*map(quoted, columns))
        .limit(_EXAMPLES)
        .collect()
    )
    names = [column.name for column in join.dataset.columns]
    differing = [name for position, name in enumerate(names) if len({row[position] for row in doubled}) > 1] or names[
        :3
    ]
    examples = " and ".join(
        "(" + ", ".join(f"{name} {row[names.index(name)]}" for name in differing[:4]) + ")" for row in doubled
    )
    problem = f"{matches} rows of {join.alias} match one row on {join.on.text}, for example {examples}"
    return UserError(
        JOIN_NOT_UNIQUE.at(
            step.place,
            problem=problem,
            hint=f"{affected} rows would be doubled; make the join condition or the data of {join.dataset.name} unique",
            seq=step.seq,
            ordinal=ordinal,
        )
    )
