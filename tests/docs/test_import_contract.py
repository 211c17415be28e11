"""The import contract: no package escapes it, no modules import each other, and there is one door.

The layers of packages and the homes of libraries stand in pyproject.toml and are checked by import-linter. What it
cannot say stands here:

- No cycles: modules do not import each other in a circle, wherever the imports stand (also those in functions and those
  for the type checker).
- Imports in functions are for start-up time, and only in the modules that `LATE_IMPORTS` lists with a reason.
- One door: `clew.cli` and `clew.server` call `Workspace`, and the runs and captures that it gives. Of what lies below
  they may take names of types (for annotations, patterns and comparisons), enums, constants, and the functions of
  `WORDING`, which turn values into text, JSON or the content of files and read nothing. They call nothing else: not
  the classes that do the work, not the functions that wire them. From `BEHIND_THE_DOOR` they take nothing at all.
  What they may call of `clew.api` itself is `DOOR`.
"""

import enum
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.source_imports import (
    ImportedName,
    SourceModule,
    called_names,
    import_cycles,
    imported_names,
    imports_in_functions,
    source_modules,
)

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
PACKAGES = {f"clew.{path.name}" for path in (ROOT / "src" / "clew").iterdir() if (path / "__init__.py").is_file()}
WALLS = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]

HOMES = {
    "pyspark": {"clew.engine"},
    "sqlalchemy": {"clew.store"},
    "fastapi": {"clew.server"},
    "click": {"clew.cli"},
    "yaml": {"clew.definitions"},
}
"""Where a library may be imported."""

_READING = "libraries that read files are imported when something is read"
LATE_IMPORTS = {
    "clew.api.capture": "what writes files is loaded by those who want one",
    "clew.api.checking": "a check without a state store does not wait for what reads one",
    "clew.api.doctor": "the engine cannot be imported where Spark is missing, which is one of the questions",
    "clew.api.machine": "the same",
    "clew.api.opened_environment": "a list of runs does not wait for what reads rows, nor for what hides them",
    "clew.api.remote": "an HTTP client is slow to import, and few commands use a server",
    "clew.api.run": "what explains, drives and removes runs is loaded by those who ask for it",
    "clew.api.run_view": "a list of runs does not wait for what reads captures",
    "clew.api.state": "reading a state store does not wait for what writes to one",
    "clew.api.working": "a server answers its first request before it loads the libraries of Spark",
    "clew.api.workspace": "a check does not wait for databases and Spark",
    "clew.api.workspace_files": "reading runs does not wait for the compiler, nor a check for what runs need",
    "clew.bus.http": "an HTTP client is slow to import, and most commands send nothing",
    "clew.bus.openlineage": "the client is slow to import, and few environments need it",
    "clew.captures.captured_rows": _READING,
    "clew.change.comparison": _READING,
    "clew.gc.taken_over": "few runs hold tables, and what reads the metadata of Iceberg is slow to import",
    "clew.gc.table_tags": "few runs hold tables, and what reads the metadata of Iceberg is slow to import",
    "clew.cli.commands": "a command loads what it works with when it runs, so that all of them start quickly",
    "clew.cli.views.page": "Rich is slow to import, and only wraps what does not fit",
    "clew.cli.session": "`clew --help` does not wait for the compiler",
    "clew.engine.spark_versions": "whether there is a PySpark is known only when it is imported",
    "clew.integrations.airflow": "Airflow may be without its OpenLineage provider",
    "clew.explain.tree": _READING,
    "clew.explain.unread_files": _READING,
    "clew.plan.plan": "reading a trace prints no plan",
    "clew.scenarios.testing": "quick scenarios do not wait for the libraries of Spark",
    "clew.storage.checked_files": _READING,
    "clew.storage.compression": _READING,
    "clew.storage.local": _READING,
    "clew.storage.object_store": _READING,
    "clew.storage.plans": "a list of runs does not wait for what reads plans",
    "clew.storage.roots": "what object stores need is loaded where there is one",
    "clew.storage.remote_blocks": _READING,
    "clew.storage.sheets": _READING,
    "clew.storage.store_access": _READING,
    "clew.storage.tables.table_places": "reading a trace does not wait for what reads a workspace",
    "clew.store": "the module is imported by those who open a store",
    "clew.store.database": "the driver of PostgreSQL is loaded by those who have one",
    "clew.store.postgresql": "the driver is loaded by those who have such a store",
    "clew.store.looking": "the drivers are loaded by those who have such a store",
    "clew.trace.trace_database": _READING,
    "clew.trace.results": _READING,
    "clew.trace.trace_records": _READING,
    "clew.trace.json_values": _READING,
    "clew.tracelink.lineage_answer": "commands that print text need no tables",
}
"""Modules, or packages of modules, that import inside functions, and why."""

