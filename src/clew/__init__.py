"""Clew runs data pipelines on Spark and can follow any number in their output back to the rows it came from."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.api.fluent import join, project
    from clew.api.workspace import Workspace
    from clew.api.workspace import open_workspace as open  # noqa: A004 - `clew.open` is how it is called
    from clew.diagnostics import ClewError, Diagnostic, EngineBug, TransientFailure, UserError

__version__ = "0.1.0"

__all__ = [
    "ClewError",
    "Diagnostic",
    "EngineBug",
    "TransientFailure",
    "UserError",
    "Workspace",
    "__version__",
    "join",
    "open",
    "project",
]

_LATER = {
    **{name: ("clew.diagnostics", name) for name in ("ClewError", "Diagnostic")},
    **{name: ("clew.diagnostics", name) for name in ("EngineBug", "TransientFailure", "UserError")},
    "Workspace": ("clew.api.workspace", "Workspace"),
    "join": ("clew.api.fluent", "join"),
    "open": ("clew.api.workspace", "open_workspace"),
    "project": ("clew.api.fluent", "project"),
}
"""Names that are imported when they are first used, so that `import clew` takes no time."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'clew' has no attribute '{name}'")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
