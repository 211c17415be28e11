"""Who may approve a run: the roles, and that the requester is not the one.

Names tell people apart, whatever their case: that of the operating system's user for commands, that of the token for
the server, and for those who sign in at a provider the name that it proves, or the one that `oidc.names` gives for it.
A token is also its creator's: who requests a run cannot approve it with a token that they made, nor can the creator of
the token that requested it.
"""

from collections.abc import Callable

from clew.deferred import dataclass
from clew.runs.request import RunRecord
from clew.runs.signals import NEEDED_ROLE, Actor, Refusal, Refused, Role, RoleAuthorizer, Signal, SignalType


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """Who may approve."""

    by_another: bool = False
    """Whether it must be someone else than who requested the run."""
    roles: frozenset[Role] | None = None
    """The roles that may; None for those that the signal needs anyway."""


class PolicyAuthorizer(RoleAuthorizer):
    """Allows signals by role, and approvals by policy."""

    def __init__(
        self, policy: ApprovalPolicy, creators: Callable[[str], frozenset[str]] = lambda _name: frozenset()
    ) -> None:
        self._policy = policy
        self._creators = creators
        """Who created the tokens with a name."""

    def refusal(self, actor: Actor, signal: Signal, run: RunRecord) -> Refused | None:
        """Why this is not allowed; None if it is."""
        if signal.type is not SignalType.APPROVE:
            return super().refusal(actor, signal, run)
        if actor.tenant_id != run.request.tenant_id:
            return Refused(Refusal.WRONG_TENANT, "the run belongs to another tenant")
        return self._role_refusal(actor) or self._person_refusal(actor, run)

    def _role_refusal(self, actor: Actor) -> Refused | None:
        roles = self._policy.roles
        if roles is None:
            is_allowed, needed = actor.role >= NEEDED_ROLE[SignalType.APPROVE], NEEDED_ROLE[SignalType.APPROVE].label
        else:
            is_allowed, needed = actor.role in roles, " or ".join(role.label for role in sorted(roles))
        return None if is_allowed else Refused(Refusal.NOT_AUTHORIZED, f"APPROVE needs the role {needed}")

    def _person_refusal(self, actor: Actor, run: RunRecord) -> Refused | None:
        if not self._policy.by_another:
            return None
        requester = run.request.requested_by
        if requester is None:
            return Refused(Refusal.SAME_PERSON, "who requested the run is not known, so nobody else can be")
        own = {name.casefold() for name in (actor.name, actor.token_creator) if name is not None}
        behind = {name.casefold() for name in self._creators(requester)}
        same = requester.casefold() in own or actor.name.casefold() in behind
        told = f"{requester} requested the run; another person has to approve it"
        return Refused(Refusal.SAME_PERSON, told) if same else None
