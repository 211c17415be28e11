"""What a run accepts as input: rows that keep the rules of their dataset, and at least one where it needs one."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from clew.definitions.file_options import OWN_FORMATS, own_format
from clew.diagnostics import UserError
from clew.engine.loading.checking import Checking, Findings, require_unique_key
from clew.engine.loading.sources import PinRequest, unavailable
from clew.engine.parts import DraftedPart
from clew.engine.sql import quoted, spark_type
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE


def require_good(
    spark: SparkSession,
    request: PinRequest,
    sources: Sequence[str],
    unit: str,
    checking: Checking,
    findings: Findings,
    drafted: DraftedPart,
) -> None:
    """Rows that break a rule are never published."""
    source = request.sources[0]
    is_file = source.kind == "path" and own_format(source.format) in OWN_FORMATS
    problem = checking.problem(findings, unit, offers_quarantine=is_file)
    if problem is not None:
        raise problem
    require_unique_key(spark, request.use, drafted, unit)
    if not drafted.part.files and not request.may_be_empty:
        kept_apart = findings.rows_wrong if source.rules.bad_rows == "quarantine" else 0
        raise nothing_to_load(request, sources, findings.rows_read, kept_apart)


def nothing_to_load(request: PinRequest, sources: Sequence[str], rows_read: int, kept_apart: int = 0) -> UserError:
    """A run without a single row would replace good outputs with empty ones."""
    period = request.period.identifier
    place = f"{', '.join(sources[:3])}{' and others' if len(sources) > 3 else ''}"
    problem = f'{place} {"has" if len(sources) == 1 else "have"} no rows of "{request.use.name}"'
    if request.use.temporal_mode != "none":
        problem = f'{problem} for the period "{period}"'
    if kept_apart:
        problem = f"{problem}; {kept_apart:,} of {rows_read:,} rows are not as the dataset says"
    elif rows_read:
        others = "the row there is" if rows_read == 1 else f"the {rows_read:,} rows there are"
        problem = f"{problem}; {others} not of this period"
    hint = f'put the data of "{period}" there; `may_be_empty: true` in the dataset lets runs continue without rows'
    return unavailable(problem, hint)


def no_rows(spark: SparkSession, checking: Checking) -> DataFrame:
    """No rows, with the columns of an input."""
    columns = [(column.name, spark_type(column.type)) for column in checking.columns]
    columns += [("_period", "STRING"), (SOURCE_FILE, "STRING"), (SOURCE_LINE, "BIGINT")]
    return spark.createDataFrame([], ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns))
