"""An environment of clew.yaml as other packages use it: paths, addresses, policies."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from clew.budgets import QuestionLimits
from clew.definitions import Environment
from clew.definitions.settings import Approval
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
from clew.storage.local import storage_at
from clew.storage.root import StorageRoot

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
        return storage_at(self.root / self.settings.storage_root)

    @property
    def sandbox_root(self) -> Path:
        """Where drafts write."""
        return self.root / self.settings.sandbox_root

    @property
    def embedded_store(self) -> Path | None:
        """The file of the state store, if it is a file; then no worker elsewhere takes the runs."""
        url = self.settings.state_store
        return self.root / url.removeprefix(_SQLITE) if url.startswith(_SQLITE) else None

    @property
    def has_private_folder(self) -> bool:
        """Whether something lies in the private folder of the workspace, or will."""
        folder = self.root / PRIVATE_FOLDER
        places = (self.embedded_store, self.root / self.settings.storage_root, self.sandbox_root)
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
            approval_required=self.settings.approval is Approval.REQUIRED,
        )

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
