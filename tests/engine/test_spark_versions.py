"""Which versions of Spark Clew runs on: what is declared, what is refused, and what a process without any hears."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from clew.diagnostics import UserError
from clew.engine.spark_versions import RECOMMENDED, VERSIONS, minor, require_supported
from clew.sample import write_sample
from tests.trace.interpreted_shop import ran_shop

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEXT = f"4.{int(VERSIONS[-1].removeprefix('4.')) + 1}"

COMMANDS = """
import contextlib, io, json, sys
from clew.cli.main import run
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps([answers, "pyspark.sql" in sys.modules]))
"""


def commands(folder: Path, *lines: list[str], before: str = "", **variables: str) -> tuple[list[tuple[int, str]], bool]:
    """Exit codes and errors of commands in a fresh process, and whether it has loaded PySpark."""
    done = subprocess.run(
        [sys.executable, "-c", f"{before}\n{COMMANDS}", json.dumps(lines)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers, has_spark = json.loads(done.stdout)
    return [(code, err) for code, _, err in answers], has_spark


WITHOUT = "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None"


def extra(name: str) -> Requirement:
    [requirement] = map(Requirement, PROJECT["optional-dependencies"][name])
    return requirement


def test_the_extras_install_supported_versions_and_the_recommended_one() -> None:
    assert all(Version(f"{version}.9") in extra("connect").specifier for version in VERSIONS)
    assert Version(f"{NEXT}.0") not in extra("connect").specifier
    assert Version("3.5.9") not in extra("connect").specifier
    [locked] = re.findall(r"^pyspark==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert Version(locked) in extra("spark").specifier
    assert [version for version in VERSIONS if Version(f"{version}.9") in extra("spark").specifier] == [RECOMMENDED]
    assert not [each for each in PROJECT["dependencies"] if each.startswith(("pyspark", "py4j"))]


def test_the_matrix_has_every_version_and_the_locked_one() -> None:
    [tried] = re.findall(r"^SPARKS +\?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(map(minor, tried.split())) == VERSIONS
    [locked] = re.findall(r"^pyspark==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert locked in tried.split()


@pytest.mark.parametrize("version", [*(f"{version}.0" for version in VERSIONS), "4.1.0.dev0", "4.0.1-amzn-0", "4.1"])
def test_builds_of_supported_versions_are_taken(version: str) -> None:
    require_supported(version, "PySpark")


@pytest.mark.parametrize("version", ["3.5.9", "4.10.0", f"{NEXT}.0", "5.0.0", "40.1", "unknown", ""])
def test_other_versions_are_refused_with_those_that_are_supported(version: str) -> None:
    with pytest.raises(UserError, match=r"is not supported: Clew runs on Spark 4\.0 to 4\.3") as refused:
        require_supported(version, "PySpark")
    assert refused.value.code == "SparkUnsupported"


def test_the_tests_run_on_a_supported_version() -> None:
    assert minor(pyspark.__version__) in VERSIONS


def test_reading_needs_no_pyspark(tmp_path: Path) -> None:
    with ran_shop(tmp_path) as ran:
        run = ran.january
        lines = [
            ["check"],
            ["plan", "close"],
            ["runs"],
            ["show", run],
            ["events", run],
            ["trace", run, "--step", "10"],
            ["explain", run, "--where", "id = 102", "usd"],
            ["explain", run, "--why-not", "id = 1"],
            ["captures"],
            ["datasets"],
            ["projects"],
            ["gc", "--dry-run"],
            ["schema", "project"],
        ]
        answers, has_spark = commands(ran.shop.root, *lines, before=WITHOUT)
    assert dict(zip(map(tuple, lines), answers, strict=True)) == dict.fromkeys(map(tuple, lines), (0, ""))
    assert not has_spark


def test_what_needs_spark_says_how_to_install_it_and_leaves_nothing(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    lines = [
        ["run", "gl-close", "--period", "2026-01"],
        ["test"],
        ["worker"],
        ["run", "gl-close", "--period", "2026-01", "--dry-run"],
    ]
    answers, _ = commands(tmp_path / "ledger", *lines, ["runs", "--json"], before=WITHOUT)
    for code, said in answers[:-1]:
        first, remedy = said.splitlines()
        assert (code, first) == (
            1,
            "error SparkMissing: Spark is not installed for this Python: there is no module pyspark",
        )
        assert 'pip install "clew[spark]"' in remedy
    with_spark, _ = commands(tmp_path / "ledger", ["runs", "--json"])
    assert answers[-1] == with_spark[0] == (0, "")


def test_a_pyspark_that_is_too_old_is_refused_before_anything_of_it_is_used(tmp_path: Path) -> None:
    write_sample(tmp_path / "ledger")
    (tmp_path / "old" / "pyspark").mkdir(parents=True)
    (tmp_path / "old" / "pyspark" / "__init__.py").write_text('__version__ = "3.5.9"\n', encoding="utf-8")
    path = os.pathsep.join((str(tmp_path / "old"), os.environ["PYTHONPATH"]))
    [(code, said)], _ = commands(tmp_path / "ledger", ["run", "gl-close", "--period", "2026-01"], PYTHONPATH=path)
    first, remedy = said.splitlines()
    assert code == 1
    assert first == "error SparkUnsupported: PySpark 3.5.9 is not supported: Clew runs on Spark 4.0 to 4.3"
    assert "clew[spark]" in remedy
