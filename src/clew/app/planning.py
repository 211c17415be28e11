"""The plan of one project."""

from clew.app.checking import check_project, find_project, obstacles
from clew.app.concern import concern_of
from clew.diagnostics import EngineBug, UserError, raise_if_any
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from clew.model import LoadedWorkspace, Project
from clew.plan import Plan, WorkspaceCompiler


def plan_project(loaded: LoadedWorkspace, name: str) -> Plan:
    """The plan of a project by id or name. UserError with everything that stands in its way."""
    project = find_project(loaded, name)
    if project is None:
        raise UserError(*check_project(loaded, name).diagnostics)
    compiler = WorkspaceCompiler(loaded.workspace)
    raise_if_any(obstacles(concern_of(project, loaded), loaded, compiler))
    plan = compiler.project(project).plan
    if plan is None:
        raise EngineBug(INTERNAL_ERROR.anywhere(problem=f"{project.id} has neither a plan nor a problem"))
    return plan


def plan_definition(loaded: LoadedWorkspace, project: Project) -> Plan:
    """The plan of a project that is in no file. UserError with everything that stands in its way."""
    compilation = WorkspaceCompiler(loaded.workspace).definition(project)
    if compilation.plan is None:
        raise UserError(*(compilation.diagnostics or loaded.diagnostics))
    return compilation.plan
