"""The import contract: no package escapes it."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
PACKAGES = {f"clew.{path.name}" for path in (ROOT / "src" / "clew").iterdir() if (path / "__init__.py").is_file()}
WALLS = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]

HOMES = {
    "pyspark": {"clew.engine"},
    "sqlalchemy": {"clew.store"},
    "fastapi": {"clew.server"},
    "typer": {"clew.cli"},
    "yaml": {"clew.definitions"},
}
"""Where a library may be imported."""


def test_every_library_with_a_home_has_a_wall() -> None:
    assert {contract["forbidden_modules"][0] for contract in WALLS} == set(HOMES)


@pytest.mark.parametrize("contract", WALLS, ids=lambda contract: contract["forbidden_modules"][0])
def test_a_wall_stands_around_every_package_but_the_home(contract: dict[str, list[str]]) -> None:
    home = HOMES[contract["forbidden_modules"][0]]
    assert set(contract["source_modules"]) == PACKAGES - home


def test_the_layers_are_exhaustive() -> None:
    [layers] = [contract for contract in CONTRACTS if contract["type"] == "layers"]
    assert layers["exhaustive"] is True
    assert "exhaustive_ignores" not in layers
    named = {f"clew.{name.strip().strip('()')}" for layer in layers["layers"] for name in layer.split("|")}
    assert named >= PACKAGES
