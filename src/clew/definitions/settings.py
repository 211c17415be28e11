"""clew.yaml: the workspace itself and its environments."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from clew.definitions.approval import Approval, ApprovalSettings
from clew.definitions.capture_masks import MASK, Mask, MaskKind
from clew.definitions.datasource import NOT_HERE, can_hold_state, has_password
from clew.definitions.object_stores import (
    ObjectStoreSettings,
    problems_of_address,
    problems_of_local_path,
    problems_of_roots,
)
from clew.definitions.openid_settings import OpenIdSettings
from clew.definitions.option_maps import options_of
from clew.definitions.path_segments import NOT_A_SEGMENT, is_path_segment
from clew.definitions.privacy import PrivacySettings, RoleName
from clew.definitions.run_settings import DeliverySettings, FailOpenEvent, LeaseSettings, SignalSettings
from clew.definitions.shapes import (
    ANY_SCALAR,
    FLAG,
    NAME,
    PATH,
    SECRET,
    SLUG,
    TEXT,
    Choice,
    Definition,
    ListOf,
    Located,
    MapOf,
    Record,
    TextOr,
    Whole,
    key,
    record,
)
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic, Span, did_you_mean
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY, UNKNOWN_ENVIRONMENT

LARGEST_NODE_ID = 1023
"""A trace id has 10 bits for its node."""


class EnvironmentMode(StrEnum):
    """How careful an environment is."""

    DEV = "dev"
    PROD = "prod"


class UnrecordedReads(StrEnum):
    """What happens to reads of rows that cannot be recorded, because the state store is a file that is read-only."""

    REFUSE = "refuse"
    ALLOW = "allow"


class TableInputs(StrEnum):
    """How a run keeps the version of a table that it reads."""

    VERSION = "version"
    COPY = "copy"


class ShortLived(StrEnum):
    """What to do about a version that may be gone before the run is."""

    WARN = "warn"
    COPY = "copy"


class OverloadPolicy(StrEnum):
    """What happens to a run that is requested while too many are running."""

    REJECT = "REJECT"
    QUEUE = "QUEUE"
    DELAY = "DELAY"


class CaptureMode(StrEnum):
    """What a capture keeps of the rows at a breakpoint."""

    STATS = "stats"
    SAMPLE_RAW = "sample_raw"
    SAMPLE_VIEW = "sample_view"
    FULL_RAW = "full_raw"
    FULL_VIEW = "full_view"


class PersonalColumns(StrEnum):
    """What captures do with columns that hold personal data."""

    EXCLUDE = "exclude"
    MASK = "mask"
    INCLUDE = "include"


class SinkType(StrEnum):
    """Where a postlude job may emit to."""

    TRAINING_LOG = "training_log"
    CAPTURE_STORE = "capture_store"


class BusType(StrEnum):
    """How events leave the workspace."""

    WEBHOOK = "webhook"
    FILE = "file"
    OPENLINEAGE = "openlineage"


@record("the Spark settings")
class SparkSettings(Located):
    """How Spark is started or reached."""

    master: str = key(NAME, "The master URL: local[*], spark://host:7077, sc://host or yarn.", default="local[*]")
    config: Mapping[str, Scalar] = key(
        options_of("Spark settings"), "Spark configuration, key by key; secrets as references.", default_factory=dict
    )
    jars: tuple[str, ...] = key(ListOf(TEXT, "paths of jars"), "Jars to load, such as JDBC drivers.", default=())


@record("the queue settings")
class QueueSettings(Located):
    """How many runs execute at once, and what happens to one too many."""

    policy: OverloadPolicy = key(
        Choice(OverloadPolicy), "What happens to a run when all places are taken.", default=OverloadPolicy.QUEUE
    )
    max_running: int = key(Whole(1), "How many runs may execute at once.", default=4)
    max_queued: int = key(
        Whole(1), "How many runs may wait. With more, new ones are refused, whatever the policy.", default=1000
    )
    retry_after_seconds: int = key(Whole(0), "After how many seconds a rejected caller should retry.", default=30)
    delay_seconds: int = key(Whole(0), "How long a delayed run waits.", default=60)


@record("the retry settings")
class RetrySettings(Located):
    """How often a step is tried again when its surroundings fail."""

    max_attempts: int = key(Whole(1), "Attempts in all, the first one included.", default=3)
    base_delay_ms: int = key(Whole(0), "The wait before the second attempt; it doubles from there.", default=200)
    max_delay_ms: int = key(Whole(0), "The longest wait between two attempts.", default=10_000)
    logical_attempts: int = key(
        Whole(1),
        "How often a step is attempted anew without a person, each time with max_attempts; 1 leaves it to RETRY_STEP.",
        default=1,
    )


@record("the store limits")
class StoreLimitSettings(Located):
    """Bounds on the history of runs."""

    write_latency_budget_ms: int = key(
        Whole(1),
        "Timeout of a write. When it passes, a step waits to start, and a step whose outcome cannot be written fails.",
        default=3000,
    )
    fail_open_for: tuple[FailOpenEvent, ...] = key(
        ListOf(Choice(FailOpenEvent), "events"),
        "The events that do not hold up a run when they cannot be written in time; [] for none.",
        default=(FailOpenEvent.STEP_STARTED,),
    )
    continue_steps: int = key(Whole(1), "Steps after which the history of a run starts a new segment.", default=50)
    history_bytes: int = key(
        Whole(1), "Bytes after which the history of a run starts a new segment.", default=1_048_576
    )
    tamper_evidence: bool = key(
        FLAG, "Has no effect any more: events are always sealed, so that changes are detected.", default=True
    )


def _hashed() -> Mask:
    return Mask(MaskKind.HASH)


@record("the capture settings")
class CaptureSettings(Located):
    """What captures may keep, and how much of it."""

    modes: tuple[CaptureMode, ...] | None = key(
        ListOf(Choice(CaptureMode), "capture modes"),
        "The modes that may be requested; by default all in dev, and all but the full ones in prod.",
        default=None,
    )
    ttl_days: int = key(Whole(1), "Days until a capture is deleted.", default=7)
    max_bytes: int = key(Whole(1), "The largest capture.", default=100_000_000)
    max_rows: int = key(Whole(1), "The most rows of a capture.", default=1_000_000)
    max_columns: int = key(Whole(1), "The most columns of a capture.", default=2000)
    max_inflight_bytes: int = key(
        Whole(1), "The most bytes of all captures that are being written at once.", default=1_000_000_000
    )
    max_inflight_jobs: int = key(Whole(1), "How many captures and jobs may run at once.", default=8)
    personal_columns: PersonalColumns = key(
        Choice(PersonalColumns), "What happens to columns marked personal.", default=PersonalColumns.EXCLUDE
    )
    mask: Mask = key(
        MASK,
        "How personal columns are masked, in captures and wherever a role sees them masked.",
        default_factory=_hashed,
    )
    include_roles: tuple[str, ...] = key(
        ListOf(NAME, "roles"), "The roles that may request personal columns unmasked.", default=()
    )


@record("the tracelink settings")
class TraceLinkSettings(Located):
    """How runs keep the lineage of their rows."""

    links_up_to_rows: int = key(
        Whole(0),
        "Up to this many rows, a step writes the links of its summary rows; beyond, links are derived on demand.",
        default=100_000,
    )
    key_ref: str | None = key(
        SECRET,
        "The secret that programs share with `clew collect`; without it, what they send cannot concern rows of runs.",
        default=None,
    )
    node_id: int | None = key(
        Whole(0, LARGEST_NODE_ID),
        "The node id under which a process mints the trace ids of runs, one process at a time; by default any "
        "free one is leased.",
        default=None,
    )


@record("the question settings")
class QuestionSettings(Located):
    """What a question about rows may cost: a search, an explanation, a why-not, lineage, a look into a capture."""

    deadline_seconds: int = key(
        Whole(1, 86_400), "Seconds within which a question must be answered, or it is stopped.", default=120
    )
    memory_megabytes: int = key(
        Whole(16, 1_000_000), "Megabytes of memory that answering a question may take.", default=1000
    )
    spill_megabytes: int = key(
        Whole(0, 10_000_000), "Megabytes of temporary files that answering a question may write.", default=10_000
    )
    max_running: int = key(Whole(1, 1000), "How many questions the server answers at once.", default=4)
    max_running_per_caller: int = key(
        Whole(1, 1000), "How many questions of one caller the server answers at once.", default=2
    )
    max_waiting_per_caller: int = key(
        Whole(0, 10_000), "How many more questions of one caller may wait; the server refuses the rest.", default=20
    )
    max_waiting: int = key(
        Whole(0, 10_000), "How many questions of all callers may wait; the server refuses the rest.", default=200
    )
    retry_after_seconds: int = key(
        Whole(1, 3600), "After how many seconds a caller should repeat a refused question.", default=5
    )


@record("the evidence settings")
class EvidenceSettings(Located):
    """How the environment proves that its records are what was written."""

    key_ref: str | None = key(
        SECRET,
        "The secret that seals events and the ledger, the same for all machines that share the state store; by "
        "default a file below .clew/keys that is made once.",
        default=None,
    )
    checkpoints: str = key(
        PATH,
        "The folder that keeps where the ledger stood when runs ended, and at intervals. Whoever can write to the "
        "state store should not be able to write there.",
        default=".clew/checkpoints",
    )
    checkpoint_minutes: int = key(
        Whole(1, 10_080), "While a worker runs, a checkpoint is also kept every so many minutes.", default=60
    )

    def check(self) -> Iterator[Diagnostic]:
        """The folder is one of this machine."""
        yield from problems_of_local_path(self.checkpoints, self.place("checkpoints"), "the folder of checkpoints")


@record("the retention settings")
class RetentionSettings(Located):
    """What `clew gc` keeps by default; everything if no key is set."""

    keep_days: int | None = key(Whole(0), "Days for which a run is kept after its end.", default=None)
    keep_runs: int | None = key(Whole(0), "How many runs of each project are kept, the newest.", default=None)
    keep_lineage_days: int | None = key(
        Whole(0), "Days for which frames, links and windows are kept that programs have sent.", default=None
    )


@record("the table settings")
class TableSettings(Located):
    """How runs pin versions of Delta and Iceberg tables that they read."""

    inputs: TableInputs = key(
        Choice(TableInputs),
        "version: the version is read where it lies; copy: its rows are copied to the run.",
        default=TableInputs.VERSION,
    )
    short_lived: ShortLived = key(
        Choice(ShortLived),
        "What to do about a version that VACUUM or expire_snapshots may delete while the run is kept: warn in the "
        "record of the run, or copy.",
        default=ShortLived.WARN,
    )
    tag_snapshots: bool = key(
        FLAG,
        "Whether a run sets a tag on each snapshot of an Iceberg table that it reads, so that it is not expired while "
        "the run is kept. This writes to the table's metadata.",
        default=False,
    )


@record("a sink")
class Sink(Located):
    """A place that postlude jobs of this environment may emit to."""

    type: SinkType = key(Choice(SinkType), "The kind of emission that it accepts.")
    path: str = key(PATH, "The folder it writes to: a path, or an address such as s3://bucket/folder.")
    max_ttl_days: int = key(Whole(1), "The longest time for which a job may keep what it emits.", default=30)

    def check(self) -> Iterator[Diagnostic]:
        """The path is one that can be used."""
        yield from problems_of_address(self.path, self.place("path"))


@record("an event bus")
class BusSettings(Located):
    """Where events of runs are sent."""

    id: str = key(SLUG, "The id, unique within the environment.")
    type: BusType = key(Choice(BusType), "How events are sent.")
    url: str | None = key(
        TEXT, "The address that a webhook calls, or at which OpenLineage events are received.", default=None
    )
    path: str | None = key(PATH, "The file that events are appended to.", default=None)
    secret_ref: str | None = key(
        SECRET, "The secret that signs the calls of a webhook, or the key for a receiver of OpenLineage.", default=None
    )
    namespace: str | None = key(
        NAME,
        "The namespace of jobs and datasets in OpenLineage events; by default clew://TENANT/ENVIRONMENT.",
        default=None,
    )
    events: tuple[str, ...] = key(ListOf(NAME, "event names"), "The events to send; by default all.", default=())
    role: RoleName = key(
        Choice(RoleName),
        "Whose sight its receivers have: messages that may quote values of rows are sent as this role sees them.",
        default=RoleName.VIEWER,
    )

    def check(self) -> Iterator[Diagnostic]:
        """A webhook needs an address, a file a path, OpenLineage one of them."""
        places = {BusType.WEBHOOK: ("url",), BusType.FILE: ("path",), BusType.OPENLINEAGE: ("url", "path")}[self.type]
        if all(getattr(self, place) is None for place in places):
            needed = " or ".join(places)
            yield MISSING_KEY.at(self.span, key=needed, where=f" in an event bus of type {self.type}")
        if self.path is not None:
            yield from problems_of_local_path(self.path, self.place("path"), "the file of an event bus")
        if self.url is not None and not re.match(r"https?://[^/\s]", self.url):
            problem = f'"{self.url}" is not an http address'
            yield INVALID_VALUE.at(self.place("url"), problem=problem, hint="it must start with http:// or https://")


@record("an environment")
class Environment(Located):
    """One way to run the workspace: on a laptop, in production."""

    mode: EnvironmentMode = key(
        Choice(EnvironmentMode), "dev is convenient, prod is careful.", default=EnvironmentMode.DEV
    )
    tenant: str = key(SLUG, "The tenant that the runs belong to.", default="default")
    state_store: str = key(
        NAME,
        "Where events and states of runs are kept: sqlite:///path or postgresql://host/database.",
        default="sqlite:///.clew/state.db",
    )
    state_store_credential_ref: str | None = key(
        SECRET, "The secret with the password of the state store.", default=None
    )
    storage_root: str = key(
        PATH,
        "Where managed data is kept: registered datasets, traces, captures. A path, or an address such as "
        "s3://bucket/folder.",
        default=".clew/storage",
    )
    sandbox_root: str = key(
        PATH, "Where draft projects write: a path, or an address such as s3://bucket/folder.", default=".clew/sandbox"
    )
    object_store: ObjectStoreSettings = key(
        Record(ObjectStoreSettings),
        "How the object stores of the environment are reached.",
        default_factory=ObjectStoreSettings,
    )
    parameters: Mapping[str, Scalar] = key(
        MapOf(ANY_SCALAR, "values"),
        "Values of parameters, by name, for every project that has them; a run may give others.",
        default_factory=dict,
    )
    spark: SparkSettings = key(Record(SparkSettings), "How Spark is started.", default_factory=SparkSettings)
    approval: Approval | ApprovalSettings = key(
        TextOr(Choice(Approval), Record(ApprovalSettings)),
        "Whether runs wait for an approval: required, none, or a policy.",
        default=Approval.NONE,
    )
    queue: QueueSettings = key(
        Record(QueueSettings), "How many runs may execute at once.", default_factory=QueueSettings
    )
    retry: RetrySettings = key(Record(RetrySettings), "How failed steps are retried.", default_factory=RetrySettings)
    lease: LeaseSettings = key(
        Record(LeaseSettings), "How long a run belongs to its worker.", default_factory=LeaseSettings
    )
    signals: SignalSettings = key(
        Record(SignalSettings), "How large signals may be, and how many.", default_factory=SignalSettings
    )
    delivery: DeliverySettings = key(
        Record(DeliverySettings), "How often events are sent to a bus.", default_factory=DeliverySettings
    )
    store_limits: StoreLimitSettings = key(
        Record(StoreLimitSettings), "Bounds on the history of runs.", default_factory=StoreLimitSettings
    )
    evidence: EvidenceSettings = key(
        Record(EvidenceSettings), "How records are sealed.", default_factory=EvidenceSettings
    )
    retention: RetentionSettings = key(
        Record(RetentionSettings), "Which runs `clew gc` keeps.", default_factory=RetentionSettings
    )
    tracelink: TraceLinkSettings = key(
        Record(TraceLinkSettings), "How runs keep the lineage of their rows.", default_factory=TraceLinkSettings
    )
    tables: TableSettings = key(
        Record(TableSettings), "How versions of Delta and Iceberg tables are pinned.", default_factory=TableSettings
    )
    questions: QuestionSettings = key(
        Record(QuestionSettings), "What a question about rows may cost.", default_factory=QuestionSettings
    )
    privacy: PrivacySettings = key(
        Record(PrivacySettings), "Who sees the values of which columns.", default_factory=PrivacySettings
    )
    local_role: RoleName = key(
        Choice(RoleName),
        "The role of commands and programs that open the workspace without a server.",
        default=RoleName.ADMIN,
    )
    users: Mapping[str, RoleName] = key(
        MapOf(Choice(RoleName), "roles by user"),
        "The roles of users of the operating system; with any, all others are viewers.",
        default_factory=dict,
    )
    unrecorded_reads: UnrecordedReads = key(
        Choice(UnrecordedReads),
        "Whether rows may be read where the state store is read-only, so that the read cannot be recorded.",
        default=UnrecordedReads.REFUSE,
    )
    oidc: OpenIdSettings | None = key(
        Record(OpenIdSettings), "How people sign in to the server with OpenID Connect.", default=None
    )
    captures: CaptureSettings = key(Record(CaptureSettings), "What captures may keep.", default_factory=CaptureSettings)
    sinks: Mapping[str, Sink] = key(
        MapOf(Record(Sink), "sinks by id"), "Where postlude jobs may emit to.", default_factory=dict
    )
    bus: tuple[BusSettings, ...] = key(
        ListOf(Record(BusSettings), "event buses"), "Where events of runs are sent.", default=()
    )

    def check(self) -> Iterator[Diagnostic]:
        """The state store can hold state and its address has no password, sinks have safe ids, roots can be used."""
        for sink in self.sinks:
            if not is_path_segment(sink):
                problem = f'"{sink}" cannot be the id of a sink'
                yield INVALID_VALUE.at(self.place("sinks", sink), problem=problem, hint=NOT_A_SEGMENT)
        place = self.place("state_store")
        if not can_hold_state(self.state_store):
            hint = "write sqlite:///path or postgresql://host/database"
            yield INVALID_VALUE.at(place, problem="this is not a valid state store address", hint=hint)
        elif has_password(self.state_store):
            hint = f"{NOT_HERE}, as state_store_credential_ref"
            yield INVALID_VALUE.at(place, problem="the address of the state store contains a password", hint=hint)
        for name in ("storage_root", "sandbox_root"):
            yield from problems_of_address(getattr(self, name), self.place(name))

    @property
    def capture_modes(self) -> tuple[CaptureMode, ...]:
        """The modes that may be asked for here."""
        if self.captures.modes is not None:
            return self.captures.modes
        if self.mode is EnvironmentMode.DEV:
            return tuple(CaptureMode)
        return (CaptureMode.STATS, CaptureMode.SAMPLE_RAW, CaptureMode.SAMPLE_VIEW)


def _plain_environments() -> Mapping[str, Environment]:
    return {"dev": Environment()}


@record("clew.yaml")
class Settings(Definition):
    """A workspace: its name and its environments."""

    name: str = key(NAME, "The name of the workspace.")
    description: str = key(TEXT, "What the workspace is for.", default="")
    default_environment: str | None = key(
        NAME, "The environment that commands use if none is named; by default the first.", default=None
    )
    environments: Mapping[str, Environment] = key(
        MapOf(Record(Environment), "environments by name", at_least=1),
        "The environments by name; by default one named dev with all defaults.",
        default_factory=_plain_environments,
    )

    def check(self) -> Iterator[Diagnostic]:
        """The default environment exists, and no root is inside that of another environment."""
        name = self.default_environment
        if name is not None and name not in self.environments:
            hint = did_you_mean(name, self.environments) or f"the environments are {', '.join(self.environments)}"
            yield UNKNOWN_ENVIRONMENT.at(self.place("default_environment"), name=name, hint=hint)
        yield from problems_of_roots(self._roots)

    @property
    def _roots(self) -> Mapping[str, tuple[str, Span | None]]:
        return {
            f'{root} of "{name}"': (getattr(environment, root), environment.place(root))
            for name, environment in self.environments.items()
            for root in ("storage_root", "sandbox_root")
        }

    def problems_in(self, folder: Path) -> Iterator[Diagnostic]:
        """What is wrong with the roots that shows only where the folder of the workspace is known."""
        known = {each.message for each in problems_of_roots(self._roots)}
        yield from (each for each in problems_of_roots(self._roots, folder) if each.message not in known)

    @property
    def usual_environment(self) -> str:
        """The name of the environment that commands take where none is named."""
        return self.default_environment or next(iter(self.environments))
