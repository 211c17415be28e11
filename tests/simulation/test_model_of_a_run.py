"""Logs of runs against the model that TLC checks: moves that it has are taken, and no others.

The simulation holds every run of every seed against it.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.model import ACTIONS, INVARIANTS, NotInTheModel, RunModel

SPECIFICATION = (Path(__file__).parents[2] / "tools" / "model" / "run.tla").read_text(encoding="utf-8")


def a_run() -> RunModel:
    """A worker has loaded; another has taken the run from it."""
    run = RunModel()
    run.claim("a", 1)
    run.store(1)
    run.commit("a", 0, 1)
    run.claim("b", 2)
    return run


def test_a_run_that_is_overtaken_and_sent_twice_is_in_the_model() -> None:
    run = a_run()
    run.store(2)
    run.commit("b", 10, 2)
    for number in (1, 2):
        run.deliver(number)
    run.confirm(1)
    run.deliver(1)
    run.bury(2)
    run.release("b", 3)
    assert set(run.seen) == set(ACTIONS)


@pytest.mark.parametrize(
    ("move", "why"),
    [
        (lambda run: run.claim("a", 2), "token 2 follows 2"),
        (lambda run: run.release("a", 3), "a does not have the run"),
        (lambda run: run.commit("a", 10, 1), "a does not have the run"),
        (lambda run: run.commit("b", 10, 1), "written under token 1, not 2"),
        (lambda run: run.commit("b", 0, 2), "EachStepOnce does not hold"),
        (lambda run: (run.commit("b", 20, 2), run.commit("b", 10, 2)), "InOrder does not hold"),
        (lambda run: run.store(3), "event 3 follows 1"),
        (lambda run: run.deliver(2), "there is no event 2"),
        (lambda run: run.confirm(1), "the bus does not have event 1"),
        (lambda run: (run.bury(1), run.bury(1)), "event 1 does not wait"),
    ],
)
def test_a_move_that_the_model_does_not_have_is_refused(move: Callable[[RunModel], object], why: str) -> None:
    with pytest.raises(NotInTheModel, match=why):
        move(a_run())


def test_a_person_may_skip_a_step_before_its_turn_and_only_once() -> None:
    run = a_run()
    run.skip("b", 20)
    run.commit("b", 10, 2)
    with pytest.raises(NotInTheModel, match="EachStepOnce"):
        run.commit("b", 20, 2)


def test_a_loss_is_seen_whatever_happens_next() -> None:
    run = a_run()
    run.entries.discard(1)
    with pytest.raises(NotInTheModel, match="NothingIsLost"):
        run.claim("c", 3)


def test_actions_and_invariants_are_those_of_the_specification() -> None:
    defined = set(re.findall(r"^(\w+)(?:\(\w+\))? ==", SPECIFICATION, re.MULTILINE))
    assert {*ACTIONS, *INVARIANTS, "Store"} <= defined
