"""An environment of clew.yaml as other packages use it: paths, addresses, policies."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from clew.budgets import QuestionLimits
from clew.deferred import dataclass
from clew.definitions import Datasource, Environment, FilesDatasource
from clew.definitions.approval import Approval, ApprovalSettings, Approver
from clew.definitions.object_stores import ObjectStoreSettings, remote
from clew.definitions.storage_addresses import RemoteAddress, parse_address
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import INVALID_CREDENTIALS
from clew.runs.approving import ApprovalPolicy
from clew.runs.limits import DeliveryPolicy, LeasePolicy, Overload, QueuePolicy, RetryPolicy, StoreLimits
from clew.runs.secrets import (
    EnvironmentSecrets,
    FileSecrets,
    Redactor,
    SecretRef,
    SecretScope,
    SecretsProvider,
    SecretsResolver,
)
from clew.runs.signals import Role
from clew.storage.root import StorageRoot
from clew.storage.roots import storage_at
from clew.storage.store_access import NO_SETTINGS, StoreAccess, parse_credential, spark_settings
from clew.storage.store_reach import StoreReach

_SQLITE = "sqlite:///"

PRIVATE_FOLDER = ".clew"
"""Where a workspace keeps its state, its secrets and its managed data, unless the environment names other places."""


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """Where and how the runs of one environment happen."""

    name: str
    settings: Environment
    root: Path
    """The folder of the workspace."""

    @property
    def storage_root(self) -> StorageRoot:
        """Managed data: traces, registered datasets, captures."""
        return self.storage(self.settings.storage_root)

    @property
    def sandbox_root(self) -> StorageRoot:
        """Where drafts write."""
        return self.storage(self.settings.sandbox_root)

    def storage(self, address: str) -> StorageRoot:
        """A place that the environment names."""
        place = parse_address(address, self.root)
        if isinstance(place, Path):
            return storage_at(place, stores=self.store_at)
        access = self._access(place, self.settings.object_store, self.secrets())
        return storage_at(place, access, stores=self.store_at)

    def storage_of(self, datasource: FilesDatasource) -> StorageRoot:
        """The root of a datasource."""
        place = parse_address(datasource.options.root, self.root)
        if isinstance(place, Path):
            return storage_at(place, stores=self.store_at)
        settings = self._settings_of(datasource)
        reach = None if settings is self.settings.object_store else _reach(settings)
        return storage_at(place, self._access(place, settings, self.secrets()), reach=reach, stores=self.store_at)

    def store_at(self, address: str, reach: StoreReach | None) -> StorageRoot:
        """A place in a store that files of a table lie in. BadAddress where nothing can be there."""
        place = parse_address(address, self.root)
        if isinstance(place, Path):
            return storage_at(place)
        settings = self.settings.object_store
        if reach is not None:
            settings = ObjectStoreSettings(
                endpoint=reach.endpoint,
                region=reach.region,
                path_style=reach.path_style,
                credential_ref=reach.credential_ref,
            )
        return storage_at(place, self._access(place, settings, self.secrets()), reach=reach, stores=self.store_at)

    def _settings_of(self, datasource: FilesDatasource) -> ObjectStoreSettings:
        """Its own where it has any: credentials of the environment never go to another server. Else those here."""
        options = datasource.options
        own = ObjectStoreSettings(
            endpoint=options.endpoint,
            region=options.region,
            path_style=options.path_style,
            credential_ref=datasource.credential_ref,
        )
        return self.settings.object_store if own.is_empty else own

    def _access(self, place: RemoteAddress, settings: ObjectStoreSettings, secrets: SecretsResolver) -> StoreAccess:
        if settings.is_empty:
            return NO_SETTINGS
        reference, credential = settings.credential_ref, None
        if reference is not None:
            value = secrets.resolve([SecretRef.parse(reference)], self.scope)[reference]
            try:
                credential = parse_credential(place.scheme, value)
            except ValueError as error:
                raise UserError(INVALID_CREDENTIALS.anywhere(reference=reference, problem=error)) from None
            secrets.redactor.learn(part for _, part in credential.parts)
        return StoreAccess(settings.endpoint, settings.region, settings.path_style, credential)

    def hadoop_settings(self, datasources: Sequence[Datasource], secrets: SecretsResolver) -> dict[str, str]:
        """What Spark must know to reach the stores of the environment and of datasources. Never print the values."""
        found = dict[str, str]()
        own = [self.settings.storage_root, self.settings.sandbox_root]
        own += [sink.path for sink in self.settings.sinks.values()]
        settings = dict.fromkeys(own, self.settings.object_store)
        for datasource in datasources:
            if isinstance(datasource, FilesDatasource):
                settings[datasource.options.root] = self._settings_of(datasource)
        for address, each in settings.items():
            place = remote(address)
            if place is not None:
                found |= spark_settings(place, self._access(place, each, secrets))
        return found

    @property
    def embedded_store(self) -> Path | None:
        """The file of the state store, if it is a file; then no worker elsewhere takes the runs."""
        url = self.settings.state_store
        return self.root / url.removeprefix(_SQLITE) if url.startswith(_SQLITE) else None

    @property
    def has_private_folder(self) -> bool:
        """Whether something lies in the private folder of the workspace, or will."""
        folder = self.root / PRIVATE_FOLDER
        roots = (parse_address(text, self.root) for text in (self.settings.storage_root, self.settings.sandbox_root))
        places = (self.embedded_store, *(root for root in roots if isinstance(root, Path)))
        return folder.is_dir() or any(place is not None and folder in place.parents for place in places)

    @property
    def scope(self) -> SecretScope:
        """For whom secrets are resolved."""
        return SecretScope(self.settings.tenant, self.name)

    def secrets(self) -> SecretsResolver:
        """Secrets from variables of the process, and from files of the workspace that are not for git."""
        providers: dict[str, SecretsProvider] = {
            "env": EnvironmentSecrets(),
            "file": FileSecrets(self.root / PRIVATE_FOLDER / "secrets"),
        }
        return SecretsResolver(providers, Redactor())

    def store_url(self, secrets: SecretsResolver) -> str:
        """The address of the state store, with the password put in where one is referred to."""
        path = self.embedded_store
        if path is not None:
            return f"{_SQLITE}{path}"
        url = self.settings.state_store
        reference = self.settings.state_store_credential_ref
        if reference is None:
            return url
        password = secrets.resolve([SecretRef.parse(reference)], self.scope)[reference]
        scheme, _, rest = url.partition("://")
        user, at, host = rest.rpartition("@")
        return f"{scheme}://{user or 'clew'}:{quote(password, safe='')}{at or '@'}{host}"

    def queue_policy(self) -> QueuePolicy:
        """How the environment accepts runs."""
        queue = self.settings.queue
        return QueuePolicy(
            overload=Overload(queue.policy.value),
            max_running=queue.max_running,
            max_queued=queue.max_queued,
            delay_s=float(queue.delay_seconds),
            retry_after_s=queue.retry_after_seconds,
            approval_required=_approval_required(self.settings.approval),
        )

    def approval_policy(self) -> ApprovalPolicy:
        """Who may approve runs."""
        approval = self.settings.approval
        if not isinstance(approval, ApprovalSettings) or not approval.required:
            return ApprovalPolicy()
        roles = frozenset(Role[role.name] for role in approval.roles)
        return ApprovalPolicy(by_another=approval.by is Approver.ANOTHER_PERSON, roles=roles)

    def retry_policy(self) -> RetryPolicy:
        """How often a transient failure is retried."""
        retry = self.settings.retry
        return RetryPolicy(
            engine_attempts=retry.max_attempts,
            logical_attempts=retry.logical_attempts,
            first_delay_s=retry.base_delay_ms / 1000,
            longest_delay_s=retry.max_delay_ms / 1000,
        )

    def store_limits(self) -> StoreLimits:
        """The bounds on histories and writes."""
        limits, signals = self.settings.store_limits, self.settings.signals
        return StoreLimits(
            write_latency_budget_ms=limits.write_latency_budget_ms,
            fail_open_for=frozenset(event.value for event in limits.fail_open_for),
            max_signal_bytes=signals.max_bytes,
            max_signals_per_minute=signals.max_per_minute,
            continue_steps=limits.continue_steps,
            history_bytes=limits.history_bytes,
        )

    def lease_policy(self) -> LeasePolicy:
        """How long a run belongs to a worker that no longer reports."""
        return LeasePolicy(ttl_s=float(self.settings.lease.ttl_seconds))

    def delivery_policy(self) -> DeliveryPolicy:
        """How often events are sent to a bus."""
        delivery = self.settings.delivery
        return DeliveryPolicy(
            attempts=delivery.max_attempts,
            first_delay_s=delivery.base_delay_ms / 1000,
            longest_delay_s=delivery.max_delay_ms / 1000,
            finish_s=float(delivery.finish_seconds),
        )

    def collector_key(self) -> bytes | None:
        """The key that programs share with the collector; None if there is none."""
        reference = self.settings.tracelink.key_ref
        if reference is None:
            return None
        return self.secrets().resolve([SecretRef.parse(reference)], self.scope)[reference].encode()

    def question_limits(self) -> QuestionLimits:
        """What one question about rows may cost."""
        questions = self.settings.questions
        return QuestionLimits(
            deadline_s=float(questions.deadline_seconds),
            memory_bytes=questions.memory_megabytes * 1_000_000,
            spill_bytes=questions.spill_megabytes * 1_000_000,
        )


def _reach(settings: ObjectStoreSettings) -> StoreReach:
    return StoreReach(settings.endpoint, settings.region, settings.path_style, settings.credential_ref)


def _approval_required(approval: Approval | ApprovalSettings) -> bool:
    return approval.required if isinstance(approval, ApprovalSettings) else approval is Approval.REQUIRED
