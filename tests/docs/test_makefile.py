"""The Makefile: what it lists, and what it says on a machine without Java."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def make(target: str, path: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("make")
    assert program is not None
    # MAKEFLAGS and MAKELEVEL are those of the make that may be running the tests.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        [program, "--no-print-directory", target],
        cwd=ROOT,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the programs of every machine, and no Java."""
    for name in ("sh", "sed", "head", "printf"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    return tmp_path


def test_help_lists_every_target_for_people(tools: Path) -> None:
    answer = make("help", str(tools))
    listed = {line.split()[1] for line in answer.stdout.splitlines()}
    [phony_line] = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    phony = set(phony_line.split())
    assert answer.returncode == 0
    assert listed == phony - {"java"}
    assert {"demo", "check", "test", "help", "bench"} <= listed


@pytest.mark.parametrize("target", ["demo", "test", "bench"])
def test_without_java_one_line_says_how_to_get_it(tools: Path, target: str) -> None:
    answer = make(target, str(tools))
    [line] = answer.stdout.splitlines()
    assert answer.returncode != 0
    assert line.startswith("Java 17 or newer is missing: install it (")
    assert "openjdk-17" in line


def test_an_old_java_is_told_apart(tools: Path) -> None:
    java = tools / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.20\" 2023-07-18' >&2\n")
    java.chmod(0o755)
    [line] = make("java", str(tools)).stdout.splitlines()
    assert line.startswith("Java 11 is too old: install Java 17 or newer (")


def test_a_new_java_is_enough(tools: Path) -> None:
    java = tools / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"25\" 2026-09-16' >&2\n")
    java.chmod(0o755)
    answer = make("java", str(tools))
    assert (answer.returncode, answer.stdout) == (0, "")
