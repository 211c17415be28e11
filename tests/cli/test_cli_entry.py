"""The entry point: help, version, exit codes, and that users see no traceback unless they ask for one."""

import errno
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew import __version__
from clew.api.workspace import Workspace
from clew.cli.main import COMMANDS, command_line, main
from clew.diagnostics import EngineBug
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from tests.cli.conftest import Clew

HEAVY = ("pyspark", "duckdb", "fastapi", "sqlalchemy", "pyarrow", "pandas", "pydantic", "rich")


def process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "clew.cli", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


def imported_by(statement: str, cwd: Path) -> set[str]:
    """The heavy modules that a statement has loaded in the end."""
    code = f"import json, sys\n{statement}\nprint(json.dumps([name for name in sys.modules if name in {HEAVY!r}]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, timeout=60, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_installed_command_checks_a_workspace(sample: Path) -> None:
    done = process("check", cwd=sample)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"ok: 2 projects")


@pytest.mark.slow
def test_the_exit_code_of_the_process_is_that_of_the_command(sample: Path, tmp_path: Path) -> None:
    assert process("check", "nothing", cwd=sample).returncode == 3
    assert process("chek", cwd=sample).returncode == 2
    (tmp_path / "clew.yaml").write_text("nam: x\n")
    assert process("check", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    "statement",
    [
        "import clew",
        "import clew.cli, clew.cli.main",
        "from clew.cli.main import run; run(['--help'])",
        "from clew.cli.main import run; assert run(['check']) == 0",
        "from clew.cli.main import run; assert run(['check', '--json']) == 0",
        "from clew.cli.main import run; assert run(['schema', 'project']) == 0",
    ],
)
def test_commands_start_without_heavy_modules(sample: Path, statement: str) -> None:
    assert imported_by(statement, sample) == set()


