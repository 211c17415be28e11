"""Runs in simulated worlds: whatever fails, and in whatever order, what must hold holds.

`make simulate SEEDS=10000` tries more seeds; `make simulate SEED=7` replays one with its log.
"""

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation.__main__ import main
from tests.simulation.kernel import RATES
from tests.simulation.simulated_store import DatabaseFile
from tests.simulation.world import simulate

pytestmark = pytest.mark.slow

SEEDS = range(1, 101)


def test_a_hundred_seeds_keep_all_promises_and_meet_all_faults(file: DatabaseFile) -> None:
    outcomes = [simulate(seed, file) for seed in SEEDS]
    assert [f"seed {each.seed}: {each.violation}" for each in outcomes if each.violation is not None] == []
    met = sum((Counter(each.faults) for each in outcomes), Counter[str]())
    assert set(met) == set(RATES)


def test_the_same_seed_gives_the_same_log_in_any_process() -> None:
    logs = []
    for hash_seed in ("0", "4711"):
        asked = [sys.executable, "-m", "tests.simulation", "--seed", "5"]
        done = subprocess.run(asked, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
        logs.append(done.stdout)
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") > 300
    assert b"FAULT" in logs[0]


def test_another_seed_gives_another_log(file: DatabaseFile) -> None:
    assert simulate(6, file).digest != simulate(7, file).digest


def test_a_seed_does_not_depend_on_the_one_before(file: DatabaseFile) -> None:
    first = simulate(8, file)
    simulate(9, file)
    assert simulate(8, file).digest == first.digest


def test_the_command_tells_how_many_seeds_it_tried_and_which_faults_struck(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "11"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("2 seeds in ")
    assert "faults:" in told
    assert told.endswith("All invariants hold.\n")


def test_the_command_tries_seeds_for_as_long_as_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.0001", "--first", "12"]) == 0
    assert capsys.readouterr().out.startswith("1 seeds in ")


def test_several_processes_try_the_same_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "11"]) == 0
    alone = capsys.readouterr().out.splitlines()[1:]
    assert main(["--seeds", "2", "--first", "11", "--processes", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == alone
