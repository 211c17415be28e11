"""Versions of registered datasets that no longer fit the projects that read them."""

import json
from collections.abc import Iterator, Mapping, Sequence

from clew.app.running.state import State
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.project import DATASET_CONFLICT
from clew.lang.types import Type
from clew.model import Period, PeriodTree, Project
from clew.plan import Plan, plan_from_json
from clew.plan.conflicts import columns_that_matter, datasets_read, missing_and_retyped
from clew.plan.datasets import DatasetUse
from clew.plan.registration import registered_use
from clew.plan.steps import OutputStep
from clew.runs.registry import DatasetVersion


def version_conflict(
    plan: Plan,
    use: DatasetUse,
    version: DatasetVersion,
    versions: Sequence[DatasetVersion],
    period: Period,
    periods: PeriodTree,
) -> str | None:
    """What the rows that a run would read lack of the columns that its plan uses, in words; None where all is well.

    A version carries the files of other periods over from earlier ones, so what counts is who wrote each file.
    """
    needed = columns_that_matter(plan, use)
    wanted = {period.identifier, *(each.identifier for each in periods.descendants(period.identifier))}
    read = [file for file in version.files if use.temporal_mode != "period" or file.period in wanted]
    makers = {(file.run_id, file.seq) for file in read}
    for made in versions:
        problems = missing_and_retyped(needed, made.columns) if (made.run_id, made.seq) in makers else []
        if problems:
            said = f'version {made.version} of the dataset "{use.dataset_id}" {" and ".join(problems)}'
            return f'{said}, which the project "{plan.name}" uses; {_last_that_fits(versions, needed)}'
    return None


def _last_that_fits(versions: Sequence[DatasetVersion], needed: Mapping[str, Type]) -> str:
    fitting = next((each for each in versions if not missing_and_retyped(needed, each.columns)), None)
    return "no version has what it needs" if fitting is None else f"version {fitting.version} was the last that fits"


def broken_by(plan: Plan, projects: Sequence[Project], state: State) -> Iterator[Diagnostic]:
    """What the active versions of other projects would miss, once this plan registers its datasets."""
    for step in plan.steps:
        if not isinstance(step, OutputStep) or step.registers is None:
            continue
        offered = [(column.name, str(column.type)) for column in registered_use(plan, step.registers).columns]
        for user, use in _users_of(step.registers, plan.name, projects, state):
            problems = missing_and_retyped(columns_that_matter(user, use), offered)
            if problems:
                newest = state.datasets.versions(step.registers)
                since = f" since its version {newest[0].version}" if newest else ""
                problem = (
                    f'the next version of the dataset "{step.registers}" {" and ".join(problems)}, which the active'
                )
                problem = f'{problem} project "{user.name}" uses{since}'
                yield DATASET_CONFLICT.at(step.place, problem=problem)


def _users_of(
    dataset: str, writer: str, projects: Sequence[Project], state: State
) -> Iterator[tuple[Plan, DatasetUse]]:
    for project in projects:
        active = state.projects.active(project.id)
        if active is None or project.id == writer:
            continue
        plan = plan_from_json(json.loads(active.plan))
        for use in datasets_read(plan):
            if use.dataset_id == dataset and use.resolver_id is None and use.pinned_version is None:
                yield plan, use
                break
