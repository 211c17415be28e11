from pathlib import Path

import pytest

from tests.chaos.trace_id_chaos import Plan, wreak

pytestmark = pytest.mark.slow


def test_processes_that_are_killed_and_frozen_and_whose_clocks_step_mint_no_id_twice(tmp_path: Path) -> None:
    (tmp_path / "ids").mkdir()
    outcome = wreak(f"sqlite:///{tmp_path}/state.db", tmp_path / "ids", Plan(seconds=5, processes=4, seed=7))
    assert outcome.repeated == 0
    assert outcome.ids > 0
    assert outcome.kills > 0
    assert outcome.freezes > 0
