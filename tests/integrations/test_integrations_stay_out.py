"""Orchestrators are nobody's dependency: Clew does not import them, and what Airflow is told about Clew is true."""

import ast
import json
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from clew.integrations.airflow_provider import provider_info

ROOT = Path(__file__).parents[2]


def test_clew_is_imported_without_any_orchestrator() -> None:
    """Everything that is imported when the command line and the public interface are."""
    program = (
        "import json, sys, clew, clew.api.workspace, clew.cli.main, clew.server.application\n"
        "unwanted = ('airflow', 'dagster', 'dagster_pipes', 'clew.integrations')\n"
        "print(json.dumps([name for name in sys.modules if f'{name}.'.startswith(tuple(f'{u}.' for u in unwanted))]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_no_orchestrator_is_installed_with_clew() -> None:
    always = [line for line in requires("clew") or () if "extra ==" not in line]
    assert not [line for line in always if line.startswith(("apache-airflow", "dagster"))]


def test_what_airflow_reads_of_the_package_names_what_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [entry] = project["entry-points"]["apache_airflow_provider"].values()
    assert entry == f"{provider_info.__module__}:{provider_info.__name__}"
    info = provider_info()
    types, links = info["connection-types"], info["extra-links"]
    assert isinstance(types, list)
    assert isinstance(links, list)
    for name in [*links, *(each["hook-class-name"] for each in types)]:
        module, _, kind = name.rpartition(".")
        source = (ROOT / "src" / Path(*module.split(".")).with_suffix(".py")).read_text(encoding="utf-8")
        assert kind in {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
