"""Compiling a whole workspace: every project, every resolver rule, every scenario."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.diagnostics import Diagnostic, UserError, did_you_mean, in_order
from clew.diagnostics.codes.project import REGISTRATION_CONFLICT
from clew.diagnostics.codes.workspace import UNKNOWN_DATASET, UNKNOWN_PROJECT
from clew.lang import Scope, Table, check_condition, parse
from clew.lang.types import DATE, STRING
from clew.model import Output, Project, Resolver, Scenario, Workspace
from clew.plan.catalogue import UNKNOWABLE, Catalogue, Unknowable, use_of_table
from clew.plan.compiler import Compilation, Surroundings, compile_project
from clew.plan.datasets import DatasetUse
from clew.plan.expansion import PlacedOperation, expand
from clew.plan.plan import Plan
from clew.plan.postlude_jobs import SinkKnowledge
from clew.plan.problems import Problems
from clew.plan.registration import registered_use, registration_mismatches

RULE_SCOPE = Scope(
    (
        Table("period", {"identifier": STRING, "level": STRING, "start_date": DATE, "end_date": DATE}),
        Table("dataset", {"id": STRING, "name": STRING}),
        Table("table", {"name": STRING}),
    )
)
"""What the `when` of a resolver rule can see."""


@dataclass(frozen=True, slots=True)
class CompiledWorkspace:
    """The plans of all projects that compile, by project id, and everything that is wrong."""

    plans: Mapping[str, Plan]
    diagnostics: tuple[Diagnostic, ...]


def compile_workspace(workspace: Workspace) -> CompiledWorkspace:
    """Compile everything."""
    compiler = WorkspaceCompiler(workspace)
    compilations = {project.id: compiler.project(project) for project in workspace.projects}
    diagnostics = [
        *compiler.registration_problems(),
        *(found for compilation in compilations.values() for found in compilation.diagnostics),
        *(found for resolver in workspace.resolvers for found in compiler.resolver(resolver)),
        *(found for scenario in workspace.scenarios for found in compiler.scenario(scenario)),
    ]
    plans = {name: compilation.plan for name, compilation in compilations.items() if compilation.plan is not None}
    return CompiledWorkspace(plans, in_order(diagnostics))


class WorkspaceCompiler:
    """Compiles the projects of a workspace, each at most once, those first whose output others take as input."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._fragments = {fragment.id: fragment for fragment in workspace.fragments}
        self._broken_fragments = frozenset(name for kind, name in workspace.broken if kind == "fragment")
        self._sinks = _sinks_of(workspace)
        self._done: dict[str, Compilation] = {}
        self._under_way: list[str] = []
        self._registering = self._find_registering()

    def project(self, project: Project) -> Compilation:
        """The plan of a project of the workspace."""
        if project.id not in self._done:
            self._under_way.append(project.id)
            compilation = compile_project(project, self._surroundings(project, {}))
            overrides = self._override_problems(project)
            if overrides:
                compilation = Compilation(None, in_order([*compilation.diagnostics, *overrides]))
            self._done[project.id] = compilation
            self._under_way.pop()
        return self._done[project.id]

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
        found = self.project_with(project, inline).diagnostics
        expected = scenario.expected_error.code if scenario.expected_error else None
        return () if any(diagnostic.code == expected for diagnostic in found) else found

    def scenario_project(self, scenario: Scenario) -> Project | None:
        """The project that a scenario tests; None where its file has errors of its own."""
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
                raise UserError(UNKNOWN_DATASET.at(dataset.place("id"), name=dataset.id, hint=hint))
            names = {dataset.id, dataset.name, use.dataset_id, use.name} | ({known.name} if known else set())
            uses.update(dict.fromkeys(names, replace(use, resolver_source="inline")))
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
        """Datasets that two projects register, and registered ones that differ from their definition."""
        found = list[Diagnostic]()
        for name, placings in self._registering.items():
            first_project = placings[0][0]
            for project, placed in placings[1:]:
                if project.id != first_project.id:
                    problem = f'the dataset "{name}" is already registered by the project {first_project.id}'
                    span = placed.operation.place("arguments", "register_as_dataset")
                    found.append(REGISTRATION_CONFLICT.at(span, problem=problem))
            declared = self._workspace.dataset(name)
            plan = self.project(first_project).plan
            if declared is not None and plan is not None:
                span = placings[0][1].operation.place("arguments", "register_as_dataset")
                mismatches = registration_mismatches(plan, name, declared)
                found += [REGISTRATION_CONFLICT.at(span, problem=problem) for problem in mismatches]
        return found

    def _find_registering(self) -> dict[str, list[tuple[Project, PlacedOperation]]]:
        found = dict[str, list[tuple[Project, PlacedOperation]]]()
        for project in self._workspace.projects:
            for placed in expand(project, self._fragments, self._broken_fragments, Problems()):
                if isinstance(placed.operation, Output) and placed.operation.arguments.register_as_dataset:
                    found.setdefault(placed.operation.arguments.register_as_dataset, []).append((project, placed))
        return found

    def _registered(self, name: str) -> DatasetUse | Unknowable | Diagnostic | None:
        placings = self._registering.get(name)
        if placings is None:
            return UNKNOWABLE if self._may_be_registered_by_broken_project() else None
        project, placed = placings[0]
        if project.id in self._under_way:
            circle = " -> ".join((*self._under_way[self._under_way.index(project.id) :], project.id))
            problem = f'the dataset "{name}" comes from a circle of projects: {circle}'
            span = placed.operation.place("arguments", "register_as_dataset")
            return REGISTRATION_CONFLICT.at(span, problem=problem, hint="define it under datasets/")
        plan = self.project(project).plan
        return UNKNOWABLE if plan is None else registered_use(plan, name)

    def _may_be_registered_by_broken_project(self) -> bool:
        return any(kind == "project" for kind, _ in self._workspace.broken)

    def _surroundings(self, project: Project, inline: Mapping[str, DatasetUse]) -> Surroundings:
        default = self._workspace.default_resolver
        datasets = {dataset.name: dataset for dataset in reversed(self._workspace.datasets)}
        datasets |= {dataset.id: dataset for dataset in reversed(self._workspace.datasets)}
        catalogue = Catalogue(
            datasets=datasets,
            inline=inline,
            default_resolver=default.id if default else None,
            overrides=project.resolver_overrides,
            broken=frozenset(name for kind, name in self._workspace.broken if kind == "dataset"),
            registered=self._registered,
            registered_names=tuple(self._registering),
        )
        return Surroundings(catalogue, self._fragments, self._broken_fragments, self._sinks)

    def _dataset_names(self) -> list[str]:
        return [*(dataset.id for dataset in self._workspace.datasets), *self._registering]

    def _override_problems(self, project: Project) -> list[Diagnostic]:
        """Overrides for datasets that do not exist."""
        broken = {name for kind, name in self._workspace.broken if kind == "dataset"}
        return [
            UNKNOWN_DATASET.at(
                project.place_of_key("resolver_overrides", name),
                name=name,
                hint=did_you_mean(name, self._dataset_names()),
            )
            for name in project.resolver_overrides
            if self._workspace.dataset(name) is None and name not in self._registering and name not in broken
        ]


def _sinks_of(workspace: Workspace) -> SinkKnowledge:
    longest = dict[tuple[str, str], int]()
    for environment in workspace.settings.environments.values():
        for name, sink in environment.sinks.items():
            key = (sink.type.value, name)
            longest[key] = max(longest.get(key, 0), sink.max_ttl_days)
    return SinkKnowledge(longest)
