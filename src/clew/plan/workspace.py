"""Compiles a whole workspace: every project, every resolver rule, every scenario.

Also finds scenarios that expect what their plan cannot give, and outputs of a project that would overwrite an earlier
one of the same run.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from os.path import normpath
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions import (
    CatalogDatasource,
    DatabaseDatasource,
    DatasetRef,
    FilesDatasource,
    Fragment,
    Project,
    Resolver,
    Scenario,
    WorkspaceDefinitions,
)
from clew.diagnostics import Diagnostic, Problems, UserError, did_you_mean, in_order, raise_if_any
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.project import REGISTRATION_CONFLICT
from clew.diagnostics.codes.workspace import INVALID_VALUE, UNKNOWN_DATASET, UNKNOWN_PROJECT
from clew.lang import check_condition, parse
from clew.plan.adjusting import adjusting_fragments
from clew.plan.catalogue import (
    UNKNOWABLE,
    Catalogue,
    Unknowable,
    datasets_named_by,
    registered_use,
    registering_problem,
    registration_mismatches,
    registrations,
    use_of_table,
)
from clew.plan.compiler import Compilation, Surroundings, compile_project
from clew.plan.datasets import DatasetUse
from clew.plan.expansion import ExpandedProject, FragmentLibrary, expand
from clew.plan.operations import Destination
from clew.plan.plan import Plan
from clew.plan.postlude_planning import SinkKnowledge
from clew.plan.resolution import RULE_SCOPE
from clew.plan.rounded_quotients import rounded_quotients
from clew.plan.sources_written import Reads, sources_written
from clew.plan.steps import StepBase


def expectation_problems(scenario: Scenario, plan: Plan, datasets: Mapping[str, DatasetUse]) -> Iterator[Diagnostic]:
    """Outputs and steps that the plan does not have, and columns that the datasets of the scenario do not have."""
    names = [*(str(step.seq) for step in plan.outputs), *(step.name for step in plan.outputs)]
    for name in scenario.expected_outputs or {}:
        if name not in names:
            hint = did_you_mean(name, names) or f"the outputs are {', '.join(names) or 'none'}"
            place = scenario.place("expected_outputs", name)
            yield INVALID_VALUE.at(place, problem=f'the project has no output "{name}"', hint=hint)
    seqs = [step.seq for step in plan.steps]
    for expected in scenario.expected_trace:
        if expected.operation_seq not in {0, *seqs}:
            problem = f"the project has no operation with the seq {expected.operation_seq}"
            hint = f"its operations are {', '.join(map(str, seqs)) or 'none'}, and 0 is loading"
            yield INVALID_VALUE.at(expected.place("operation_seq"), problem=problem, hint=hint)
    if scenario.expected_error is None:
        yield from _unknown_columns(scenario, datasets)


def _unknown_columns(scenario: Scenario, datasets: Mapping[str, DatasetUse]) -> Iterator[Diagnostic]:
    for dataset in scenario.datasets:
        use = datasets.get(dataset.id)
        known = {column.name for column in use.columns} if use is not None else set()
        for index, row in enumerate(dataset.rows or ()):
            for name in row:
                if use is not None and name not in known and name != "_period":
                    place = dataset.place("rows", index, name)
                    yield UNKNOWN_COLUMN.at(place, column=name, table=use.table, hint=did_you_mean(name, known))


_HINT = "give each output a separate destination, or let the later one add to it with `mode: append`"


def output_clashes(workspace: WorkspaceDefinitions, plan: Plan) -> Iterator[Diagnostic]:
    """Every output that replaces an earlier one: what the earlier one wrote could never be read.

    Placeholders are compared as they are written, since a run fills them in alike for all of its outputs.
    """
    outputs = [(step, _place(workspace, step.destination)) for step in plan.outputs]
    for index, (later, place) in enumerate(outputs):
        if later.mode != "overwrite" or place is None:
            continue
        for earlier, other in outputs[:index]:
            if other is not None and other.parts[: len(place.parts)] == place.parts:
                yield _clash(earlier, later, later.destination.path or later.destination.table)
                break


def _clash(earlier: StepBase, later: StepBase, where: str | None) -> Diagnostic:
    first = f'step {earlier.seq} "{earlier.name}"' + (f" ({earlier.place})" if earlier.place is not None else "")
    problem = f'the output to "{where}" would replace what {first} writes in the same run'
    if later.place is None:
        return OUTPUT_CONFLICT.anywhere(problem=problem, hint=_HINT)
    return OUTPUT_CONFLICT.at(later.place, problem=problem, hint=_HINT)


def _place(workspace: WorkspaceDefinitions, destination: Destination) -> Path | None:
    """Where an output goes, as a path that is the same for the same place; None if that is unknown."""
    name = destination.datasource_id
    datasource = workspace.datasource(name) if name is not None else None
    if destination.table is not None:
        if isinstance(datasource, CatalogDatasource):
            return Path("catalog:", *(datasource.full_name(destination.table) or (destination.table,)))
        if not isinstance(datasource, DatabaseDatasource):
            return None
        schema = datasource.options.schema or ""
        return Path("table:", datasource.options.url, f"{schema}.{destination.table}".removeprefix("."))
    if name is None:
        return Path(normpath(workspace.root / (destination.path or "")))
    if not isinstance(datasource, FilesDatasource):
        return None
    return Path(normpath(workspace.root / datasource.options.root / (destination.path or "")))


@dataclass(frozen=True, slots=True)
class CompiledWorkspace:
    """The plans of all projects that compile, by project id, and everything that is wrong."""

    plans: Mapping[str, Plan]
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()
    """What is right and may still surprise."""


def compile_workspace(workspace: WorkspaceDefinitions) -> CompiledWorkspace:
    """Compile everything."""
    compiler = WorkspaceCompiler(workspace)
    plans = dict[str, Plan]()
    diagnostics = list[Diagnostic]()
    for project in workspace.projects:
        compilation = compiler.project(project)
        diagnostics += compilation.diagnostics
        if compilation.plan is not None:
            plans.setdefault(project.id, compilation.plan)
    diagnostics += compiler.registration_problems()
    diagnostics += compiler.problems_of_the_rest()
    diagnostics += [found for resolver in workspace.resolvers for found in compiler.resolver(resolver)]
    diagnostics += [found for scenario in workspace.scenarios for found in compiler.scenario(scenario)]
    return CompiledWorkspace(plans, in_order(diagnostics), tuple(compiler.notes()))


class WorkspaceCompiler:
    """Compiles the projects of a workspace, each at most once, those first whose output others take as input."""

    def __init__(self, workspace: WorkspaceDefinitions) -> None:
        self._workspace = workspace
        by_name = {fragment.name: fragment for fragment in reversed(workspace.fragments)}
        by_id = {fragment.id: fragment for fragment in reversed(workspace.fragments)}
        adjusting = {fragment.id: fragment for fragment in adjusting_fragments(workspace)}
        wrong = {dataset.id for dataset in workspace.datasets if dataset.adjusts is not None} - adjusting.keys()
        holidays = {calendar.id: calendar.holidays for calendar in workspace.calendars}
        self._fragments = FragmentLibrary(adjusting | by_name | by_id, self._broken("fragment") | wrong, holidays)
        self._datasets = {dataset.name: dataset for dataset in reversed(workspace.datasets)}
        self._datasets |= {dataset.id: dataset for dataset in reversed(workspace.datasets)}
        self._sinks = _sinks_of(workspace)
        self._done: dict[str, Compilation] = {}
        """By file, since two projects may have one id, which the loader reports."""
        self._tested: list[tuple[Project, Mapping[str, DatasetUse], Compilation]] = []
        self._under_way: list[Project] = []
        self._expansions = {project.file: self._expanded(project) for project in workspace.projects}
        self._salvaged_projects = [
            (each.definition, each.is_whole) for each in workspace.salvaged if isinstance(each.definition, Project)
        ]
        self._registering = registrations(
            ((project, self._expansions[project.file]) for project in workspace.projects), self._datasets
        )
        self._lost = self._find_lost()
        self._reads = Reads(workspace)

    def project(self, project: Project) -> Compilation:
        """The plan of a project of the workspace."""
        if project.file not in self._done:
            self._compile_with_sources(project)
        return self._done[project.file]

    def _compile_with_sources(self, project: Project) -> None:
        """Compile a project, and before it those whose output it takes, with a list, since chains can be long."""
        self._under_way = [project]
        while self._under_way:
            current = self._under_way[-1]
            begun = {*self._done, *(each.file for each in self._under_way)}
            source = next((each for each in self._sources_of(current) if each.file not in begun), None)
            if source is not None:
                self._under_way.append(source)
                continue
            compilation = self.definition(current)
            overrides = self._override_problems(current)
            if overrides:
                compilation = Compilation(None, in_order([*compilation.diagnostics, *overrides]))
            self._done[current.file] = compilation
            self._under_way.pop()

    def _sources_of(self, project: Project) -> Iterator[Project]:
        """The projects that register what a project takes."""
        for name in datasets_named_by(project, self._expansions[project.file]):
            if name in self._registering and name not in self._datasets:
                yield self._registering[name][0].project

    def problems_of_the_rest(self) -> list[Diagnostic]:
        """What is wrong with the readable parts of broken projects, and with fragments that no project uses."""
        found = list[Diagnostic]()
        for project, is_whole in self._salvaged_projects:
            found += compile_project(project, self._surroundings(project, {}), is_whole=is_whole).diagnostics
        expansions = [*self._expansions.values(), *(self._expanded(project) for project, _ in self._salvaged_projects)]
        used = {name for expansion in expansions for name in expansion.fragments}
        unused = [fragment for fragment in self._workspace.fragments if fragment.id not in used]
        salvaged = [each.definition for each in self._workspace.salvaged if isinstance(each.definition, Fragment)]
        for fragment in (*unused, *salvaged):
            project = _alone(fragment)
            found += compile_project(project, self._surroundings(project, {}), is_whole=False).diagnostics
        return found

    def definition(self, project: Project) -> Compilation:
        """The plan of a project that is to run in this workspace, where its outputs must not be in each other's way."""
        compilation = self.project_with(project, {})
        if compilation.plan is None:
            return compilation
        clashes = output_clashes(self._workspace, compilation.plan)
        found = (*clashes, *sources_written(self._reads, compilation.plan))
        return Compilation(None, found) if found else compilation

    def project_with(self, project: Project, inline: Mapping[str, DatasetUse]) -> Compilation:
        """The plan of a project with other datasets in the place of the workspace's."""
        return compile_project(project, self._surroundings(project, inline))

    def scenario(self, scenario: Scenario) -> tuple[Diagnostic, ...]:
        """What is wrong with a scenario before it runs; the error that it expects is not wrong."""
        try:
            project = self.scenario_project(scenario)
            inline = self.scenario_datasets(scenario)
        except UserError as error:
            return error.diagnostics
        if project is None:
            return ()
        compilation = self._compiled_for_test(project, inline)
        if compilation.plan is not None:
            return tuple(expectation_problems(scenario, compilation.plan, inline))
        found = compilation.diagnostics
        expected = scenario.expected_error.code if scenario.expected_error else None
        return () if any(diagnostic.code == expected for diagnostic in found) else found

    def _compiled_for_test(self, project: Project, inline: Mapping[str, DatasetUse]) -> Compilation:
        """Compiled once for all scenarios that differ in rows alone: most test one project with the same datasets."""
        for known, datasets, compilation in self._tested:
            if known is project and datasets == inline:
                return compilation
        compilation = self.project_with(project, inline)
        if compilation.plan is not None:  # otherwise each is told at its own place what is wrong
            self._tested.append((project, inline, compilation))
        return compilation

    def scenario_project(self, scenario: Scenario) -> Project | None:
        """The project that a scenario tests; None if its file has errors."""
        named = scenario.project
        if isinstance(named, Project):
            return named
        found = self._workspace.project(named) or next(
            (project for project in self._workspace.projects if project.file == named.removeprefix("./")), None
        )
        if found is None and ("project", named) not in self._workspace.broken:
            hint = did_you_mean(named, [project.id for project in self._workspace.projects])
            raise UserError(UNKNOWN_PROJECT.at(scenario.place("project"), name=named, hint=hint))
        return found

    def scenario_datasets(self, scenario: Scenario) -> dict[str, DatasetUse]:
        """The datasets of a scenario, by id and name. One without a table borrows that of the workspace's dataset."""
        uses = dict[str, DatasetUse]()
        unknown = list[Diagnostic]()
        for dataset in scenario.datasets:
            known = self._workspace.dataset(dataset.id)
            borrowed: DatasetUse | Unknowable | Diagnostic | None = None
            if known is not None:
                borrowed = use_of_table(known.id, known.name, known.main_table, known.natural_key)
            elif dataset.main_table is None:
                borrowed = self._registered(dataset.id)
            if dataset.main_table is not None:
                use = use_of_table(dataset.id, dataset.name, dataset.main_table, dataset.natural_key)
            elif isinstance(borrowed, DatasetUse):
                use = borrowed
            elif borrowed is UNKNOWABLE or ("dataset", dataset.id) in self._workspace.broken:
                continue
            else:
                hint = did_you_mean(dataset.id, self._dataset_names()) or "define its main_table here"
                unknown.append(UNKNOWN_DATASET.at(dataset.place("id"), name=dataset.id, hint=hint))
                continue
            names = {dataset.id, dataset.name, use.dataset_id, use.name} | ({known.name} if known else set())
            uses.update(dict.fromkeys(names, replace(use, resolver_source="inline")))
        raise_if_any(unknown)
        return uses

    def resolver(self, resolver: Resolver) -> tuple[Diagnostic, ...]:
        """What is wrong with the conditions of a resolver's rules."""
        found = list[Diagnostic]()
        for rule in resolver.rules:
            if rule.when is not None:
                try:
                    found += check_condition(parse(rule.when), RULE_SCOPE, "in the when of a rule").diagnostics
                except UserError as error:
                    found += error.diagnostics
        return tuple(found)

    def registration_problems(self) -> list[Diagnostic]:
        """Datasets that are registered twice, and registered ones that differ from their definition."""
        found = list[Diagnostic]()
        for name, (first, *others) in self._registering.items():
            for other in others:
                by = f"the project {first.project.id}"
                if other.project is first.project:
                    by = f'step {first.placed.seq} "{first.placed.operation.name}"'
                problem = f'the dataset "{name}" is already registered by {by}'
                found.append(REGISTRATION_CONFLICT.at(other.span, problem=problem))
            declared = self._workspace.dataset(name)
            plan = self.project(first.project).plan
            conflict = registering_problem(declared) if declared is not None else None
            if conflict is not None:
                found.append(REGISTRATION_CONFLICT.at(first.span, problem=conflict[0], hint=conflict[1]))
            elif declared is not None and plan is not None:
                mismatches = registration_mismatches(plan, name, declared)
                found += [REGISTRATION_CONFLICT.at(first.span, problem=problem) for problem in mismatches]
        return found

    def notes(self, projects: Container[str] | None = None) -> list[str]:
        """What is right and may still surprise; of some projects, or of all."""
        return [*self._notes_of_registrations(projects), *self._notes_of_digits(projects)]

    def _notes_of_digits(self, projects: Container[str] | None) -> Iterator[str]:
        for project in self._workspace.projects:
            plan = self.project(project).plan if projects is None or project.id in projects else None
            if plan is not None:
                yield from rounded_quotients(plan)

    def _notes_of_registrations(self, projects: Container[str] | None) -> list[str]:
        default = self._workspace.default_resolver
        if default is None:
            return []
        return [
            f'the project "{first.project.id}" registers the dataset "{name}": from the first registration on, its '
            f'data is what is registered, and no longer what the default resolver "{default.id}" finds'
            for name, (first, *_) in self._registering.items()
            if (projects is None or first.project.id in projects)
            and (declared := self._workspace.dataset(name)) is not None
            and declared.resolver_id is None
        ]

    def _expanded(self, project: Project) -> ExpandedProject:
        """The operations of a project. What is wrong with them is reported when it is compiled."""
        return expand(project, self._fragments, Problems())

    def _find_lost(self) -> frozenset[str] | None:
        """The datasets that broken projects and fragments register; None if that is unknown."""
        salvaged = self._workspace.salvaged
        read = {name for each in salvaged for name in (each.definition.id, each.definition.name)}
        if not (self._broken("project") <= read and all(each.is_whole for each in salvaged)):
            return None
        fragments = [_alone(each.definition) for each in salvaged if isinstance(each.definition, Fragment)]
        projects = [*(project for project, _ in self._salvaged_projects), *fragments]
        return frozenset(registrations(((project, self._expanded(project)) for project in projects), self._datasets))

    def _registered(self, name: str) -> DatasetUse | Unknowable | Diagnostic | None:
        placings = self._registering.get(name)
        if placings is None:
            return UNKNOWABLE if self._lost is None or name in self._lost else None
        first = placings[0]
        waiting = [each.file for each in self._under_way]
        if first.project.file in waiting:
            begin = waiting.index(first.project.file)
            circle = " -> ".join([*(each.id for each in self._under_way[begin:]), first.project.id])
            problem = f'the dataset "{name}" comes from a cycle of projects: {circle}'
            return REGISTRATION_CONFLICT.at(first.span, problem=problem, hint="define it under datasets/")
        plan = self.project(first.project).plan
        return UNKNOWABLE if plan is None else registered_use(plan, name)

    def _broken(self, kind: str) -> frozenset[str]:
        return frozenset(name for broken_kind, name in self._workspace.broken if broken_kind == kind)

    def _surroundings(self, project: Project, inline: Mapping[str, DatasetUse]) -> Surroundings:
        default = self._workspace.default_resolver
        catalogue = Catalogue(
            datasets=self._datasets,
            inline=inline,
            default_resolver=default.id if default else None,
            overrides=project.resolver_overrides,
            broken=self._broken("dataset"),
            registered=self._registered,
            registered_names=frozenset(self._registering),
            knows_default_resolver=not self._broken("resolver"),
        )
        return Surroundings(catalogue, self._fragments, self._sinks)

    def _dataset_names(self) -> list[str]:
        return [*(dataset.id for dataset in self._workspace.datasets), *self._registering]

    def _override_problems(self, project: Project) -> list[Diagnostic]:
        """Overrides for datasets that do not exist."""
        if self._lost is None:
            return []
        known = {*self._datasets, *self._registering, *self._lost, *self._broken("dataset")}
        return [
            UNKNOWN_DATASET.at(
                project.place_of_key("resolver_overrides", name),
                name=name,
                hint=did_you_mean(name, self._dataset_names()),
            )
            for name in project.resolver_overrides
            if name not in known
        ]


def _alone(fragment: Fragment) -> Project:
    """A fragment as a project with an unknown input."""
    return Project(
        id=fragment.id,
        name=fragment.name,
        input_dataset=DatasetRef(dataset_id=""),
        selectors=fragment.selectors,
        operations=fragment.operations,
        node=fragment.node,
    )


def _sinks_of(workspace: WorkspaceDefinitions) -> SinkKnowledge | None:
    if any(kind == "workspace" for kind, _ in workspace.broken):
        return None
    longest = dict[tuple[str, str], int]()
    for environment in workspace.settings.environments.values():
        for name, sink in environment.sinks.items():
            key = (sink.type.value, name)
            longest[key] = max(longest.get(key, 0), sink.max_ttl_days)
    return SinkKnowledge(longest)
