from array import array
from multiprocessing import get_context

import pytest

from clew.tracelink import TraceIdGenerator, decompose

PROCESSES = 8
IDS_EACH = 50_000


def mint(node_id: int) -> bytes:
    generator = TraceIdGenerator(node_id)
    ids = array("Q", (generator.next_id() for _ in range(IDS_EACH // 2)))
    ids.extend(generator.reserve_block(IDS_EACH // 4))
    ids.extend(generator.next_id() for _ in range(IDS_EACH // 4))
    return ids.tobytes()


@pytest.mark.slow
def test_processes_with_their_own_node_ids_mint_400_000_ids_and_none_twice() -> None:
    with get_context("spawn").Pool(PROCESSES) as pool:
        minted = pool.map(mint, range(PROCESSES), chunksize=1)
    ids = array("Q")
    for node_id, raw in enumerate(minted):
        own = array("Q", raw)
        assert list(own) == sorted(own)
        assert {decompose(i).node_id for i in own} == {node_id}
        ids.extend(own)
    assert len(ids) == len(set(ids)) == PROCESSES * IDS_EACH
