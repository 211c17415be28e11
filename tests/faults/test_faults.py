"""A call of a run fails: the run fails cleanly or succeeds, a retry succeeds, and everything verifies.

`make faults` tries every call; here, a few of each kind are tried, on the shop that runs without Spark.
"""

from collections.abc import Iterator

import pytest

from tests.faults.__main__ import Fault, main
from tests.faults.calls import KINDS
from tests.faults.sites import HOOK_FAULTS, Place, shop
from tests.faults.trial import calls_of, tried

TRIED = 2
"""How many calls of each kind."""

FAULTS = {"file": KINDS["file"][0], "sql": KINDS["sql"][0], "http": HOOK_FAULTS}
EACH = [(kind, fault) for kind, faults in FAULTS.items() for fault in faults]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with shop() as made:
        yield made


@pytest.fixture(scope="module")
def calls(place: Place) -> dict[str, list[str]]:
    return {kind: calls_of(place, kind) for kind in place.kinds}


@pytest.mark.parametrize(("kind", "fault"), EACH)
def test_a_run_fails_cleanly_or_succeeds_whichever_call_fails(
    place: Place, calls: dict[str, list[str]], kind: str, fault: str
) -> None:
    count = Fault(kind, fault, calls[kind]).count
    trials = [tried(place, kind, fault, count * number // (TRIED + 1) or 1) for number in range(1, TRIED + 1)]
    assert [trial.problems for trial in trials] == [[]] * TRIED
    assert any(trial.struck for trial in trials), "no call was reached"


def test_the_calls_of_a_run_are_counted(calls: dict[str, list[str]]) -> None:
    assert {"open to write", "open to read", "write", "fsync", "link", "mkdir"} <= set(calls["file"])
    assert {"begin", "execute", "commit"} <= set(calls["sql"])
    assert set(calls["http"]) == {"POST"}


def test_the_command_tells_what_one_call_has_come_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--place", "shop", "--kind", "sql", "--fault", "full", "--call", "40"]) == 0
    told = capsys.readouterr().out
    assert "sql full: 0 calls, 1 trials" in told
    assert told.rstrip().endswith("0 with problems")
