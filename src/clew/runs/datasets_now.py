"""The datasets of a plan as the workspace has them when a run starts.

A plan is frozen when its project is activated, with the resolvers of the datasets that it reads; the datasets are not.
They must exist, be active and still fit the plan, and their data is where it is now: the newest registered version, or
where the resolver finds it that the dataset names today, by the rules that the version keeps of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import Dataset, PeriodTree, Resolver, Status, Use, WorkspaceDefinitions
from clew.diagnostics import UserError
from clew.diagnostics.codes.project import DATASET_CONFLICT, REGISTRATION_CONFLICT
from clew.diagnostics.codes.workspace import DATASET_INACTIVE, RESOLVER_INACTIVE, UNKNOWN_DATASET, UNKNOWN_RESOLVER
from clew.plan.catalogue import registering_problem, use_of_table, version_of_resolved
from clew.plan.datasets import DatasetUse
from clew.plan.frozen_resolvers import resolver_of_run
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.runs.registry import DatasetVersion
from clew.runs.version_conflicts import columns_that_matter, missing_and_retyped

ResolverSource = Literal["project override", "dataset", "default"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A dataset whose data a resolver finds."""

    use: DatasetUse
    resolver: Resolver
    source: ResolverSource
    version: int | None
    """The version of its definition; None for a dataset that has none."""

    def details(self) -> dict[str, str | int | None]:
        """What the record of the run says about it."""
        return {
            "dataset_version": self.version,
            "resolver": self.resolver.id,
            "resolver_version": self.resolver.version,
            "resolver_source": self.source,
        }


def resolved_now(
    workspace: WorkspaceDefinitions, plan: Plan, use: DatasetUse, versions: Sequence[DatasetVersion]
) -> Resolved | None:
    """How a dataset is read now; None if its data is a registered version. UserError if it cannot be used."""
    declared = workspace.dataset(use.dataset_id)
    _require_usable(workspace, plan, use, declared, versions)
    chosen = _resolver(workspace, use, declared, is_registered=bool(versions))
    if chosen is None:
        return None
    name, source = chosen
    found = resolver_of_run(plan, workspace, name)
    if found is None:
        raise UserError(UNKNOWN_RESOLVER.anywhere(problem=f'no resolver "{name}"'))
    resolver = found.resolver
    # Whoever makes a resolver inactive wants nothing more to be read by it, so the file counts and not the version.
    _require_active(workspace.resolver(resolver.id) or resolver)
    version = declared.version if declared is not None else None
    problem = version_of_resolved(use.pinned_version, version)
    if problem is not None:
        raise UserError(UNKNOWN_DATASET.anywhere(name=f"{use.dataset_id} version {use.pinned_version}", hint=problem))
    return Resolved(replace(use, resolver_id=resolver.id, resolver_source=source), resolver, source, version)


def _require_active(resolver: Resolver) -> None:
    if resolver.status is not Status.ACTIVE:
        raise UserError(RESOLVER_INACTIVE.at(resolver.place("status"), name=resolver.id, status=resolver.status.value))


def require_registrable(workspace: WorkspaceDefinitions, plan: Plan) -> None:
    """UserError RegistrationConflict if an output would become a version of a dataset that a resolver finds."""
    for step in plan.outputs:
        declared = workspace.dataset(step.registers) if step.registers is not None else None
        problem = registering_problem(declared) if declared is not None else None
        if problem is not None:
            raise UserError(REGISTRATION_CONFLICT.at(step.place, problem=problem[0], hint=problem[1]))


def require_period_of_its_own(
    step: OutputStep, run_id: str, period: str, periods: PeriodTree, versions: Sequence[DatasetVersion]
) -> None:
    """A month whose rows are already in the file of their quarter would be in the dataset twice.

    `versions` are those of the dataset that the output registers. What the run itself has registered already stays.
    """
    if step.mode == "append" or any((each.run_id, each.seq) == (run_id, step.seq) for each in versions):
        return
    above = {each.identifier for each in periods.ancestors(period)}
    known = list[str]()
    for newest in versions[:1]:
        known += [file.period for file in newest.files]
        known += [table.period for table in newest.tables if not table.is_whole]
    taken = next((each for each in known if each in above), None)
    if taken is None:
        return
    problem = f'version {versions[0].version} of the dataset "{step.registers}" has the rows of {taken}'
    problem = f"{problem}, and {period} is part of it: its rows would be in the dataset twice"
    hint = f"run the project for {taken} again, or register the output under another name"
    raise UserError(REGISTRATION_CONFLICT.at(step.place, problem=problem, hint=hint))


def _require_usable(
    workspace: WorkspaceDefinitions,
    plan: Plan,
    use: DatasetUse,
    declared: Dataset | None,
    versions: Sequence[DatasetVersion],
) -> None:
    if declared is None:
        was_declared = use.resolver_source in {"dataset", "default"}
        if was_declared or (use.resolver_id is not None and not versions and not _registers(workspace, use)):
            raise UserError(UNKNOWN_DATASET.anywhere(name=use.dataset_id))
        return
    if declared.status is not Status.ACTIVE:
        status = declared.status.value
        raise UserError(DATASET_INACTIVE.at(declared.place("status"), name=declared.id, status=status))
    problems = _changes(plan, use, declared)
    if problems:
        problem = f'the dataset "{declared.id}" has changed since the project "{plan.name}" was activated: it '
        hint = "adapt the project if need be, and activate it again"
        raise UserError(DATASET_CONFLICT.at(declared.span, problem=problem + " and ".join(problems), hint=hint))


def _changes(plan: Plan, use: DatasetUse, declared: Dataset) -> list[str]:
    """What the plan relies on and the definition no longer says."""
    now = use_of_table(declared.id, declared.name, declared.main_table, declared.natural_key)
    offered = [(column.name, str(column.type)) for column in now.columns]
    found = missing_and_retyped(columns_that_matter(plan, use), offered)
    if now.temporal_mode != use.temporal_mode:
        found.insert(0, f"has the temporal mode {now.temporal_mode}, not {use.temporal_mode}")
    return found


def _resolver(
    workspace: WorkspaceDefinitions, use: DatasetUse, declared: Dataset | None, *, is_registered: bool
) -> tuple[str, ResolverSource] | None:
    if use.resolver_source == "project override" and use.resolver_id is not None:
        return use.resolver_id, "project override"
    if declared is None:
        return None
    if declared.resolver_id is not None:
        return declared.resolver_id, "dataset"
    default = workspace.default_resolver
    return None if is_registered or default is None or _pins_data(workspace, use) else (default.id, "default")


def _pins_data(workspace: WorkspaceDefinitions, use: DatasetUse) -> bool:
    """Whether the project asks for a registered version, which none of the files is."""
    return use.pinned_version is not None and _registers(workspace, use)


def _registers(workspace: WorkspaceDefinitions, use: DatasetUse) -> bool:
    """Whether a project, or a fragment of one, registers a dataset."""
    entries = (
        *(entry for project in workspace.projects for entry in project.operations),
        *(entry for fragment in workspace.fragments for entry in fragment.operations),
    )
    names = {use.dataset_id, use.name}
    return any(not isinstance(entry, Use) and entry.registers in names for entry in entries)
