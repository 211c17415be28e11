"""Trace ids of rows on Spark: blocks that are reserved when rows are written, and arithmetic on ordinals ever after.

Rows that are loaded get a block for each pinned file, unless the file carries the ids of a registered dataset. Rows
that a step sums up get a block too; rows that are appended as they are keep the ids of their source, in a column. So
recomputing, retrying and resuming give the same ids, and nothing is stored for a row that has its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from clew.deferred import dataclass
from clew.engine.names import with_sql
from clew.engine.parts import are_few, read_part
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted
from clew.engine.table_rows import PerFile, is_of_table, table_rows
from clew.plan.operations import CreatingStep
from clew.plan.plan import Plan
from clew.storage.parts import (
    CARRIED,
    ORDINAL,
    SOURCE_FILE,
    SOURCE_LINE,
    TRACE_ID,
    IdBlock,
    Part,
    PartFile,
    PartLineage,
)
from clew.storage.root import StorageRoot
from clew.storage.row_identity import ROW_INDEX_BITS, ordinal_of
from clew.storage.trace_id_bits import SEQUENCE_BITS, STRIDE, node_bits
from clew.tracelink import PublishedBlock, TraceIdBlock
from clew.tracelink.part_blocks import published_blocks

LINKS_UP_TO_ROWS = 100_000
"""Steps that look at no more rows than these write the links of their summaries with them, others leave windows.

Links of a small step cost next to nothing and are read at once. Those of a large one would cost a quarter of the job
and more, while a window (the step, its selector, the keys of the summary) is there anyway; its source rows are
derived on demand, or by an expansion of the run.
"""


class TraceIdSource(Protocol):
    """Where a run gets its trace ids from. Never raises: a run without ids is a run all the same."""

    def reserve(self, count: int) -> TraceIdBlock | None:
        """This many ids that are never given out again; None where none are available."""
        ...

    def publish(self, blocks: Sequence[PublishedBlock]) -> None:
        """Make known which rows have which ids."""
        ...


@dataclass(frozen=True, slots=True)
class TraceLinking:
    """How a run takes part in TraceLink."""

    ids: TraceIdSource | None = None
    """None for runs whose rows need no lineage, such as those of scenarios."""
    links_up_to_rows: int = LINKS_UP_TO_ROWS

    def identified(self, part: Part) -> Part:
        """The part with ids for the rows of all files that have none yet: one block, in the order of the files."""
        lacking = [file for file in part.files if file.ids is None]
        block = self.ids.reserve(sum(file.rows for file in lacking)) if self.ids is not None and lacking else None
        if block is None:
            return part
        tick, files = block.first_tick, list[PartFile]()
        for file in part.files:
            if file.ids is None:
                files.append(replace(file, ids=IdBlock(block.node_id, tick)))
                tick += file.rows
            else:
                files.append(file)
        return replace(part, files=tuple(files))

    def publish(self, run_id: str, parts: Sequence[Part]) -> None:
        """Make the blocks of parts known."""
        blocks = [block for part in parts for block in published_blocks(run_id, part)]
        if self.ids is not None and blocks:
            self.ids.publish(blocks)

    def writes_links(self, rows: int) -> bool:
        """Whether a step that looks at so many rows writes links."""
        return self.ids is not None and rows <= self.links_up_to_rows


def carrying(part: Part, root: StorageRoot) -> Part:
    """A pinned part, with what the files of a registered dataset say about ids. Those of an older Clew say nothing."""
    if (part.details or {}).get("format") != "managed":
        return part
    return replace(part, files=tuple(replace(file, ids=_carried(root, file)) for file in part.files))


def _carried(root: StorageRoot, file: PartFile) -> Literal["carried"] | None:
    """A file that cannot be read is reported when its rows are read. Rows of a table get ids that link to theirs."""
    if file.view is not None:
        return None
    try:
        with root.open_parquet(file.path) as opened:
            return CARRIED if TRACE_ID in opened.schema_arrow.names else None
    except (pa.ArrowException, OSError):
        return None


def lineage_of(
    linking: TraceLinking, plan: Plan, step: CreatingStep, parts: Sequence[Part]
) -> tuple[PartLineage, Callable[[Part], Part]]:
    """How the rows that a step is about to create lead to their source rows, and what gives their part its ids."""
    inputs = {part.name: part for part in parts if part.kind == "input"}
    if step.made_from is None:
        looked_at = [inputs[plan.input.key], *(part for part in parts if part.kind == "created")]
    else:
        looked_at = [inputs[step.made_from.key]]
    if step.keys is None:
        return "continues", _continued if any(file.ids for file in looked_at[0].files) else linking.identified
    rows = sum(file.rows for part in looked_at for file in part.files)
    return "links" if linking.writes_links(rows) else "window", linking.identified


def _continued(part: Part) -> Part:
    """A part whose rows were written with the ids of the rows that they come from."""
    return replace(part, files=tuple(replace(file, ids=CARRIED) for file in part.files))


def carries_ids(part: Part) -> bool:
    """Whether any file of a part holds ids in a column."""
    return any(file.ids == CARRIED for file in part.files)


def read_traced(spark: SparkSession, root: StorageRoot, part: Part, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows of an input or created part with their ordinals and their trace ids, NULL where they have none."""
    if is_of_table(part) and not are_few(part):
        return _of_table(spark, root, part, columns)
    carried = [(TRACE_ID, "BIGINT")] if carries_ids(part) else []
    rows = read_part(spark, root, part, [*columns, *carried])
    return with_sql(rows, {TRACE_ID: _trace_id_sql(part)})


