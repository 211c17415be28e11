"""From a project to a plan: selectors, fragments, breakpoints, schemas, column lineage, digest."""

from importlib import import_module
from typing import TYPE_CHECKING

from clew.plan.json_form import plan_from_json, plan_to_json
from clew.plan.plan import Plan

if TYPE_CHECKING:
    from clew.plan.compiler import Compilation, require_capabilities
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
    "WorkspaceCompiler": "clew.plan.workspace",
    "compile_workspace": "clew.plan.workspace",
    "require_capabilities": "clew.plan.compiler",
}
"""The compiler is imported on first use: reading traces needs stored plans and nothing else."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'clew.plan' has no attribute '{name}'")
    return getattr(import_module(_LATER[name]), name)
