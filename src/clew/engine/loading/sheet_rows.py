"""Rows of XLSX sheets: read by this process, handed to Spark as a file of texts with the numbers of their rows."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.conversions import BROKEN, RawRows, text_cell
from clew.engine.loading.sources import Origin, mismatch, place, positions_of, unavailable
from clew.engine.loading.text_rows import FoundFile, header_names, names_by_position, with_period
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import ResolvedSource
from clew.storage.drafts import Draft
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE
from clew.storage.sheets import NO_SAVED_VALUE, Sheet, SheetProblem, opened_sheet, shown_sheet, texts_of

_BATCH = 5_000


def sheet_rows(
    spark: SparkSession, use: DatasetUse, source: ResolvedSource, found: Sequence[FoundFile], transfer: Draft
) -> list[RawRows]:
    """The rows of one sheet of each workbook."""
    raws = list[RawRows]()
    for number, each in enumerate(found):
        try:
            with opened_sheet(each.file, source.options) as sheet:
                if sheet is not None:
                    raws.append(_rows(spark, use, source, each, sheet, transfer, number))
                elif source.options.get("header", "true").lower() == "true":
                    raise mismatch(f"{each.file.shown} is empty: it has no header", "write a header")
        except SheetProblem as problem:
            raise unavailable(str(problem), problem.hint) from None
        except OutOfReach:
            raise
        except OSError as error:
            raise unavailable(f"cannot read {each.file.shown}: {error.strerror or error}") from None
    return raws


def _rows(
    spark: SparkSession,
    use: DatasetUse,
    source: ResolvedSource,
    found: FoundFile,
    sheet: Sheet,
    transfer: Draft,
    number: int,
) -> RawRows:
    rules = source.rules
    origin = Origin(shown_sheet(found.file, sheet.title), found.period)
    if sheet.names is None:
        names = names_by_position(use, [""] * sheet.width, origin)
        positions = positions_of(use, names, origin)
    else:
        names = header_names(sheet.names, rules)
        positions = positions_of(use, names, origin, rules)
    columns = {column: f"f{index}" for index, column in enumerate(positions)}
    name = f"sheet-{number:05}.parquet"
    schema = pa.schema([(SOURCE_LINE, pa.int64()), *((field, pa.string()) for field in columns.values())])
    with transfer.create(name) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(sheet, positions, source, origin):
            writer.write_batch(pa.record_batch(batch, schema=schema))
    fields = ", ".join([f"{SOURCE_LINE} BIGINT", *(f"{field} STRING" for field in columns.values())])
    rows = spark.read.schema(fields).parquet(transfer.root.spark_uri(f"{transfer.folder}/{name}"))
    placed = rows.select("*", F.lit(origin.shown).alias(SOURCE_FILE), F.lit(None).cast("STRING").alias(BROKEN))
    cells = {column: text_cell(field, rules.of(column), empty_is_null=True) for column, field in columns.items()}
    period = None if PERIOD_COLUMN in positions else found.period
    return RawRows(placed, with_period(use, cells, period))


def _batches(
    sheet: Sheet, positions: Mapping[str, int], source: ResolvedSource, origin: Origin
) -> Iterator[list[pa.Array]]:
    numbers, texts = list[int](), {column: list[str | None]() for column in positions}
    for number, cells in sheet.rows:
        for column, position in positions.items():
            if position < len(cells) and cells[position] is NO_SAVED_VALUE:
                problem = (
                    f'the formula in the column "{column}" has no saved value, in {place(origin.shown, number, "row")}'
                )
                raise SheetProblem(problem, "open the workbook in a spreadsheet program, and save it")
        numbers.append(number)
        for column, text in texts_of(cells, positions, source.rules).items():
            texts[column].append(text)
        if len(numbers) == _BATCH:
            yield [pa.array(numbers, pa.int64()), *(pa.array(each, pa.string()) for each in texts.values())]
            numbers, texts = [], {column: [] for column in positions}
    yield [pa.array(numbers, pa.int64()), *(pa.array(each, pa.string()) for each in texts.values())]
