"""Runtime joins that keep row identity: at most one match for each row, or an error that names the row."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Row as Record
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import JOIN_NOT_UNIQUE
from clew.engine.conditions import JoinKeys, equality_keys
from clew.engine.expressing import Expressing
from clew.engine.names import joined_column
from clew.engine.operations.update import guarded_rows, matched_rows
from clew.engine.parts import arrow_tables
from clew.lang.doubles import order
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Value, columns_of
from clew.lang.types import BOOLEAN
from clew.plan.datasets import DatasetUse
from clew.plan.operations import ChangingStep
from clew.plan.steps import Join
from clew.storage.parts import ORDINAL, Part
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds
from clew.trace.json_values import values_of
from clew.trace.run_parts import periods_of

_FEW_ROWS = 20_000
"""Up to this many, keys are compared in this process, which is faster than Spark."""
_EXAMPLES, _COLUMNS = 2, 4


class UniqueKeys:
    """What is known of the keys of joined datasets, so that a run looks once at each."""

    def __init__(self) -> None:
        self._unique = dict[tuple[str, JoinKeys], bool]()

    def are_known(self, join: Join, keys: JoinKeys, look: Callable[[], bool]) -> bool:
        """Whether the keys of a join are unique on the joined side."""
        known = (join.dataset.key, keys)
        if known not in self._unique:
            self._unique[known] = look()
        return self._unique[known]


@dataclass(frozen=True, slots=True)
class JoinChecks:
    """Refuses joins that match a row more than once, as early and as cheaply as possible."""

    root: StorageRoot
    inputs: Mapping[str, Part]
    """The pinned datasets of the run, by key."""
    unique: UniqueKeys
    expressing: Expressing
    private: frozenset[str] = frozenset()
    """Columns of the working dataset whose values messages must not quote: errors become events, which many read."""

    def cannot_double(self, join: Join, other: DataFrame) -> bool:
        """Whether the joined side alone tells that no row can match more than once."""
        keys = equality_keys(join.on.tree, join.alias)
        if keys is None:
            return False
        return self.unique.are_known(join, keys, lambda: self._are_unique(join, keys, other))

    def _are_unique(self, join: Join, keys: JoinKeys, other: DataFrame) -> bool:
        part = self.inputs[join.dataset.key]
        if sum(file.rows for file in part.files) > _FEW_ROWS:
            natural_key = _natural_key(join, part)
            is_loaded_so = bool(natural_key) and natural_key <= keys.columns
            return is_loaded_so or _are_unique_on_spark(other, keys, self.expressing)
        seen = set[tuple[object, ...]]()
        conditions = [evaluator(condition) for condition in keys.own_conditions]
        values = [evaluator(value) for value in keys.values]
        for cells in _cells(self.root, part, join.dataset):
            row = Row({join.alias: cells}, self.expressing.today)
            if any(condition(row) is not True for condition in conditions):
                continue
            key = tuple(_comparable(value(row)) for value in values)
            if None not in key and key in seen:
                return False
            seen.add(key)
        return True

    def require(self, rows: DataFrame, step: ChangingStep, joined: Mapping[str, DataFrame]) -> None:
        """Look at the rows themselves. UserError JoinNotUnique where one matches more than once."""
        before = guarded_rows(rows, step, self.expressing)
        for join in step.lookups:
            other = joined[join.alias]
            if not self.cannot_double(join, other):
                matched = matched_rows(before, step, join, other, self.expressing, "inner")
                _require_single_matches(matched, step, join, self.expressing, self.private)
            if join is not step.lookups[-1]:
                before = matched_rows(before, step, join, other, self.expressing, "left")


def _comparable(value: Value) -> object:
    """What a set compares as the language compares values; to a set, two NaN are different."""
    return order(value) if isinstance(value, float) else value


def _natural_key(join: Join, part: Part) -> frozenset[str]:
    """What was found unique when the dataset was loaded: the natural key, within each period that a run sees.

    Registered versions are not loaded, and their keys are not checked.
    """
    use = join.dataset
    is_checked = use.resolver_id is not None and (part.details or {}).get("format") != "managed"
    key = frozenset(use.natural_key) if is_checked else frozenset()
    return key | {"_period"} if key and use.temporal_mode == "period" else key


def _cells(root: StorageRoot, part: Part, use: DatasetUse) -> Iterator[dict[str, Value]]:
    """The rows of a small pinned dataset, except deleted ones."""
    periods = periods_of(part, use)
    for table in arrow_tables(root, part):
        declared = [(column.name, column.type) for column in use.columns]
        types = [(name, type_) for name, type_ in (*declared, ("_deleted", BOOLEAN)) if name in table.column_names]
        columns = [values_of(table.column(name), type_) for name, type_ in types]
        for values in zip(*columns, strict=True):
            cells = dict(zip((name for name, _ in types), values, strict=True))
            if cells.pop("_deleted", None) is not True and (periods is None or cells.get("_period") in periods):
                yield cells


def _are_unique_on_spark(other: DataFrame, keys: JoinKeys, expressing: Expressing) -> bool:
    for condition in keys.own_conditions:
        other = other.where(expressing.sql(condition))
    values = [F.expr(expressing.sql(value)).alias(f"__key{index}") for index, value in enumerate(keys.values)]
    if not values:
        return len(other.limit(2).select(F.lit(1)).collect()) < 2
    names = [f"__key{index}" for index in range(len(values))]
    given = " AND ".join(f"{name} IS NOT NULL" for name in names)
    counted = other.select(*values).where(given).groupBy(*names).count()
    return not counted.where("count > 1").limit(1).collect()


def _require_single_matches(
    matched: DataFrame, step: ChangingStep, join: Join, expressing: Expressing, private: Collection[str]
) -> None:
    matches = matched.groupBy(ORDINAL).agg(F.count(F.lit(1)).alias("__matches")).where("__matches > 1")
    first = F.min(F.struct(ORDINAL, "__matches"))
    affected, found = matches.agg(F.count(F.lit(1)), first).collect()[0]
    if not affected:
        return
    ordinal, count = found
    doubled = matched.where(f"{ORDINAL} = {ordinal}L").limit(_EXAMPLES).collect()
    compared = sorted(name for table, name in columns_of(join.on.tree) if table == expressing.table)
    values = ", ".join(
        f"{name} {_HIDDEN if name in private else _shown(doubled[0][name])}" for name in compared if name in doubled[0]
    )
    row_id = RowIds(expressing.run_id).row_id(ordinal)
    which = f"the row with {values} ({row_id})" if values else f"the row {row_id}"
    problem = (
        f'step {step.seq} "{step.name}": {count} rows of {join.alias} match {which} on {join.on.text}, '
        f"for example {_told_apart(doubled, join)}"
    )
    told = "1 row" if affected == 1 else f"{affected} rows"
    hint = f"{told} would be duplicated; make the join condition or the data of {join.dataset.name} unique"
    if step.selector is not None and any(table != expressing.table for table, _ in columns_of(step.selector.tree)):
        hint = f"{hint}; conditions of the selector on joined columns apply after the join, so they do not prevent this"
    raise UserError(JOIN_NOT_UNIQUE.at(step.place, problem=problem, hint=hint, seq=step.seq, row_id=row_id))


def _told_apart(doubled: Sequence[Record], join: Join) -> str:
    """Rows of the joined dataset by the columns in which they differ."""
    columns = [(column.name, joined_column(join.alias, column.name)) for column in join.dataset.columns]
    differing = [pair for pair in columns if len({row[pair[1]] for row in doubled}) > 1] or columns
    private = {column.name for column in join.dataset.columns if column.privacy}
    told = differing[:_COLUMNS]
    return " and ".join(
        "(" + ", ".join(f"{name} {_HIDDEN if name in private else _shown(row[joined])}" for name, joined in told) + ")"
        for row in doubled
    )


_HIDDEN = "…"
"""In place of a personal or secret value."""


def _shown(value: object) -> object:
    return "NULL" if value is None else value
