"""Mistakes that are made on purpose are found by the simulation: a simulation that finds nothing shows nothing."""

import pytest

from tests.simulation.__main__ import main
from tests.simulation.mutants import MUTANTS, Mutant, mutated
from tests.simulation.simulated_store import DatabaseFile

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulation_finds_planted_mistakes(file: DatabaseFile, mutant: Mutant) -> None:
    with mutated(mutant):
        found = next((seed for seed in mutant.tried if mutant.simulated(seed, file).violation is not None), None)
    assert found is not None
    assert mutant.simulated(found, file).violation is None, "the mistake is found, and not the weather"


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
