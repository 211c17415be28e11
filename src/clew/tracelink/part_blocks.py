"""The blocks of trace ids that the rows of a part have."""

from collections.abc import Iterator

from clew.storage.parts import IdBlock, Part
from clew.storage.row_identity import RowIds
from clew.tracelink.frames import PublishedBlock
from clew.tracelink.ids import TraceIdBlock


def published_blocks(run_id: str, part: Part) -> Iterator[PublishedBlock]:
    """The blocks of a part: one for each file whose rows have new ids."""
    for file in part.files:
        if isinstance(file.ids, IdBlock) and part.kind in {"input", "created"}:
            yield PublishedBlock(
                block=TraceIdBlock(file.ids.node_id, file.ids.first_tick, file.rows),
                run_id=run_id,
                operation_seq=part.seq,
                stream_id=part.seq,
                epoch=RowIds(run_id).epoch,
                first_seq=file.first_ordinal,
            )
