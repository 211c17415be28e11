"""The sinks of an environment, as clew.yaml declares its event buses."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from clew.bus.file import FileSink
from clew.bus.openlineage import FileTarget, HttpTarget, OpenLineageSink
from clew.bus.sink import ChosenEvents, Sink
from clew.bus.webhook import WebhookSink
from clew.definitions.settings import Bus, BusType
from clew.plan import Plan
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.runs.secrets import SecretRef, SecretsResolver
from clew.storage.plans import is_kept, kept_plan


def sinks_of(environment: RunEnvironment, secrets: SecretsResolver) -> dict[str, Sink]:
    """The event buses of an environment, by id."""
    opening = _Opening(environment, secrets)
    buses = environment.settings.bus
    sinks = {bus.id: opening.sink(bus) for bus in buses}
    return {**sinks, **{bus.id: ChosenEvents(sinks[bus.id], bus.events) for bus in buses if bus.events}}


@dataclass(frozen=True, slots=True)
class _Opening:
    environment: RunEnvironment
    secrets: SecretsResolver

    def sink(self, bus: Bus) -> Sink:
        secret = self._secret(bus.secret_ref)
        match bus.type:
            case BusType.FILE:
                return FileSink(bus.id, self._file(bus))
            case BusType.WEBHOOK:
                return WebhookSink(bus.id, bus.url or "", secret=secret)
            case BusType.OPENLINEAGE:
                target = HttpTarget(bus.url, api_key=secret) if bus.url else FileTarget(self._file(bus))
                named = f"clew://{self.environment.settings.tenant}/{self.environment.name}"
                return OpenLineageSink(bus.id, target, namespace=bus.namespace or named, plan_of=self._plan_of)
        assert_never(bus.type)

    def _file(self, bus: Bus) -> Path:
        return self.environment.root / (bus.path or f".clew/bus/{bus.id}.jsonl")

    def _secret(self, reference: str | None) -> Callable[[], str] | None:
        if reference is None:
            return None
        return lambda: self.secrets.resolve([SecretRef.parse(reference)], self.environment.scope)[reference]

    def _plan_of(self, run: RunRecord) -> Plan | None:
        """The plan of a run as it was kept; None where it is gone, so that its events go out without details."""
        digest, root = run.request.plan.digest, self.environment.storage_root
        return kept_plan(root, digest) if digest is not None and is_kept(root, digest) else None
