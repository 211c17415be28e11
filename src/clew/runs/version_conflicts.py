"""Versions of registered datasets that no longer fit the projects that read them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from clew.deferred import dataclass
from clew.definitions import Period, PeriodTree, Project, Use
from clew.diagnostics import Diagnostic, Span
from clew.diagnostics.codes.project import DATASET_CONFLICT
from clew.diagnostics.codes.workspace import UNKNOWN_DATASET
from clew.lang.types import Kind, Type, parse_type
from clew.plan import Plan, plan_from_json
from clew.plan.catalogue import registered_use
from clew.plan.datasets import DatasetUse
from clew.runs.registry import DatasetRegistry, DatasetVersion, ProjectRegistry


class Offer(Protocol):
    """A version of a dataset, as far as its columns go."""

    @property
    def version(self) -> int:
        """Its number."""
        ...

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and types."""
        ...


class OnRecord(Protocol):
    """What an environment has registered and activated."""

    def versions(self, dataset: str) -> Sequence[Offer]:
        """All versions of a dataset, newest first; none if it was never registered."""
        ...

    def active_plan(self, project: str) -> str | None:
        """The plan of the version that runs, as it was stored; None if none is active."""
        ...


class Registries:
    """What is on record in a state store that is open."""

    def __init__(self, datasets: DatasetRegistry, projects: ProjectRegistry) -> None:
        self._datasets = datasets
        self._projects = projects

    def versions(self, dataset: str) -> Sequence[Offer]:
        """All versions of a dataset, newest first; none if it was never registered."""
        return self._datasets.versions(dataset)

    def active_plan(self, project: str) -> str | None:
        """The plan of the version that runs, as it was stored; None if none is active."""
        active = self._projects.active(project)
        return None if active is None else active.plan


def version_conflict(
    plan: Plan,
    use: DatasetUse,
    version: DatasetVersion,
    versions: Sequence[DatasetVersion],
    period: Period,
    periods: PeriodTree,
) -> str | None:
    """What the rows that a run would read lack of the columns that its plan uses, in words; None if everything fits.

    A version carries the files of other periods over from earlier ones, so what counts is who wrote each file.
    """
    needed = columns_that_matter(plan, use)
    wanted = {period.identifier, *(each.identifier for each in periods.descendants(period.identifier))}
    read = [file for file in version.files if use.temporal_mode != "period" or file.period in wanted]
    makers = {(file.run_id, file.seq) for file in read} | {(table.run_id, table.seq) for table in version.tables}
    for made in versions:
        problems = missing_and_retyped(needed, made.columns) if (made.run_id, made.seq) in makers else []
        if problems:
            return _told(plan, use, made, problems, _last_that_fits(versions, needed))
    return None


def unknown_version(use: DatasetUse, versions: Sequence[Offer], place: Span | None = None) -> Diagnostic:
    """That a plan pins a version that is not among the registered ones."""
    known = ", ".join(str(each.version) for each in reversed(versions))
    name = f"{use.dataset_id} version {use.pinned_version}"
    hint = f"the registered version{'s are' if len(versions) > 1 else ' is'} {known}"
    if place is None:
        return UNKNOWN_DATASET.anywhere(name=name, hint=hint)
    return UNKNOWN_DATASET.at(place, name=name, hint=hint)


def unknown_versions(plan: Plan, project: Project, record: OnRecord) -> Iterator[Diagnostic]:
    """The pins of a project to versions that are not registered, of datasets that are."""
    for use, place in _reads_with_places(plan, project):
        versions = record.versions(use.dataset_id) if _is_registered(use) and use.pinned_version is not None else ()
        if versions and all(each.version != use.pinned_version for each in versions):
            yield unknown_version(use, versions, place)


def _is_registered(use: DatasetUse) -> bool:
    """Whether the data of a dataset is what runs register, once they have."""
    return use.resolver_id is None or use.resolver_source == "default"


@dataclass(frozen=True, slots=True)
class Outdated:
    """A version that a run would read and that lacks what the plan uses."""

    use: DatasetUse
    version: int
    problems: tuple[str, ...]
    diagnostic: Diagnostic
    comes_with_next_version: bool
    """No version had it yet, and the next one will: the project that adds it only has to run."""


def outdated_versions(plan: Plan, project: Project, record: OnRecord) -> Iterator[Outdated]:
    """The versions that a run of a project would read, as far as they lack what its plan uses, whatever the period.

    What counts is the version itself: files of other periods that it carries over may be older and are left to runs.
    """
    for use, place in _reads_with_places(plan, project):
        versions = record.versions(use.dataset_id) if _is_registered(use) else ()
        wanted = (each for each in versions if use.pinned_version in {None, each.version})
        version = next(wanted, None)
        needed = columns_that_matter(plan, use)
        problems = [] if version is None else missing_and_retyped(needed, version.columns)
        if version is not None and problems:
            problem = _told(plan, use, version, problems, _last_that_fits(versions, needed))
            yield Outdated(
                use,
                version.version,
                tuple(problems),
                DATASET_CONFLICT.at(place, problem=problem),
                # A plan takes the columns of an unpinned dataset from the project that registers it, as it is written.
                use.pinned_version is None and _newest_that_fits(versions, needed) is None,
            )


