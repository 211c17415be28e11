"""The ids of a file's rows, as traces compute them, against those of blocks."""

from hypothesis import given
from hypothesis import strategies as st

from clew.storage.parts import IdBlock
from clew.tracelink import MAX_NODE_ID, TraceIdBlock

node_ids = st.integers(0, MAX_NODE_ID)
ticks = st.integers(1, (1 << 52) - 10_000)


@given(node_id=node_ids, first_tick=ticks, position=st.integers(0, 9_999))
def test_the_rows_of_a_file_have_the_ids_of_its_block(node_id: int, first_tick: int, position: int) -> None:
    block, reserved = IdBlock(node_id, first_tick), TraceIdBlock(node_id, first_tick, 10_000)
    assert block.trace_id(position) == reserved.trace_id(position)
    assert block.position(block.trace_id(position)) == position


@given(node_id=node_ids, first_tick=ticks, other=node_ids, tick=ticks)
def test_an_id_of_another_node_or_of_earlier_ticks_has_no_position(
    node_id: int, first_tick: int, other: int, tick: int
) -> None:
    trace_id = TraceIdBlock(other, tick, 1).trace_id(0)
    found = IdBlock(node_id, first_tick).position(trace_id)
    assert found == (tick - first_tick if other == node_id and tick >= first_tick else None)
