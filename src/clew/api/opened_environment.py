"""An environment of a workspace with its state store open, as one principal sees it.

The state store is opened for each call, or once for the duration of a `with` statement on the workspace.
"""

# ruff: noqa: PLC0415 - what reads rows, and what hides them, is imported by those who ask about rows

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from clew.api.state import State, open_state
from clew.api.workspace_files import FilesSource, WorkspaceFiles
from clew.auth.access_log import GatheredLog
from clew.auth.gathered_reads import GatheredReads
from clew.auth.roles import AccessRole, Permission
from clew.deferred import dataclass
from clew.definitions.privacy import RoleName
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.server import FORBIDDEN
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.runs.signals import Actor, actor_name
from clew.storage.plans import PlanReader, PlanShelf, kept_plan

if TYPE_CHECKING:
    from clew.api.damage_alerts import DamageAlerts
    from clew.api.overview_inputs import ReadInputs
    from clew.api.run_view import RunReader
    from clew.privacy.answers import Answers
    from clew.privacy.policy import PrivacyPolicy
    from clew.privacy.seen_trace import SeenTrace
    from clew.trace.reader import RunTrace

_MOST_TRACES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The person or program that uses a workspace."""

    name: str
    role: AccessRole = AccessRole.ADMIN
    tenant_id: str | None = None
    """The tenant whose runs they see; None for the user of this process, who sees all tenants."""
    token_id: str | None = None
    """The token that identified them."""

    def require(self, permission: Permission) -> None:
        """Raise UserError Forbidden if the role does not allow something."""
        if permission not in self.role.permissions:
            raise UserError(FORBIDDEN.anywhere(problem=f"the role {self.role} may not {permission}"))

    def actor(self, tenant: str, token_creator: str | None = None) -> Actor:
        """The sender of signals, by default in the tenant of the environment."""
        return Actor(self.name, self.role.signal_role, self.tenant_id or tenant, token_creator)


def local_user(environment: RunEnvironment) -> Principal:
    """The user of the operating system, in the role that the environment gives them.

    Where it names no users, all have the role of those who open it without a server. Where it does, others are viewers.
    """
    name, settings = actor_name(), environment.settings
    role = settings.users.get(name, RoleName.VIEWER) if settings.users else settings.local_role
    return Principal(name=name, role=AccessRole(role))


@dataclass(eq=False)
class Traces:
    """The most recently used traces. If a run continues after a failure, it has more events and is opened again."""

    _opened: "OrderedDict[tuple[str, int], RunTrace]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, run: RunRecord, reader: "RunReader", at: "OpenedEnvironment", alerts: "DamageAlerts") -> "RunTrace":
        """The trace of a run that the reader may see.

        Files that are not as they were written raise an alert, and so does a history that is not what was sealed.
        """
        from clew.api.sealed_reading import require_sealed
        from clew.trace.run_trace import open_trace

        key = (run.run_id, run.last_seq)
        with self._lock:
            known = self._opened.get(key)
            if known is not None:
                self._opened.move_to_end(key)
                return known
        with alerts.raised_for(run.run_id) as on_damage:
            require_sealed(at.state, at.environment, run.run_id)
            opened = open_trace(reader.facts(run.run_id), at.environment, on_damage)
        with self._lock:
            self._opened[key] = opened
            while len(self._opened) > _MOST_TRACES:
                self._opened.popitem(last=False)
        return opened

    def close(self) -> None:
        """Close their databases. A trace that is used again reopens its database."""
        with self._lock:
            for trace in self._opened.values():
                trace.close()


@dataclass(frozen=True, eq=False)
class OpenStore:
    """An open state store, with caches that live as long as it does."""

    environment: RunEnvironment
    state: State
    traces: Traces
    plans: PlanReader

    @cached_property
    def access_log(self) -> GatheredLog:
        """Who has read what."""
        return GatheredLog(self.state.read_records)

    @cached_property
    def read_inputs(self) -> "ReadInputs":
        """What runs have read."""
        from clew.api.overview_inputs import ReadInputs

        return ReadInputs()


@dataclass(frozen=True, slots=True)
class OpenedEnvironment:
    """What the functions of this package work on. Runs of other tenants are invisible here."""

    source: FilesSource
    store: OpenStore
    principal: Principal

    @property
    def environment(self) -> RunEnvironment:
        """The environment as runs use it."""
        return self.store.environment

    @property
    def state(self) -> State:
        """The state store."""
        return self.store.state

    @property
    def actor(self) -> Actor:
        """The principal as the sender of signals."""
        token = self.state.tokens.token(self.principal.token_id) if self.principal.token_id is not None else None
        creator = token.created_by if token is not None else None
        return self.principal.actor(self.environment.settings.tenant, creator)

    @property
    def files(self) -> WorkspaceFiles:
        """The files of the workspace. Raises UserError Forbidden if it belongs to another tenant."""
        self.require_own_tenant()
        return self.source.current()

    @property
    def files_now(self) -> WorkspaceFiles:
        """The files at this moment, for code that freezes them. Raises UserError Forbidden like `files`."""
        self.require_own_tenant()
        return self.source.look_now()

    @property
    def is_own_tenant(self) -> bool:
        """Whether the workspace belongs to the tenant of the principal."""
        return self.principal.tenant_id in {None, self.environment.settings.tenant}

    def require_own_tenant(self) -> None:
        """Raise UserError Forbidden if the workspace belongs to another tenant."""
        if not self.is_own_tenant:
            raise UserError(_of_another_tenant())

    @property
    def runs(self) -> "RunReader":
        """The runs that the principal may see."""
        from clew.api.run_view import RunReader

        return RunReader(
            self.state,
            self.environment,
            tenant_id=self.principal.tenant_id,
            plans=self.store.plans,
            policy=cache(lambda: self.policy),
        )

    @property
    def policy(self) -> "PrivacyPolicy":
        """What the principal may see of the values of rows."""
        from clew.captures.salt import salt_of
        from clew.privacy.policy import PrivacyPolicy

        environment = self.environment
        return PrivacyPolicy.of(
            environment.name,
            environment.settings,
            self.principal.role,
            marks=self.source.current().privacy_marks,
            salt=partial(salt_of, environment),
        )

    def seen(self, run: RunRecord) -> "SeenTrace":
        """The trace of a run as the principal may see it: what leaves this package."""
        from clew.privacy.seen_trace import SeenTrace

        return SeenTrace(self.trace_of(run), self.policy)

    @property
    def answers(self) -> "Answers":
        """Filters explanations for the principal."""
        from clew.privacy.answers import Answers
        from clew.privacy.eyes import RunEyes

        policy = self.policy
        return Answers(cache(lambda run_id: RunEyes.of(policy, self.trace(run_id).plan)))

    def trace(self, run: str) -> "RunTrace":
        """The trace of a run by its id or first characters. Raises UserError RunNotFinished until the run has ended.

        It has the values as they are. Whatever is made from it passes `seen` or `answers` before anyone gets it.
        """
        return self.trace_of(self.runs.find(run))

    def trace_of(self, run: RunRecord) -> "RunTrace":
        """The trace of a run, opened once. It has the values as they are, like `trace`."""
        return self.store.traces.of(run, self.runs, self, self.alerts)

    @property
    def alerts(self) -> "DamageAlerts":
        """Raises alerts about what is not as it was written."""
        from clew.api.damage_alerts import DamageAlerts

        return DamageAlerts(lambda: self.state.stores.writer)


@dataclass
class _Keeper:
    """Keeps the store open as long as it is in use. Shared by all principals of one workspace."""

    kept: OpenStore | None = None
    exits: ExitStack = field(default_factory=ExitStack)
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class EnvironmentAccess:
    """Access to the state store of an environment for one principal."""

    def __init__(
        self,
        source: FilesSource,
        principal: Principal | None = None,
        keeper: _Keeper | None = None,
        *,
        reads: GatheredReads | None = None,
    ) -> None:
        self.source = source
        self.reads = reads
        """Takes what is read, to record it later; None if each read is recorded at once."""
        self._principal = principal
        self._keeper = keeper or _Keeper()

    def acting_as(self, principal: Principal, *, reads: GatheredReads | None = None) -> "EnvironmentAccess":
        """The same environment, and the same open store, for another principal."""
        return EnvironmentAccess(self.source, principal, self._keeper, reads=reads)

    @property
    def principal(self) -> Principal:
        """Who uses the environment; by default the user of this process."""
        return self._principal or local_user(self.environment)

    @property
    def environment(self) -> RunEnvironment:
        """The environment as runs use it."""
        kept = self._keeper.kept
        return kept.environment if kept is not None else self.source.current().run_environment

    def require_own_tenant(self) -> None:
        """Raise UserError Forbidden if the workspace belongs to another tenant."""
        tenant = self.principal.tenant_id
        if tenant is not None and tenant != self.environment.settings.tenant:
            raise UserError(_of_another_tenant())

    def keep_open(self) -> None:
        """Open the state store if needed, and keep it open until `close` has been called as often."""
        keeper = self._keeper
        with keeper.lock:
            if keeper.kept is None:
                keeper.kept = keeper.exits.enter_context(_opened_store(self.environment, PlanShelf().plan))
            keeper.users += 1

    def close(self) -> None:
        """Close the state store, unless it is still in use elsewhere."""
        keeper = self._keeper
        with keeper.lock:
            keeper.users -= 1
            if keeper.users == 0:
                keeper.kept = None
                keeper.exits.close()

    @contextmanager
    def opened(self) -> Iterator[OpenedEnvironment]:
        """The environment with its state store, opened for this block unless it is already open."""
        kept = self._keeper.kept
        if kept is not None:
            yield OpenedEnvironment(self.source, kept, self.principal)
            return
        with _opened_store(self.environment, kept_plan) as store:
            yield OpenedEnvironment(self.source, store, self.principal)


@contextmanager
def _opened_store(environment: RunEnvironment, plans: PlanReader) -> Iterator[OpenStore]:
    traces = Traces()
    with open_state(environment) as state:
        try:
            yield OpenStore(environment, state, traces, plans)
        finally:
            traces.close()


def _of_another_tenant() -> Diagnostic:
    return FORBIDDEN.anywhere(problem="this workspace belongs to another tenant")