def remedy(outdated: Outdated, reader: str, projects: Sequence[Project], record: OnRecord) -> str:
    """What has to run before a reader whose columns come with the next version of a dataset."""
    name = outdated.use.dataset_id
    lack = " and ".join(outdated.problems)
    said = f'version {outdated.version} of the dataset "{name}" {lack}, which the project "{reader}" uses'
    writer = next((each.id for each in projects if name in _registered_by(each)), None)
    if writer is None:
        return f"{said}; run the project that registers it first"
    needs_activation = not _registers_now(record.active_plan(writer), outdated)
    first = f"`clew activate {writer}`, then `clew run {writer}`" if needs_activation else f"`clew run {writer}`"
    return f"{said}; the next version will have it: {first}, before `clew run {reader}`"


def _registered_by(project: Project) -> list[str | None]:
    return [each.registers for each in project.operations if not isinstance(each, Use)]


def _registers_now(active: str | None, outdated: Outdated) -> bool:
    """Whether the version of a project that runs writes what is missing; one that never ran is activated by its run."""
    if active is None:
        return True
    plan, name = plan_from_json(json.loads(active)), outdated.use.dataset_id
    if not any(step.registers == name for step in plan.outputs):
        return False
    offered = {column.name: column.type for column in registered_use(plan, name).columns}
    return all(offered.get(column.name) == column.type for column in outdated.use.columns)


def _reads_with_places(plan: Plan, project: Project) -> Iterator[tuple[DatasetUse, Span | None]]:
    yield plan.input, project.place("input_dataset")
    for step in plan.steps:
        yield from ((each.use, step.place) for each in step.datasets)


def _told(plan: Plan, use: DatasetUse, version: Offer, problems: Sequence[str], fitting: str) -> str:
    said = f'version {version.version} of the dataset "{use.dataset_id}" {" and ".join(problems)}'
    return f'{said}, which the project "{plan.name}" uses; {fitting}'


def _newest_that_fits(versions: Sequence[Offer], needed: Mapping[str, Type]) -> Offer | None:
    return next((each for each in versions if not missing_and_retyped(needed, each.columns)), None)


def _last_that_fits(versions: Sequence[Offer], needed: Mapping[str, Type]) -> str:
    fitting = _newest_that_fits(versions, needed)
    return "no version has what it needs" if fitting is None else f"version {fitting.version} was the last that fits"


def broken_by(plan: Plan, projects: Sequence[Project], record: OnRecord) -> Iterator[Diagnostic]:
    """What the active versions of other projects would miss, once this plan registers its datasets."""
    for step in plan.outputs:
        if step.registers is None:
            continue
        offered = [(column.name, str(column.type)) for column in registered_use(plan, step.registers).columns]
        for user, use in _users_of(step.registers, plan.name, projects, record):
            problems = missing_and_retyped(columns_that_matter(user, use), offered)
            if problems:
                newest = record.versions(step.registers)
                now = f"; the dataset is at version {newest[0].version}" if newest else ""
                problem = (
                    f'the next version of the dataset "{step.registers}" {" and ".join(problems)}, which the active'
                )
                problem = f'{problem} project "{user.name}" uses{now}'
                yield DATASET_CONFLICT.at(step.place, problem=problem)


def _users_of(
    dataset: str, writer: str, projects: Sequence[Project], record: OnRecord
) -> Iterator[tuple[Plan, DatasetUse]]:
    for project in projects:
        active = record.active_plan(project.id)
        if active is None or project.id == writer:
            continue
        plan = plan_from_json(json.loads(active))
        for use in plan.datasets_read:
            if use.dataset_id == dataset and _is_registered(use) and use.pinned_version is None:
                yield plan, use
                break


def columns_that_matter(plan: Plan, use: DatasetUse) -> dict[str, Type]:
    """The columns of a dataset that some step reads or writes, with the types that the plan takes them to have."""
    named = {read.column for step in plan.steps for read in step.reads} | set(use.natural_key)
    named.update(column for step in plan.steps for column in step.columns_named)
    return {column.name: column.type for column in use.columns if column.name in named}


def missing_and_retyped(needed: Mapping[str, Type], offered: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong with the columns that are offered, in words, column by column."""
    types = dict(offered)
    found = list[str]()
    for name, type_ in needed.items():
        if name not in types:
            found.append(f'has no column "{name}"')
        elif not _serves(parse_type(types[name]), type_):
            found.append(f'has "{name}" as {types[name]}, not {type_}')
    return found


def _serves(offered: Type, needed: Type) -> bool:
    """Whether files with a column of one type can be read as another: the same, or a decimal with room to spare."""
    if offered.kind is not Kind.DECIMAL or needed.kind is not Kind.DECIMAL:
        return offered == needed
    digits = needed.precision - needed.scale
    return offered.scale <= needed.scale and offered.precision - offered.scale <= digits
