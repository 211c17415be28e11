"""A clew.yaml with an error: commands name it, and work on nothing in place of what it says."""

from pathlib import Path

import pytest

from tests.cli.conftest import Clew

COMMANDS = (
    ("runs",),
    ("runs", "--env", "prod"),
    ("run", "gl-close", "--period", "2026-01"),
    ("projects",),
    ("gc",),
    ("verify", "--all"),
    ("datasets",),
    ("activate", "gl-close"),
    ("token", "create", "someone", "--role", "admin"),
)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("storage_root: s4://ledger/clew", 'the scheme "s4", which Clew does not know'),
        ("storage_root: .clew/prod/storage/dev", "are inside each other"),
        ("privcy: {}", "privcy"),
    ],
    ids=["unknown scheme", "root in a root", "misspelt"],
)
def test_no_command_takes_the_defaults_for_settings_with_an_error(
    clew: Clew, sample: Path, setting: str, says: str
) -> None:
    settings = sample / "clew.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("    mode: dev\n", f"    mode: dev\n    {setting}\n", 1), encoding="utf-8")
    for words in COMMANDS:
        answer = clew(*words, cwd=sample)
        assert (answer.code, answer.out) == (1, ""), words
        assert says in answer.err.replace("\n  ", " "), (words, answer.err)
        assert answer.err.startswith("clew.yaml:"), words
    assert not (sample / ".clew").exists()


def test_check_still_reports_all_files(clew: Clew, sample: Path) -> None:
    settings = sample / "clew.yaml"
    settings.write_text(settings.read_text(encoding="utf-8") + "nothing: here\n", encoding="utf-8")
    (sample / "projects" / "wrong.yaml").write_text("nothing: here\n", encoding="utf-8")
    for words in (("check",), ("check", "--env", "prod")):
        answer = clew(*words, cwd=sample)
        assert answer.code == 1
        assert "clew.yaml:" in answer.err + answer.out
        assert "projects/wrong.yaml:" in answer.err + answer.out
