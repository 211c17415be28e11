"""The packages that users install: everything is in them, and they work outside of the checkout."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "clew"


def built(source: Path, target: str, folder: Path) -> Path:
    """The package of a kind, built from a folder with the sources."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [package] = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return package


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the other package, as pip builds it for those who take no wheels."""
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [sources] = folder.iterdir()
    return built(sources, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", folder, wheel], check=True)
    return folder


def clew(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, installed / "bin" / "clew", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("clew/")}
    ours = {
        f"clew/{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }
    assert inside == ours
    assert {"clew/engine/log4j2.properties", "clew/cli/submit.py"} <= inside


def test_the_sources_have_no_secrets_and_nothing_that_was_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        parts = {part for name in archive.getnames() for part in Path(name).parts}
    assert parts & {".venv", ".venv-spark", ".clew", ".git", "__pycache__", "spark-warehouse"} == set()
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "src"} <= parts


def test_an_installed_clew_works_outside_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = [sys.executable, "-c", "import clew; print(clew.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    said = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(installed / "clew" / "__init__.py")
    assert clew(installed, tmp_path, "init", "ledger").returncode == 0
    for words in (["check"], ["plan", "gl-close"], ["schema", "project"], ["runs"]):
        done = clew(installed, tmp_path / "ledger", *words)
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.spark
def test_an_installed_clew_runs_and_explains_the_sample(installed: Path, tmp_path: Path) -> None:
    assert clew(installed, tmp_path, "init", "ledger").returncode == 0
    ledger = tmp_path / "ledger"
    done = clew(installed, ledger, "run", "gl-close", "--period", "2026-01", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads(done.stdout)["run_id"]
    where = 'row_kind = "total" AND account_type = "expense"'
    explained = clew(installed, ledger, "explain", run, "--where", where, "total_usd")
    assert explained.returncode == 0, explained.stderr
    assert "recomputed: equal" in explained.stdout
