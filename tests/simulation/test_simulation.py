"""Runs in simulated worlds: whatever fails, and in whatever order, what must hold holds.

`make simulate SEEDS=10000` tries more seeds; `make simulate SEED=7` replays one with its log.
"""

import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulation.__main__ import main
from tests.simulation.kernel import RATES
from tests.simulation.mutants import MUTANTS, Mutant, mutated
from tests.simulation.simulated_store import DatabaseFile, database_file
from tests.simulation.substitutes import installed
from tests.simulation.world import simulate

pytestmark = pytest.mark.slow

SEEDS = range(1, 41)


@pytest.fixture(scope="module")
def file() -> Iterator[DatabaseFile]:
    """The substitutes, and a database for all seeds."""
    logging.disable(logging.CRITICAL)
    with database_file() as file, installed():
        yield file
    logging.disable(logging.NOTSET)


def test_forty_seeds_keep_all_promises_and_meet_all_faults(file: DatabaseFile) -> None:
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


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulation_finds_planted_mistakes(file: DatabaseFile, mutant: Mutant) -> None:
    with mutated(mutant):
        found = next((seed for seed in mutant.tried if mutant.simulated(seed, file).violation is not None), None)
    assert found is not None
    assert mutant.simulated(found, file).violation is None, "the mistake is found, and not the weather"


def test_the_command_tells_how_many_seeds_it_tried_and_which_faults_struck(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "11"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("2 seeds in ")
    assert "faults:" in told
    assert told.endswith("All invariants hold.\n")


def test_the_command_says_how_to_replay_a_seed_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    mutant = next(each for each in MUTANTS if each.name == "entries leave the outbox before delivery")
    seed = mutant.tried[0]
    assert main(["--seeds", "1", "--first", str(seed), "--mutant", mutant.name]) == 1
    told = capsys.readouterr().out
    assert "1 every event is delivered or a dead letter" in told
    assert f'make simulate SEED={seed} MUTANT="{mutant.name}"' in told
    assert main(["--seed", str(seed), "--mutant", mutant.name]) == 1
    log = capsys.readouterr().out
    assert "VIOLATION every event is delivered or a dead letter" in log
    assert log.count("\n") > 100


def test_the_command_tries_seeds_for_as_long_as_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.0001", "--first", "12"]) == 0
    assert capsys.readouterr().out.startswith("1 seeds in ")


def test_several_processes_try_the_same_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--first", "11"]) == 0
    alone = capsys.readouterr().out.splitlines()[1:]
    assert main(["--seeds", "2", "--first", "11", "--processes", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == alone
