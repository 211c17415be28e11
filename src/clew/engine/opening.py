"""Opens the Spark executor of a run: plan, session, inputs, destinations, registration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from clew.deferred import dataclass
from clew.definitions import Period, WorkspaceDefinitions
from clew.definitions.settings import ShortLived, TableInputs
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.diagnostics.codes.project import DATASET_CONFLICT
from clew.diagnostics.codes.runs import NOT_KNOWN_THEN, RUN_NOT_FOUND
from clew.engine.executor import SparkExecutor, SparkRun
from clew.engine.loading import PinRequest, pin, pin_managed
from clew.engine.loading.periods import periods_read
from clew.engine.loading.registered_tables import pin_registered_tables
from clew.engine.loading.sources import TablePolicy
from clew.engine.loading.table_inputs import TABLE_FORMATS, with_versions_then
from clew.engine.loading.unchanged import changed_sources, read_as
from clew.engine.output.destinations import Destinations
from clew.engine.output.lake_tables import LakeOutputs
from clew.engine.output.places import RunIsUnderWay
from clew.engine.output.publishing import FilePublisher
from clew.engine.output.registering import Register, StorageRegistrar
from clew.engine.output.tables import TableOutputs
from clew.engine.parts import DraftedPart, count_of_deleted, count_of_periods
from clew.engine.taking_over import TakingOver
from clew.engine.trace_ids import TraceIdSource, TraceLinking
from clew.engine.types import SparkSession
from clew.events.snapshot import RunSnapshot
from clew.plan import Plan, require_capabilities
from clew.plan.datasets import DatasetUse, TableTransfer
from clew.plan.resolution import ResolvedSource, resolve
from clew.runs.clock import utc_now
from clew.runs.datasets_now import require_period_of_its_own, require_registrable, resolved_now
from clew.runs.environment import RunEnvironment
from clew.runs.known_then import shown, versions_then
from clew.runs.named_periods import period_of
from clew.runs.registry import DatasetRegistry, DatasetVersion
from clew.runs.request import AsOf, RunRecord
from clew.runs.reuse import EarlierRun
from clew.runs.secrets import SecretRef, SecretsResolver, with_secrets
from clew.runs.version_conflicts import unknown_version, version_conflict
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import COUNTED_ROWS, DELETED_ROWS, READ_AS, Part, PartFile
from clew.storage.plans import kept_plan
from clew.storage.root import StorageRoot
from clew.trace.run_parts import periods_of

ENGINE_CAPABILITIES = frozenset(
    {
        "cap.clew.aggregate.v1",
        "cap.clew.aggregate_having.v1",
        "cap.clew.append.v1",
        "cap.clew.delete.v1",
        "cap.clew.delete_duplicates.v1",
        "cap.clew.output.v1",
        "cap.clew.register_dataset.v1",
        "cap.clew.runtime_join.v1",
        "cap.clew.update.v1",
        "cap.clew.window.v1",
        "cap.rfc.0003.debug_capture_postlude.v1",
    }
)
"""What this engine can do."""

DRAFT = "draft"
"""The project version of a run that runs the file as it is, into the sandbox."""


def unknown_run(run_id: str) -> EarlierRun:
    """The answer where no run can be found."""
    raise UserError(RUN_NOT_FOUND.anywhere(run_id=run_id))


@dataclass(frozen=True, slots=True)
class SparkExecutors:
    """Executors for the runs of one environment, on one Spark session that starts with the first."""

    workspace: WorkspaceDefinitions
    environment: RunEnvironment
    datasets: DatasetRegistry
    secrets: SecretsResolver
    spark: Callable[[], SparkSession]
    tables: TableTransfer
    """Reads and writes tables without a driver for Spark."""
    trace_ids: TraceIdSource | None = None
    """Where rows get their trace ids from; None where they need none."""
    is_under_way: RunIsUnderWay = lambda _run_id: True
    """Whether another run may still publish."""
    earlier: Callable[[str], EarlierRun] = unknown_run
    """Finds a run that another one repeats. UserError if it is gone."""
    version: str = ""
    """This Clew, as events name it."""
    registered_at: StorageRoot | None = None
    """Where the files of registered datasets are, if what is pinned goes elsewhere."""

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> SparkExecutor:
        """The executor of a run."""
        request = run.request
        plan = kept_plan(self.environment.storage_root, request.plan.digest or "")
        require_capabilities(plan, ENGINE_CAPABILITIES)
        require_registrable(self.workspace, plan)
        period = period_of(self.workspace, request.period)
        is_draft = request.project_version == DRAFT or request.as_of is not None
        if not is_draft:
            self.require_free_period(plan, run.run_id, request.period)
        destinations = Destinations(
            self.workspace,
            period,
            run.run_id,
            plan,
            self.environment.sandbox_root if is_draft else None,
            self.secret,
            self.environment.storage_of,
            self.is_under_way,
        )
        # What is resolved here is known to those who keep secrets out of events and logs.
        self.environment.hadoop_settings(self.workspace.datasources, self.secrets)
        spark = self.spark()
        executor = SparkExecutor(
            SparkRun(
                spark=spark,
                run_id=run.run_id,
                plan=plan,
                period=request.period,
                storage_root=self.environment.storage_root,
                inputs=Inputs(self, spark, run.run_id, plan, period, request.as_of),
                publisher=FilePublisher(
                    run.run_id,
                    destinations.place_of,
                    self._tables(run.run_id, destinations),
                    LakeOutputs(
                        run.run_id,
                        self.environment.storage_root,
                        periods_read(period, self.workspace.periods),
                        request.project_id,
                    ),
                    destinations.catalog_table_of,
                ),
                registrar=NoRegistrar() if is_draft else self._registrar(run.run_id, plan, request.period),
                linking=TraceLinking(self.trace_ids, self.environment.settings.tracelink.links_up_to_rows),
                taking_over=self._taking_over(run, snapshot, plan, spark),
                today=None if request.as_of is None else request.today(utc_now()),
            )
        )
        executor.look_back(snapshot)
        return executor

    def _taking_over(self, run: RunRecord, snapshot: RunSnapshot, plan: Plan, spark: SparkSession) -> TakingOver | None:
        """What a rerun takes over. Once it has its inputs, it goes on without the earlier run if that is gone."""
        rerun = run.request.rerun
        if rerun is None:
            return None
        try:
            earlier = self.earlier(rerun.of)
        except UserError:
            if snapshot.artifacts:
                return None
            raise
        return TakingOver(
            earlier,
            plan,
            run.run_id,
            self.environment.storage_root,
            looks_again=rerun.changed_inputs,
            version=self.version,
            spark=spark.version,
            keeps_inputs=run.request.as_of is not None,
        )

    def require_free_period(self, plan: Plan, run_id: str, period: str) -> None:
        """UserError RegistrationConflict if rows of the period are in a registered dataset as part of a longer one.

        The same is asked again when an output is registered: another run may have been faster.
        """
        for step in plan.outputs:
            if step.registers is not None:
                versions = self.datasets.versions(step.registers)
                require_period_of_its_own(step, run_id, period, self.workspace.periods, versions)

    def _registrar(self, run_id: str, plan: Plan, period: str) -> StorageRegistrar:
        periods, root = self.workspace.periods, self.environment.storage_root
        return StorageRegistrar(run_id, plan, period, periods, root, self.datasets, self.table_policy)

    @property
    def table_policy(self) -> TablePolicy:
        """How the environment treats Delta and Iceberg tables."""
        settings = self.environment.settings
        tables = settings.tables
        return TablePolicy(
            copies=tables.inputs is TableInputs.COPY,
            copies_short_lived=tables.short_lived is ShortLived.COPY,
            tags=tables.tag_snapshots,
            keep_days=settings.retention.keep_days,
        )

    def _tables(self, run_id: str, destinations: Destinations) -> TableOutputs:
        root = self.environment.storage_root
        return TableOutputs(run_id, root, destinations.table_of, destinations.columns_of, self.tables)

    def secret(self, reference: str) -> str:
        """The value of a secret of the environment."""
        return self.secrets.resolve([SecretRef.parse(reference)], self.environment.scope)[reference]


class NoRegistrar:
    """For drafts: no project reads their outputs."""

    def prepare(self, rows: object, step: object, expressing: object, lease: object) -> Register:
        """Register nothing."""
        del rows, step, expressing, lease
        return lambda _table: None


@dataclass(frozen=True, slots=True)
class Inputs:
    """Pins the datasets of a run."""

    executors: SparkExecutors
    spark: SparkSession
    run_id: str
    plan: Plan
    period: Period
    as_of: AsOf | None = None
    """The time that the run goes back to."""

    def pin(self, use: DatasetUse, first_file_ordinal: int) -> DraftedPart:
        """Pin a dataset, from where its resolver says or from a version that a project registered."""
        versions = self.executors.datasets.versions(use.dataset_id)
        request = self._resolved(use, versions, first_file_ordinal)
        if request is None:
            return self._managed(use, self._known(use, versions), first_file_ordinal)
        if self.as_of is not None and not _has_versions(request):
            raise self._never_read(use)
        return pin(self.spark, request).drafted

    def changed(self, use: DatasetUse, earlier: Part) -> str | None:
        """Why the rows of a dataset may be others than an earlier run has read; None if digests say that they are not.

        Which files a registered version has is known when it is pinned, which copies nothing. A run that goes back to
        a time takes what was read last before it from sources that keep no versions.
        """
        versions = self.executors.datasets.versions(use.dataset_id)
        request = self._resolved(use, versions, 0)
        if request is None:
            counting = _version(use, self._known(use, versions)).version
            return f"version {counting} of it counts now" if self.as_of is None else f"it was version {counting} then"
        if self.as_of is None:
            return changed_sources(request, earlier)
        return "the version of the table that was the newest then counts" if _has_versions(request) else None

    def _known(self, use: DatasetUse, versions: Sequence[DatasetVersion]) -> Sequence[DatasetVersion]:
        """The versions of a registered dataset that the run may know."""
        if self.as_of is None:
            return versions
        return versions_then(use.dataset_id, versions, self.as_of.at, use.pinned_version)

    def _never_read(self, use: DatasetUse) -> UserError:
        assert self.as_of is not None  # noqa: S101 - asked only then
        problem = (
            f'no run of "{self.plan.name}" for {self.period.identifier} had read the dataset "{use.name}", whose '
            "sources keep no versions"
        )
        hint = "go back to a time after the first run, or keep the data as a Delta or Iceberg table"
        return UserError(NOT_KNOWN_THEN.anywhere(problem=problem, hint=hint, at=shown(self.as_of.at)))

    def _resolved(
        self, use: DatasetUse, versions: Sequence[DatasetVersion], first_file_ordinal: int
    ) -> PinRequest | None:
        """What to read where a resolver finds the data; None for a registered version."""
        workspace = self.executors.workspace
        resolved = resolved_now(workspace, self.plan, use, versions)
        if resolved is None:
            return None
        named = resolve(resolved.use, resolved.resolver, self.period, workspace.periods, today=utc_now().date())
        sources = tuple(replace(each, options=self._with_secrets(each.options)) for each in named)
        how = {READ_AS: read_as(resolved.use, named, self.period, workspace.periods)}
        request = self._request(resolved.use, sources, {**resolved.details(), **how}, first_file_ordinal)
        if self.as_of is None or not _has_versions(request):
            return request
        return with_versions_then(request, self.as_of.at)

    def _request(
        self,
        use: DatasetUse,
        sources: tuple[ResolvedSource, ...],
        resolution: Mapping[str, str | int | None],
        first_file_ordinal: int,
    ) -> PinRequest:
        workspace = self.executors.workspace
        return PinRequest(
            use=use,
            sources=sources,
            resolution=resolution,
            datasources={name: each for each in workspace.datasources for name in (each.name, each.id)},
            workspace_root=workspace.root,
            storage_root=self.executors.environment.storage_root,
            run_id=self.run_id,
            period=self.period,
            periods=workspace.periods,
            first_file_ordinal=first_file_ordinal,
            secrets=self.executors.secret,
            storage_of=self.executors.environment.storage_of,
            tables=self.executors.tables,
            may_be_empty=use.key != self.plan.input.key or self._may_be_empty(use),
            table_policy=self.executors.table_policy,
        )

    def _with_secrets(self, options: Mapping[str, str]) -> dict[str, str]:
        return with_secrets(options, self.executors.secrets, self.executors.environment.scope)

    def _may_be_empty(self, use: DatasetUse) -> bool:
        dataset = self.executors.workspace.dataset(use.dataset_id)
        return dataset is not None and dataset.may_be_empty

    def _managed(self, use: DatasetUse, versions: Sequence[DatasetVersion], first_file_ordinal: int) -> DraftedPart:
        version = _version(use, versions)
        self._require_columns(use, version, versions)
        if version.tables:
            request = self._request(use, (), {}, first_file_ordinal)
            return pin_registered_tables(self.spark, request, version.version, version.tables)
        self._require_rows(use, version)
        files = [PartFile(file.path, file.rows, file.size, file.sha256) for file in version.files]
        part = pin_managed(
            use,
            files,
            version=version.version,
            period=self.period,
            periods=self.executors.workspace.periods,
            first_file_ordinal=first_file_ordinal,
        )
        root = self.executors.environment.storage_root
        part = replace(part, details={**(part.details or {}), **self._counts(use, part)})
        return DraftedPart(draft(root, part_folder(self.run_id, part.kind, part.name)), part)

    def _counts(self, use: DatasetUse, part: Part) -> Mapping[str, int]:
        """What the files of a registered dataset hold. UserError where one is gone."""
        root, seen = self.executors.registered_at or self.executors.environment.storage_root, periods_of(part, use)
        try:
            deleted = {DELETED_ROWS: count_of_deleted(root, part.files, seen)}
            return deleted if seen is None else {**deleted, COUNTED_ROWS: count_of_periods(root, part.files, seen)}
        except FileNotFoundError:
            gone = next((file.path for file in part.files if not root.exists(file.path)), part.name)
            problem = f'a file of the dataset "{part.name}" is gone: {gone}'
            raise UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem)) from None

    def _require_rows(self, use: DatasetUse, version: DatasetVersion) -> None:
        """The input of a run has to have rows; those of a period may lie in the files of a period above or below."""
        if use.key != self.plan.input.key or self._may_be_empty(use):
            return
        name, periods = self.period.identifier, self.executors.workspace.periods
        near = {name, *(each.identifier for each in (*periods.descendants(name), *periods.ancestors(name)))}
        if any(file.rows and (use.temporal_mode != "period" or file.period in near) for file in version.files):
            return
        of_period = f' for the period "{name}"' if use.temporal_mode == "period" else ""
        problem = f'version {version.version} of the dataset "{use.dataset_id}" has no rows{of_period}'
        hint = (
            f'run the project that registers it for "{name}" first; where it has no rows for good reason, declare the '
            "dataset under datasets/ with `may_be_empty: true`"
        )
        raise UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem, hint=hint))

    def _require_columns(self, use: DatasetUse, version: DatasetVersion, versions: Sequence[DatasetVersion]) -> None:
        """A column that a file lacks would be read as NULL, so columns that a version dropped are reported first."""
        periods = self.executors.workspace.periods
        conflict = version_conflict(self.plan, use, version, versions, self.period, periods)
        if conflict is not None:
            raise UserError(DATASET_CONFLICT.anywhere(problem=conflict))


def _has_versions(request: PinRequest) -> bool:
    """Whether all sources are tables at paths, whose versions of the past can be told by their own files."""
    return all(each.kind == "path" and each.format in TABLE_FORMATS for each in request.sources)


def _version(use: DatasetUse, versions: Sequence[DatasetVersion]) -> DatasetVersion:
    """The version that a plan asks for: the newest, unless it pins one."""
    if not versions:
        pinned = f" version {use.pinned_version}" if use.pinned_version else ""
        problem = f'no run has registered the dataset "{use.dataset_id}"{pinned} yet'
        hint = "run the project that registers it first"
        raise UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem, hint=hint))
    if use.pinned_version is None:
        return versions[0]
    found = next((version for version in versions if version.version == use.pinned_version), None)
    if found is None:
        raise UserError(unknown_version(use, versions))
    return found