def test_only_the_command_that_is_called_is_imported(sample: Path) -> None:
    code = (
        "import sys\nfrom clew.cli.main import run\nassert run(['check']) == 0\n"
        "print(*sorted(name for name in sys.modules if name.startswith('clew.cli.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=sample, capture_output=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == b"clew.cli.commands.check"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_declares_what_its_function_takes(name: str) -> None:
    command = command_line().commands[name]
    assert command.callback is not None
    [context, *taken] = inspect.signature(command.callback).parameters
    assert context == "context"
    assert taken == [each.name for each in command.params if each.expose_value]


def test_a_plan_needs_tables_and_nothing_heavier(sample: Path) -> None:
    assert imported_by("from clew.cli.main import run; assert run(['plan', 'gl-close']) == 0", sample) == {"rich"}


@pytest.mark.slow
def test_a_terminal_that_knows_only_ascii_gets_codes_instead_of_an_error(sample: Path) -> None:
    path = sample / "projects" / "gl-close.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("name: Month close", "name: Month-close 売上"), encoding="utf-8"
    )
    done = process("plan", "gl-close", cwd=sample, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u58f2" in done.stdout
    document = process("plan", "gl-close", "--json", cwd=sample, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert json.loads(document.stdout)["title"] == "Month-close 売上"


def test_a_reader_that_goes_away_causes_no_traceback(sample: Path) -> None:
    command = f"{sys.executable} -m clew.cli plan gl-close --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], cwd=sample, capture_output=True, timeout=60, check=False)
    assert done.stdout == b'{\n  "forma'
    assert done.stderr == b""


@pytest.mark.slow
def test_a_place_that_takes_no_more_is_an_error_of_one_line(sample: Path) -> None:
    for command in ("check", "plan gl-close --json", "plan nothing --json"):
        line = f"{sys.executable} -m clew.cli {command} > /dev/full"
        done = subprocess.run(["sh", "-c", line], cwd=sample, capture_output=True, timeout=60, check=False)
        assert done.returncode in {1, 3}
        assert done.stderr.splitlines()[:1] == [
            b"error UnwritableOutput: cannot write the output: No space left on device"
        ]
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr


def test_version(clew: Clew) -> None:
    answer = clew("--version")
    assert (answer.code, answer.out) == (0, f"clew {__version__}\n")


def test_help_lists_every_command_with_its_sentence(clew: Clew) -> None:
    answer = clew("--help")
    assert answer.code == 0
    for name in COMMANDS:
        assert any(line.split()[:1] == [name] and line.endswith(".") for line in answer.out.splitlines()), name
    assert "..." not in answer.out.split("Commands:")[1]
    assert clew().out == answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_takes_json(clew: Clew, command: str) -> None:
    answer = clew(command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: clew {command} ")
    assert "--json" in answer.out
    assert "--verbose" in answer.out
    assert clew(command, "-h").out == answer.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["initt"], "no such command 'initt'. Did you mean 'init'?"),
        (["check", "--fast"], "no such option '--fast'"),
        (["check", "a", "b"], "got unexpected extra argument (b)"),
        (["check", "-w"], "option '-w' requires an argument"),
        (["plan"], "missing argument 'PROJECT'"),
    ],
)
def test_wrong_usage_is_one_line_and_a_hint(clew: Clew, arguments: list[str], message: str) -> None:
    answer = clew(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    first, hint = answer.err.splitlines()
    assert first == f"error WrongUsage: {message}"
    assert hint.endswith("--help` shows the usage")
    error = clew(arguments[0], "--json", *arguments[1:]).json["error"]
    assert (error["code"], error["message"]) == ("WrongUsage", message)


def test_a_mistake_of_clew_itself_says_so_and_shows_no_traceback(
    clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Workspace, "check", fail)
    answer = clew("check", cwd=sample)
    assert answer.code == 1
    assert answer.err.splitlines() == [
        "error InternalError: this is a bug in Clew: ZeroDivisionError: oh",
        "  run the command again with --verbose and report the output",
    ]
    verbose = clew("check", "--verbose", cwd=sample)
    assert verbose.err.startswith("Traceback (most recent call last):")
    document = clew("check", "--json", cwd=sample)
    assert document.json["error"]["code"] == "InternalError"
    assert document.err == ""


def test_a_disk_that_fails_is_no_bug(clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/a/part.json")

    monkeypatch.setattr(Workspace, "check", fail)
    answer = clew("check", cwd=sample)
    assert answer.code == 1
    assert answer.err.splitlines() == [
        "error FileSystemFailed: cannot use runs/a/part.json: No space left on device",
        "  free up space, or check the disk and the permissions there; then try again",
    ]
    assert clew("check", "--json", cwd=sample).json["error"]["code"] == "FileSystemFailed"


def test_a_file_that_clew_itself_has_lost_is_a_mistake_of_clew(
    clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "runs/a/part.json")

    monkeypatch.setattr(Workspace, "check", fail)
    assert clew("check", cwd=sample).err.startswith("error InternalError: this is a bug in Clew: FileNotFoundError: ")


def test_a_broken_promise_between_the_parts_is_a_mistake_of_clew_too(
    clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineBug(INTERNAL_ERROR.anywhere(problem="no plan"))

    monkeypatch.setattr(Workspace, "check", fail)
    assert clew("check", cwd=sample).err.startswith("error InternalError: this is a bug in Clew: no plan\n")


def test_an_interruption_is_said_in_a_word(clew: Clew, sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "check", interrupt)
    answer = clew("check", cwd=sample)
    assert (answer.code, answer.err) == (130, "interrupted\n")


def test_verbose_shows_where_an_error_comes_from(clew: Clew, sample: Path) -> None:
    answer = clew("plan", "nothing", "--verbose", cwd=sample)
    assert answer.code == 3
    assert "Traceback" in answer.err
    assert "error UnknownProject" in answer.err


def test_main_exits_with_the_code(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample)
    monkeypatch.setattr(sys, "argv", ["clew", "check", "nothing"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3


@pytest.mark.parametrize("argument", ["\udcff", "x" * 100_000, "../..", "", "\x1b[2J", "{0}", "%s"])
def test_no_argument_is_strange_enough_for_a_traceback(clew: Clew, sample: Path, argument: str) -> None:
    answer = clew("check", argument, cwd=sample)
    assert answer.code == 3
    assert answer.err.startswith("error UnknownProject: ")
    assert "\x1b" not in answer.err
    assert len(answer.err) < 2_000
