"""The imports of Clew's modules as their text has them: all of them, wherever they stand."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class SourceModule:
    """A module as it is written."""

    name: str
    path: Path

    @property
    def tree(self) -> ast.Module:
        return parsed(self.path)

    @property
    def package(self) -> str:
        """The package under `clew` that it belongs to; `clew` itself for its own module."""
        return ".".join(self.name.split(".")[:2])


@dataclass(frozen=True)
class ImportedName:
    """A name that a module imports from another one, or the module itself."""

    module: str
    name: str
    called: str
    """The name that it has in the module that imports it."""


@cache
def source_modules() -> dict[str, SourceModule]:
    """All modules of Clew by name."""
    found = dict[str, SourceModule]()
    for path in sorted((SOURCE / "clew").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = SourceModule(name, path)
    return found


def imported_modules(module: SourceModule) -> set[str]:
    """The modules of Clew that a module imports: at its top, in functions, for the type checker."""
    known, found = source_modules(), set[str]()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
            found |= submodules
            if len(submodules) < len(node.names):
                found.add(node.module)
    return found - {module.name}


def imported_names(module: SourceModule) -> Iterator[ImportedName]:
    """The names that a module imports from modules of Clew."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "clew":
            yield from (ImportedName(node.module, each.name, each.asname or each.name) for each in node.names)


def called_names(module: SourceModule) -> set[str]:
    """The names that a module calls: `NAME(...)`, and `NAME.something(...)`."""
    found = set[str]()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if isinstance(called, ast.Name):
                found.add(called.id)
    return found


def imports_in_functions(module: SourceModule) -> bool:
    """Whether a module imports something only when a function runs."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        isinstance(inner, ast.Import | ast.ImportFrom)
        for node in ast.walk(module.tree)
        if isinstance(node, functions)
        for inner in ast.walk(node)
    )


def import_cycles() -> list[list[str]]:
    """Modules that import each other, directly or through others; each group once."""
    graph = {name: imported_modules(module) for name, module in source_modules().items()}
    reached = {name: _reached(graph, name) for name in graph}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(group) for group in groups if group)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """What a module imports, directly or through others; itself among them where it is in a cycle."""
    found, waiting = set[str](), [start]
    while waiting:
        news = graph[waiting.pop()] - found
        found |= news
        waiting.extend(news)
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, which many tests read; parsing all files takes a second."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))
