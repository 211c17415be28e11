"""From a project to a plan: selectors, fragments, breakpoints, schemas, column lineage, digest."""

from clew.plan.capabilities import require_capabilities
from clew.plan.compiler import Compilation
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
