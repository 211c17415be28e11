"""A sample workspace to work on, and the command line as a function."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import run
from clew.sample import write_sample
from tests.cli.cli_fake_engine import FakeEngine


@dataclass(frozen=True)
class Answer:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one document that it is."""
        return json.loads(self.out)


Clew = Callable[..., Answer]
"""A command, given as its words and the folder to run it in."""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A fresh sample workspace."""
    write_sample(tmp_path / "ledger")
    return tmp_path / "ledger"


@pytest.fixture
def clew(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clew:
    """Runs a command in a folder, as `clew` would."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str | Path, cwd: Path = tmp_path) -> Answer:
        monkeypatch.chdir(cwd)
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def engine(sample: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Runs of the sample workspace go to this engine instead of Spark."""
    made = FakeEngine(sample / ".clew" / "storage")
    monkeypatch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: made)
    for opener in ("session_of", "brief_session_of"):
        monkeypatch.setattr(f"clew.api.starting.{opener}", lambda *_arguments: None)
    return made
