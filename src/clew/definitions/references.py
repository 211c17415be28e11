"""Checks across files: ids and names are unique, references lead somewhere, outputs go where they may.

An output stays below the root of its datasource and never overwrites the workspace itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from os.path import normpath
from pathlib import Path
from typing import TypeAlias

from clew.definitions.adjustments import problems_of_adjustments
from clew.definitions.calendar import Calendar, Period, PeriodTree
from clew.definitions.dataset import Dataset, Status
from clew.definitions.datasource import CatalogDatasource, DatabaseDatasource, Datasource, FilesDatasource
from clew.definitions.kinds import FILE_KINDS, WORKSPACE_FILE
from clew.definitions.object_stores import remote
from clew.definitions.operations import (
    Location,
    LocationDestination,
    Operation,
    Output,
    PathDestination,
    TableDestination,
    Use,
)
from clew.definitions.operations.output import CREATE_MISSING, TABLE_FORMATS
from clew.definitions.project import Fragment, Project
from clew.definitions.resolver import ANY_LEVEL, Resolver, TableStrategy
from clew.definitions.scenario import Scenario
from clew.definitions.storage_addresses import is_remote, local_path, shown
from clew.definitions.workspace import WorkspaceDefinitions
from clew.diagnostics import Diagnostic, Span, did_you_mean
from clew.diagnostics.codes.workspace import (
    DUPLICATE_ID,
    INVALID_VALUE,
    RESOLVER_INACTIVE,
    UNKNOWN_DATASOURCE,
    UNKNOWN_PERIOD,
    UNKNOWN_PROJECT,
    UNKNOWN_RESOLVER,
)

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
_LOCAL_STATE = ".clew"

NO_URL = "name a datasource whose root is the address, and a path below it"


def problems_of_output_place(
    workspace: WorkspaceDefinitions, destination: PathDestination | LocationDestination
) -> Iterator[Diagnostic]:
    """What is wrong with the path of a destination, as far as it shows before placeholders are filled in."""
    written: PathDestination | Location
    match destination:
        case PathDestination():
            datasource = workspace.datasource(destination.datasource_id)
            if not isinstance(datasource, FilesDatasource):
                return
            written, below = destination, datasource.options.root
        case LocationDestination(location=location):
            written, below = location, ""
    place = written.place("path")
    if is_url(written.path):
        yield INVALID_VALUE.at(place, problem=f'an output cannot go to the URL "{shown(written.path)}"', hint=NO_URL)
        return
    if is_remote(below) and not written.path.startswith("/"):
        over = written_over_remotely(workspace, below, written.path)
        if over is not None:
            problem = f'an output to "{written.path}" would write over {over}, which the workspace needs'
            yield INVALID_VALUE.at(place, problem=problem, hint="choose a folder that nothing else is in")
        return
    root = local_path(below, workspace.root)
    path = Path(normpath(root / written.path))
    if not path.is_relative_to(normpath(root)):
        hint = "name a path below the root of the datasource"
        yield INVALID_VALUE.at(place, problem=f'the output path "{written.path}" leads out of its root', hint=hint)
        return
    over = written_over(workspace, path)
    if over is not None:
        problem = f'an output to "{written.path}" would write over {over}, which the workspace needs'
        yield INVALID_VALUE.at(place, problem=problem, hint="choose a folder that nothing else is in")


def written_over(workspace: WorkspaceDefinitions, path: Path) -> str | None:
    """What the workspace has at a path, below it or above it: definitions, state, managed data."""
    folders = [kind.folder for kind in FILE_KINDS.values() if kind.folder is not None]
    for name in (WORKSPACE_FILE, *folders, _LOCAL_STATE, *_roots(workspace)):
        if is_remote(name):
            continue
        own = Path(normpath(local_path(name, workspace.root)))
        if path == own or path in own.parents or own in path.parents:
            return name
    return None


def _roots(workspace: WorkspaceDefinitions) -> Iterator[str]:
    """Where environments keep what they manage."""
    for environment in workspace.settings.environments.values():
        yield environment.storage_root
        yield environment.sandbox_root


def written_over_remotely(workspace: WorkspaceDefinitions, root: str, path: str) -> str | None:
    """The managed data that lies at a place of an object store, below it or above it."""
    place = remote(root)
    if place is None:
        return None
    place = place.below(path.strip("/"))
    for name in _roots(workspace):
        own = remote(name)
        if own is not None and (own.contains(place) or place.contains(own)):
            return name
    return None


def is_url(path: str) -> bool:
    """Whether a path names another place than the file system of this machine."""
    return _HAS_SCHEME.match(path) is not None


_Named: TypeAlias = Calendar | Datasource | Dataset | Resolver | Project | Fragment


def problems_between_files(workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    """Everything that is wrong between definitions which are right by themselves, scenarios apart."""
    yield from workspace.settings.problems_in(workspace.root)
    yield from _duplicate_ids("calendar", workspace.calendars)
    yield from _duplicate_ids("datasource", workspace.datasources)
    yield from _duplicate_ids("dataset", workspace.datasets)
    yield from _duplicate_ids("resolver", workspace.resolvers)
    yield from _duplicate_ids("project", workspace.projects)
    yield from _duplicate_ids("fragment", workspace.fragments)
    yield from _periods_of_several_calendars(workspace)
    yield from _several_defaults(workspace.resolvers)
    yield from _problems_of_resolvers(workspace)
    yield from _inactive_default(workspace.resolvers)
    yield from problems_of_adjustments(workspace)
    for dataset in workspace.datasets:
        place = dataset.place("resolver_id")
        yield from _unknown_resolver(workspace, dataset.resolver_id, place)
        if dataset.status is Status.ACTIVE:
            yield from _inactive_resolver(workspace, dataset.resolver_id, place)
    salvaged = [each.definition for each in workspace.salvaged]
    for project in (*workspace.projects, *(each for each in salvaged if isinstance(each, Project))):
        for name, resolver in project.resolver_overrides.items():
            place = project.place("resolver_overrides", name)
            yield from _unknown_resolver(workspace, resolver, place)
            yield from _inactive_resolver(workspace, resolver, place)
        yield from _problems_of_destinations(workspace, project.operations)
    for fragment in (*workspace.fragments, *(each for each in salvaged if isinstance(each, Fragment))):
        yield from _problems_of_destinations(workspace, fragment.operations)


def problems_of_scenarios(workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    """Scenarios with one name, unknown periods and unknown projects."""
    first: dict[str, Scenario] = {}
    for scenario in workspace.scenarios:
        known = first.setdefault(scenario.name, scenario)
        if known is not scenario:
            place = scenario.place("name")
            yield DUPLICATE_ID.at(place, kind="scenario", id=scenario.name, first=str(known.place("name")))
        yield from _problems_of_periods(workspace, scenario)
        if isinstance(scenario.project, str):
            yield from _unknown_project(workspace, scenario.project, scenario.place("project"))


def _duplicate_ids(kind: str, definitions: Sequence[_Named]) -> Iterator[Diagnostic]:
    """A reference may be an id or a name, so neither may be that of another definition."""
    owners: dict[str, _Named] = {}
    reported: set[int] = set()
    for key in ("id", "name"):
        for position, definition in enumerate(definitions):
            name = definition.id if key == "id" else definition.name
            owner = owners.setdefault(name, definition)
            if owner is not definition and position not in reported:
                reported.add(position)
                first = str(owner.place("id" if owner.id == name else "name"))
                yield DUPLICATE_ID.at(definition.place(key), kind=kind, id=name, first=first)


def _periods_of_several_calendars(workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    """A run names its period alone, so calendars must not share identifiers."""
    first: dict[str, Period] = {}
    reported: set[tuple[str, str]] = set()
    for period in workspace.periods.periods:
        known = first.setdefault(period.identifier, period)
        files = (period.node.source.file, known.node.source.file)
        if files[0] != files[1] and files not in reported:
            reported.add(files)
            yield DUPLICATE_ID.at(period.span, kind="period", id=period.identifier, first=str(known.span))


def _several_defaults(resolvers: Iterable[Resolver]) -> Iterator[Diagnostic]:
    defaults = [resolver for resolver in resolvers if resolver.is_default]
    for other in defaults[1:]:
        problem = f'the resolver "{defaults[0].id}" is the default already ({defaults[0].place("is_default")})'
        hint = "only one resolver can be the default"
        yield INVALID_VALUE.at(other.place("is_default"), problem=problem, hint=hint)


def _problems_of_resolvers(workspace: WorkspaceDefinitions) -> Iterator[Diagnostic]:
    levels = {level for calendar in workspace.calendars for level in calendar.levels}
    knows_levels = bool(levels) and not any(kind == "calendar" for kind, _ in workspace.broken)
    for resolver in workspace.resolvers:
        for rule in resolver.rules:
            place = rule.place("strategy", "datasource_id")
            yield from _unknown_datasource(workspace, rule.strategy.datasource_id, place)
            yield from _other_kind(
                workspace, rule.strategy.datasource_id, place, is_table=isinstance(rule.strategy, TableStrategy)
            )
            if knows_levels and rule.data_level not in {ANY_LEVEL, *levels}:
                problem = f'no calendar has the level "{rule.data_level}"'
                hint = did_you_mean(rule.data_level, {ANY_LEVEL, *levels})
                hint = hint or f"the levels are {', '.join(sorted(levels))}, or {ANY_LEVEL}"
                yield INVALID_VALUE.at(rule.place("data_level"), problem=problem, hint=hint)


def _problems_of_destinations(
    workspace: WorkspaceDefinitions, operations: Iterable[Operation | Use]
) -> Iterator[Diagnostic]:
    for operation in operations:
        if not isinstance(operation, Output):
            continue
        match operation.arguments.destination:
            case TableDestination() | PathDestination() as destination:
                place = destination.place("datasource_id")
                yield from _unknown_datasource(workspace, destination.datasource_id, place)
                is_table = isinstance(destination, TableDestination)
                yield from _other_kind(workspace, destination.datasource_id, place, is_table=is_table)
                if isinstance(destination, TableDestination):
                    yield from _problems_of_catalog(workspace, destination)
            case LocationDestination():
                pass
        if isinstance(operation.arguments.destination, PathDestination | LocationDestination):
            yield from problems_of_output_place(workspace, operation.arguments.destination)


def _problems_of_catalog(workspace: WorkspaceDefinitions, destination: TableDestination) -> Iterator[Diagnostic]:
    """Only tables with commits can be written by their names in a catalog, and only there something is created."""
    datasource = workspace.datasource(destination.datasource_id)
    is_catalog = isinstance(datasource, CatalogDatasource)
    if is_catalog and destination.format not in TABLE_FORMATS:
        found = "" if destination.format is None else f", and the format here is {destination.format}"
        problem = f"an output to a catalog needs a table with commits{found}"
        place = destination.place("format") if destination.format is not None else destination.place("table")
        yield INVALID_VALUE.at(place, problem=problem, hint="set format: delta or format: iceberg")
    if datasource is not None and not is_catalog and destination.create_missing is not None:
        problem = f"{CREATE_MISSING} is for tables of catalogs only"
        yield INVALID_VALUE.at(destination.place_of_key(CREATE_MISSING), problem=problem, hint="remove it")


def _unknown_datasource(workspace: WorkspaceDefinitions, name: str, place: Span) -> Iterator[Diagnostic]:
    if workspace.datasource(name) is None and ("datasource", name) not in workspace.broken:
        hint = did_you_mean(name, _names(workspace.datasources))
        yield UNKNOWN_DATASOURCE.at(place, name=name, hint=hint)


def _other_kind(workspace: WorkspaceDefinitions, name: str, place: Span, *, is_table: bool) -> Iterator[Diagnostic]:
    """A table is in a database or a catalog, a path is a file."""
    datasource = workspace.datasource(name)
    if is_table and isinstance(datasource, FilesDatasource):
        problem, hint = f'a table needs a database, and the datasource "{name}" has files', "name a database, or a path"
        yield INVALID_VALUE.at(place, problem=problem, hint=hint)
    if not is_table and isinstance(datasource, DatabaseDatasource | CatalogDatasource):
        kind = datasource.type
        problem, hint = f'a path needs files, and the datasource "{name}" is a {kind}', "name files, or a table"
        yield INVALID_VALUE.at(place, problem=problem, hint=hint)


def _unknown_resolver(workspace: WorkspaceDefinitions, name: str | None, place: Span) -> Iterator[Diagnostic]:
    if name is not None and workspace.resolver(name) is None and ("resolver", name) not in workspace.broken:
        hint = did_you_mean(name, _names(workspace.resolvers))
        yield UNKNOWN_RESOLVER.at(place, problem=f'no resolver "{name}"', hint=hint)


def _inactive_resolver(workspace: WorkspaceDefinitions, name: str | None, place: Span) -> Iterator[Diagnostic]:
    resolver = workspace.resolver(name) if name is not None else None
    if resolver is not None and resolver.status is not Status.ACTIVE:
        yield RESOLVER_INACTIVE.at(place, name=resolver.id, status=resolver.status.value)


def _inactive_default(resolvers: Iterable[Resolver]) -> Iterator[Diagnostic]:
    for resolver in resolvers:
        if resolver.is_default and resolver.status is not Status.ACTIVE:
            hint = "a default has to be active: set `status: active`, or remove `is_default`"
            yield RESOLVER_INACTIVE.at(
                resolver.place("status"), name=resolver.id, status=resolver.status.value, hint=hint
            )


def _unknown_project(workspace: WorkspaceDefinitions, name: str, place: Span) -> Iterator[Diagnostic]:
    if workspace.project(name) is None and ("project", name) not in workspace.broken:
        hint = did_you_mean(name, _names(workspace.projects))
        yield UNKNOWN_PROJECT.at(place, name=name, hint=hint)


def _problems_of_periods(workspace: WorkspaceDefinitions, scenario: Scenario) -> Iterator[Diagnostic]:
    tree = PeriodTree(scenario.periods) if scenario.periods else workspace.periods
    known = [period.identifier for period in tree.periods]
    first: dict[str, Period] = {}
    for period in scenario.periods:
        earlier = first.setdefault(period.identifier, period)
        if earlier is not period:
            where = str(earlier.place("identifier"))
            yield DUPLICATE_ID.at(period.place("identifier"), kind="period", id=period.identifier, first=where)
        if period.parent is not None and tree.period(period.parent) is None:
            yield UNKNOWN_PERIOD.at(period.place("parent"), name=period.parent, hint=did_you_mean(period.parent, known))
    calendars_are_whole = not any(kind == "calendar" for kind, _ in workspace.broken)
    if tree.period(scenario.period) is None and (scenario.periods or calendars_are_whole):
        hint = did_you_mean(scenario.period, known)
        yield UNKNOWN_PERIOD.at(scenario.place("period"), name=scenario.period, hint=hint)


def _names(definitions: Iterable[_Named]) -> list[str]:
    return [name for definition in definitions for name in (definition.id, definition.name)]
