"""The insurance sample without Spark: its files, its projects, its scenarios."""

from pathlib import Path

import pytest
from tools.make_insurance_data import SAMPLE_DATA, everything

from clew.cli.main import run as command
from clew.definitions import load_workspace
from clew.plan import compile_workspace


def test_its_files_are_those_that_the_generator_makes() -> None:
    assert {path.relative_to(SAMPLE_DATA).as_posix(): path.read_bytes() for path in SAMPLE_DATA.rglob("*.*")} == (
        everything()
    )


def test_it_compiles_and_its_scenarios_pass_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["init", "insurer", "--sample", "insurance"]) == 0
    monkeypatch.chdir("insurer")
    loaded = load_workspace(Path.cwd())
    compiled = compile_workspace(loaded.workspace)
    assert (loaded.diagnostics, compiled.diagnostics, compiled.notes) == ((), (), ())
    assert sorted(compiled.plans) == ["claims-incurred", "loss-ratio", "loss-triangle", "payments-close"]
    assert command(["test", "--quick"]) == 0
    assert "3 scenarios: 3 passed" in capsys.readouterr().out