CALLERS = ("clew.cli", "clew.server")
BEHIND_THE_DOOR = {"clew.store", "clew.engine", "clew.storage", "clew.bus", "clew.gc", "clew.sample"}
UNFILTERED = {"clew.trace.reader", "clew.trace.run_trace", "clew.trace.history", "clew.explain.explaining"}
"""Modules whose objects hold values as they are, whoever asks. Callers do not even take their types."""
OPEN_TO_ALL = {"clew.diagnostics", "clew.deferred"}
DOOR = {
    "clew.api.doctor": {"examine"},
    "clew.api.opened_environment": {"Principal"},
    "clew.api.pack_verification": {"is_pack", "verify_pack"},
    "clew.api.remote": {"RemoteServer"},
    "clew.api.workspace": {"open_workspace"},
    "clew.auth.gathered_reads": {"GatheredReads"},
    "clew.auth.openid": {"OpenIdAttempt"},
    "clew.api.workspace_files": {"capture_wishes", "read_capture_wishes", "write_sample_workspace"},
    "clew.trace.row_sets": {"Order"},
    "clew.api.working": {"WorkerListener", "listening", "stop_on_signals", "worker_name"},
}
"""What is called to get a workspace, or what a method of it takes. The rest of `clew.api` is reached through these."""
WORDING = {
    "clew.api.table_downloads": "tables as files",
    "clew.captures.report": "statistics of captures as text",
    "clew.definitions.schemas": "the JSON Schema of files",
    "clew.events.artifacts": "where outputs went, as events refer to them",
    "clew.events.sentences": "events as sentences",
    "clew.explain.outline": "explanations as sentences",
    "clew.explain.views": "explanations as text, HTML and JSON",
    "clew.lang.completion": "what can stand where an expression is typed",
    "clew.lang.conversion": "values as text",
    "clew.lang.lexer": "the words of an expression, to be coloured",
    "clew.lang.narrowing": "comparisons with one value, as text",
    "clew.lang.text_form": "expressions as text",
    "clew.lang.types": "types of values by their names",
    "clew.plan.json_form": "plans as JSON",
    "clew.plan.names": "rows by the names that people give them",
    "clew.plan.words": "plans as sentences",
    "clew.trace.results": "values of rows as text and HTML",
    "clew.trace.json_values": "values of rows as JSON",
}
"""Modules whose functions turn values into text, JSON or the content of files, and read nothing."""


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


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle() -> None:
    assert import_cycles() == []


@pytest.mark.slow
def test_imports_stand_in_functions_only_where_start_up_time_asks_for_it() -> None:
    late = {name for name, module in source_modules().items() if imports_in_functions(module)}
    assert {name for name in late if _reason(name) is None} == set()
    unused = {listed for listed in LATE_IMPORTS if not any(name == listed or _is_in(name, listed) for name in late)}
    assert unused == set()


def test_commands_call_the_door_and_nothing_below_it() -> None:
    assert _below_the_door("clew.cli") == {}


def test_the_server_calls_the_door_and_nothing_below_it() -> None:
    assert _below_the_door("clew.server") == {}


def _reason(name: str) -> str | None:
    return next((reason for listed, reason in LATE_IMPORTS.items() if name == listed or _is_in(name, listed)), None)


def _is_in(name: str, package: str) -> bool:
    """Whether a module is in a package of commands; a package as a whole is listed for these alone."""
    return package == "clew.cli.commands" and name.startswith(f"{package}.")


def _below_the_door(package: str) -> dict[str, list[str]]:
    """The modules of a package that take more from below the door than they may, and what."""
    found = dict[str, list[str]]()
    for name, module in source_modules().items():
        if module.package == package:
            called = called_names(module)
            reached = [each for each in imported_names(module) if not _may_take(module, each, called)]
            if reached:
                found[name] = sorted(f"{each.module}.{each.name}" for each in reached)
    return found


def _may_take(module: SourceModule, taken: ImportedName, called: set[str]) -> bool:
    source = ".".join(taken.module.split(".")[:2])
    if source in {module.package, "clew", *CALLERS} | OPEN_TO_ALL or taken.name in DOOR.get(taken.module, ()):
        return True
    if source in BEHIND_THE_DOOR or taken.module in UNFILTERED:
        return False
    if f"{taken.module}.{taken.name}" in source_modules():
        return f"{taken.module}.{taken.name}" in WORDING
    value = getattr(importlib.import_module(taken.module), taken.name)
    if inspect.isroutine(value):
        return value.__module__ in WORDING
    is_enum = inspect.isclass(value) and issubclass(value, enum.Enum)
    return is_enum or taken.name.isupper() or taken.called not in called


_OTHER_DATACLASS = re.compile(r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass\(", re.MULTILINE)


def test_every_dataclass_is_deferred() -> None:
    """Commands start quickly: write `from clew.deferred import dataclass`."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    found = {str(path.relative_to(ROOT / "src")) for path, text in texts.items() if _OTHER_DATACLASS.search(text)}
    assert found == {"clew/deferred/dataclass.py"}


PRIVATE = {
    "clew.engine.spark_internals": "tests/engine/test_spark_internals.py",
    "clew.storage.sheets": "tests/storage/test_sheets.py",
}
"""Modules that may use what a library keeps for itself, and the tests that fail when it changes."""


def test_private_parts_of_libraries_are_used_where_tests_watch_them() -> None:
    found = set[str]()
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if "noqa: SLF001" in text or re.search(r"^\s*(?:from|import) [a-z0-9_.]*\._[a-z]", text, re.MULTILINE):
            found.add(module)
    assert found == set(PRIVATE)
    assert all((ROOT / test).is_file() for test in PRIVATE.values())