_TICK, _NODE = "__tick", "__node"


def _of_table(spark: SparkSession, root: StorageRoot, part: Part, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows of a table. There may be many files, so that what their ids begin with is found with the file."""
    per_file: PerFile = {
        _TICK: ("BIGINT", lambda file: file.ids.first_tick if isinstance(file.ids, IdBlock) else None),
        _NODE: ("BIGINT", lambda file: node_bits(file.ids.node_id) if isinstance(file.ids, IdBlock) else None),
    }
    names = [name for name, _ in columns if name not in {SOURCE_FILE, SOURCE_LINE}]
    rows = table_rows(spark, root, part, names, per_file)
    typed = (f"CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in columns)
    tick = f"({_TICK} + {SOURCE_LINE} - 1)"
    minted = f"({tick} + shiftright({tick}, {SEQUENCE_BITS}) * {STRIDE}L + {_NODE})"
    return select_sql(rows, [*typed, ORDINAL, f"{minted} AS {TRACE_ID}"])


def _trace_id_sql(part: Part) -> str:
    minted = _minted_sql([file for file in part.files if isinstance(file.ids, IdBlock)])
    return f"coalesce({TRACE_ID}, {minted})" if carries_ids(part) else minted


def _minted_sql(files: Sequence[PartFile]) -> str:
    """The ids of a block. An ordinal counts the rows of its file, so that it differs from the tick by a constant."""
    blocks = [(file.ordinal or 0, file.ids) for file in files if isinstance(file.ids, IdBlock)]
    if not blocks:
        return "CAST(NULL AS BIGINT)"
    shift = _by_file([(number, block.first_tick - ordinal_of(number, 0)) for number, block in blocks])
    base = _by_file([(number, node_bits(block.node_id)) for number, block in blocks])
    tick = f"({ORDINAL} + {shift})"
    return f"({tick} + shiftright({tick}, {SEQUENCE_BITS}) * {STRIDE}L + {base})"


def _by_file(values: Sequence[tuple[int, int]]) -> str:
    """A number that may differ from file to file, by the number of the file in an ordinal."""
    if len(values) == 1:
        return f"{values[0][1]}L"
    pairs = ", ".join(f"{number}L, {value}L" for number, value in values)
    return f"try_element_at(map({pairs}), shiftright({ORDINAL}, {ROW_INDEX_BITS}))"
