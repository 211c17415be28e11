import pytest

from tests.chaos.chaos import Plan, place, wreak

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "postgresql", [False, pytest.param(True, marks=pytest.mark.postgres)], ids=["sqlite", "postgresql"]
)
def test_workers_that_are_killed_at_random_lose_and_double_nothing(postgresql: bool) -> None:
    with place(postgresql=postgresql) as (url, folder):
        outcome = wreak(url, folder, Plan(seconds=4, runs=12, workers=3, seed=7))
    assert outcome.problems == []
    assert outcome.kills > 0
