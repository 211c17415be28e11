"""One name for one thing: public types have unique names, and modules that share a name share a role."""

import ast
from collections import defaultdict
from pathlib import Path

import clew
from tests.docs.source_imports import parsed

ROOT = Path(clew.__file__).parent

ROOMS = {
    "cli.commands": "a module for each command, named for what it is about",
    "cli.views": "how the terminal shows what a command answers",
    "server.api": "the routes for programs, named for what they are about",
    "server.pages.routes": "the routes for browsers, named for what they are about",
    "diagnostics.codes": "the errors about a thing",
    "store": "the database's side of a protocol that a lower package declares",
    "store.tracelink": "the database's side of TraceLink",
    "engine.sql": "a family of functions in Spark's SQL; `lang.functions` declares it",
    "engine.operations": "Spark's part of a type of operation",
    "plan.operations": "a type of operation as the plan has it",
    "definitions.operations": "a type of operation as users write it",
}
"""Packages whose modules are named for the thing that they serve, so that they repeat the names of others."""

SHARED = {
    "checking": "each checks what its package takes in: rows that are loaded, a workspace that is opened",
    "conversions": "texts as values, as the language defines it and as loading does it",
    "datasets": "datasets of a plan, and the same as the public interface answers for them",
    "executor": "the protocol of an engine, and the engine that implements it",
    "files": "files that rows come from, and files that they go to",
    "names": "names of rows in a plan, and names of columns in Spark",
    "parts": "parts as storage describes them and as the engine writes them",
    "policy": "what an environment allows: captures to keep, roles to see",
    "postlude": "postlude jobs as users write them and as the plan has them",
    "privacy": "who sees which class of columns, as users write it, and the class of columns in a plan",
    "session": "what one process keeps open: a Spark session, a call of the command line",
    "settings": "settings of the workspace, and settings of the server",
    "stores": "what a package needs of a database",
    "tokens": "API tokens, and the public interface to them",
    "trace_ids": "who mints trace ids, and which rows get them",
    "types": "types of the language, and Spark's for signatures",
    "words": "what people read: parts of a plan, values on pages",
    "worker": "who takes things from a queue and does them: runs, and the captures that follow them",
    "working": "the working dataset of a run, and processes that work until they are stopped",
    "workspace": "a workspace as it is written, compiled and opened",
}
"""Names that modules outside these packages share, and the role that they share with it."""


def modules() -> dict[str, Path]:
    """The modules of `clew` by dotted name, without `clew.` itself; packages are left out."""
    found = (path for path in ROOT.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in found}


def test_public_types_have_names_of_their_own() -> None:
    """A reader who searches for a class finds one."""
    defined = defaultdict[str, list[str]](list)
    for path in ROOT.rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in defined.items() if len(places) > 1} == {}


def outside_rooms() -> dict[str, list[str]]:
    """The modules of each name that are not in one of the packages above."""
    named = defaultdict[str, list[str]](list)
    for module in modules():
        package, _, name = module.rpartition(".")
        if package not in ROOMS:
            named[name].append(module)
    return named


def test_modules_that_share_a_name_share_a_role() -> None:
    """A name that says nothing about which of several modules is meant is listed above with a reason, or changed."""
    doubled = {name: sorted(places) for name, places in outside_rooms().items() if len(places) > 1}
    assert {name: places for name, places in doubled.items() if name not in SHARED} == {}


def test_every_exception_is_still_one() -> None:
    """Lists of exceptions only get shorter by themselves if a test says so."""
    assert {name for name in SHARED if len(outside_rooms().get(name, [])) < 2} == set()
