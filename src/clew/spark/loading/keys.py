"""The natural key of loaded rows: no two rows of a period have the same."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from clew.model.dataset import PERIOD_COLUMN
from clew.plan.datasets import DatasetUse
from clew.spark.loading.problems import mismatch, place, shown
from clew.spark.sql import quoted
from clew.trace.layout import SOURCE_FILE, SOURCE_LINE, Part

_FEW_ROWS = 100_000
"""Up to here keys are compared in this process, which takes less time than to ask Spark."""


def require_unique_key(spark: SparkSession, use: DatasetUse, root: Path, part: Part, unit: str) -> None:
    """Raise where two rows have the same natural key, naming the key and both rows."""
    if not use.natural_key or sum(file.rows for file in part.files) < 2:
        return
    names = _key_columns(use)
    if sum(file.rows for file in part.files) <= _FEW_ROWS and _are_unique(root, part, names):
        return
    keys = [quoted(name) for name in names]
    rows = spark.read.parquet(*(str(root / file.path) for file in part.files))
    hashed = rows.select(F.xxhash64(*keys).alias("__hash"))
    suspects = [row[0] for row in hashed.groupBy("__hash").count().where("count > 1").limit(100).collect()]
    if not suspects:
        return
    origin = F.struct(F.col(SOURCE_FILE).alias("file"), F.col(SOURCE_LINE).alias("line"))
    twice = (
        rows.where(F.xxhash64(*keys).isin(suspects))
        .groupBy(*keys)
        .agg(F.count(F.lit(1)).alias("__rows"), F.min(origin).alias("__one"), F.max(origin).alias("__other"))
        .where("__rows > 1")
        .orderBy("__one")
        .limit(1)
        .collect()
    )
    if twice:
        row = twice[0]
        places = [place(row[name]["file"], row[name]["line"], unit) for name in ("__one", "__other")]
        count = row["__rows"]
        told = f'two rows of "{use.name}"' if count == 2 else f'{count} rows of "{use.name}"'
        where = f"{places[0]}, and {places[1]}"
        raise mismatch(f"{told} have the natural key {_shown_key(use, names, row)}: {where}", "remove one of them")


def _are_unique(root: Path, part: Part, names: Sequence[str]) -> bool:
    columns = list(names)
    rows = pa.concat_tables([pq.read_table(root / file.path, columns=columns) for file in part.files])
    return bool(rows.group_by(columns).aggregate([]).num_rows == rows.num_rows)


def _key_columns(use: DatasetUse) -> list[str]:
    """A key tells rows of one period apart; the same key may come again in the next."""
    by_folded = {column.name.casefold(): column.name for column in use.columns}
    names = [by_folded.get(name.casefold(), name) for name in use.natural_key]
    if use.temporal_mode == "period" and PERIOD_COLUMN not in names:
        names.append(PERIOD_COLUMN)
    return names


def _shown_key(use: DatasetUse, names: Sequence[str], row: Row) -> str:
    private = {column.name for column in use.columns if column.privacy}
    return ", ".join(f"{name} {'…' if name in private else shown(str(row[name]))}" for name in names)
