"""`--param`: values of parameters on the command line, in the plan, in runs and in refusals."""

from pathlib import Path

import pytest

from tests.cli.cli_fake_engine import FakeEngine
from tests.cli.conftest import Clew

DECLARED = "parameters:\n  floor: {type: integer, default: 5, allowed: [5, 7]}\ninput_dataset:"
RUN = ("run", "gl-close", "--period", "2026-01", "--json")


@pytest.fixture
def with_floor(sample: Path) -> Path:
    project = sample / "projects" / "gl-close.yaml"
    text = project.read_text(encoding="utf-8")
    assert "\ninput_dataset:" in text
    project.write_text(text.replace("\ninput_dataset:", f"\n{DECLARED}", 1), encoding="utf-8")
    return sample


@pytest.mark.parametrize(("words", "value"), [((), "5"), (("--param", "floor=7"), "7")])
def test_a_run_keeps_the_values_it_was_given(
    clew: Clew, with_floor: Path, engine: FakeEngine, words: tuple[str, ...], value: str
) -> None:
    del engine
    answer = clew(*RUN, *words, cwd=with_floor)
    assert answer.code == 0, answer.err
    shown = clew("show", answer.json["run_id"], "--json", cwd=with_floor)
    assert shown.json["parameters"] == {"floor": value}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--param", "floor=6"), 1, "InvalidParameter"),
        (("--param", "floor=low"), 1, "InvalidParameter"),
        (("--param", "flor=7"), 1, "UnknownParameter"),
        (("--param", "floor"), 2, "--param"),
        (("--param", "floor=7", "--param", "floor=5"), 2, "--param"),
    ],
)
def test_a_value_that_cannot_be_is_refused_before_there_is_a_run(
    clew: Clew, with_floor: Path, engine: FakeEngine, words: tuple[str, ...], code: int, told: str
) -> None:
    del engine
    answer = clew("run", "gl-close", "--period", "2026-01", *words, cwd=with_floor)
    assert (answer.code, told in answer.err + answer.out) == (code, True), (answer.out, answer.err)
    assert "Traceback" not in answer.err
    assert clew("runs", "--json", cwd=with_floor).json["runs"] == []
