"""From a project to a plan: selectors, fragments, breakpoints, schemas, column lineage, digest."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.plan.compiler import Compilation, require_capabilities
    from clew.plan.json_form import plan_from_json, plan_to_json
    from clew.plan.plan import Plan
    from clew.plan.workspace import CompiledWorkspace, WorkspaceCompiler, compile_workspace

__all__ = [
    "Compilation",
    "CompiledWorkspace",
    "Plan",
    "WorkspaceCompiler",
    "compile_workspace",
    "plan_from_json",
    "plan_to_json",
    "require_capabilities",
]

_LATER = {
    "Compilation": "clew.plan.compiler",
    "CompiledWorkspace": "clew.plan.workspace",
    "Plan": "clew.plan.plan",
    "WorkspaceCompiler": "clew.plan.workspace",
    "compile_workspace": "clew.plan.workspace",
    "plan_from_json": "clew.plan.json_form",
    "plan_to_json": "clew.plan.json_form",
    "require_capabilities": "clew.plan.compiler",
}
"""Modules are imported on first use: reading traces needs stored plans and no compiler, a list of runs neither."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'clew.plan' has no attribute '{name}'")
    return getattr(import_module(_LATER[name]), name)
