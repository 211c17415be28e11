"""The event buses of an environment, opened as clew.yaml declares them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import assert_never

from clew.bus.event_bus import Announcing, ChosenEvents, EventBus, SeenEvents
from clew.bus.file import FileBus
from clew.bus.openlineage import FileTarget, HttpTarget, OpenLineageBus
from clew.bus.webhook import WebhookBus
from clew.deferred import dataclass
from clew.definitions.settings import BusSettings, BusType
from clew.events.envelope import StoredEvent
from clew.events.reducer import project_run
from clew.events.values import CheckResult
from clew.plan import Plan
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.runs.secrets import SecretRef, SecretsResolver
from clew.runs.stores import History
from clew.storage.plans import is_kept, kept_plan


def buses_of(
    environment: RunEnvironment,
    secrets: SecretsResolver,
    see: Callable[[BusSettings, StoredEvent], StoredEvent],
    history: History,
) -> dict[str, EventBus]:
    """The event buses of an environment, by id. `see` gives what the receivers of a bus may see of an event."""
    opening = _Opening(environment, secrets, history)
    buses = environment.settings.bus
    opened: dict[str, EventBus] = {bus.id: SeenEvents(opening.bus(bus), partial(see, bus)) for bus in buses}
    return {**opened, **{bus.id: ChosenEvents(opened[bus.id], bus.events) for bus in buses if bus.events}}


def announcing_buses(
    environment: RunEnvironment, secrets: SecretsResolver
) -> Iterator[tuple[str, Callable[[], Announcing]]]:
    """The buses that also take documents that are not about a run, by id; each is opened when it is called.

    OpenLineage has no form for them, and a bus that names the types of its events wants nothing else.
    """
    opening = _Opening(environment, secrets, None)
    for bus in environment.settings.bus:
        if not bus.events and bus.type is not BusType.OPENLINEAGE:
            yield bus.id, partial(opening.announcing, bus)


@dataclass(frozen=True, slots=True)
class _Opening:
    environment: RunEnvironment
    secrets: SecretsResolver
    history: History | None
    """Where buses that tell how a run has ended read what happened before; None for those that tell no runs."""

    def bus(self, bus: BusSettings) -> EventBus:
        secret = self._secret(bus.secret_ref)
        match bus.type:
            case BusType.FILE:
                return FileBus(bus.id, self._file(bus))
            case BusType.WEBHOOK:
                return WebhookBus(bus.id, bus.url or "", secret=secret)
            case BusType.OPENLINEAGE:
                target = HttpTarget(bus.url, api_key=secret) if bus.url else FileTarget(self._file(bus))
                named = f"clew://{self.environment.settings.tenant}/{self.environment.name}"
                return OpenLineageBus(
                    bus.id,
                    target,
                    namespace=bus.namespace or named,
                    plan_of=partial(plan_of, self.environment),
                    checks_until=partial(checks_until, self.history),
                )
        assert_never(bus.type)

    def announcing(self, bus: BusSettings) -> Announcing:
        """A bus that takes any document."""
        opened = self.bus(bus)
        assert isinstance(opened, FileBus | WebhookBus)  # noqa: S101 - others were not offered
        return opened

    def _file(self, bus: BusSettings) -> Path:
        return self.environment.root / (bus.path or f".clew/bus/{bus.id}.jsonl")

    def _secret(self, reference: str | None) -> Callable[[], str] | None:
        if reference is None:
            return None
        return lambda: self.secrets.resolve([SecretRef.parse(reference)], self.environment.scope)[reference]


def plan_of(environment: RunEnvironment, run: RunRecord) -> Plan | None:
    """The stored plan of a run; None if it was deleted, so that its events are sent without details."""
    digest, root = run.request.plan.digest, environment.storage_root
    return kept_plan(root, digest) if digest is not None and is_kept(root, digest) else None


def checks_until(history: History | None, event: StoredEvent) -> Sequence[CheckResult]:
    """What the checks of a run had found when an event was stored. Later events do not change it."""
    if history is None:
        return ()
    before = history.events(event.run_id, limit=event.run_seq)
    return project_run(event.run_id, (each for each in before if each.run_seq <= event.run_seq)).checks
