"""Roles, and what each of them may do."""

from collections.abc import Mapping
from enum import StrEnum

from clew.runs.signals import Role


class Permission(StrEnum):
    """Something that a role may or may not do."""

    READ_RUNS = "read runs"
    """Projects, plans, datasets, runs, events, counts: everything but the values of rows."""
    READ_ROWS = "read rows"
    """Traces, explanations and lineage of rows."""
    READ_CAPTURES = "read captures"
    START_RUNS = "start runs"
    SEND_SIGNALS = "send signals"
    """Which ones is decided by the role that the signal asks for."""
    READ_ACCESS_LOG = "read the access log"
    REPLAY_EVENTS = "replay events"
    ACTIVATE_PROJECTS = "activate projects"
    """Decide which definition of a project runs, or that none does."""
    LEASE_NODES = "lease node ids"
    """Mint trace ids under a node id that nobody else holds."""
    REVOKE_NODES = "revoke node ids"
    """Take a node id from the process that holds it."""
    DELETE_RUNS = "delete runs"
    """Delete what runs recorded: one run, or what no rule keeps."""
    MANAGE_TOKENS = "manage tokens"
    """List, create and revoke tokens; list and end browser sessions."""


class AccessRole(StrEnum):
    """What a caller may do on the server."""

    VIEWER = "viewer"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    ENGINEER = "engineer"
    ADMIN = "admin"

    @property
    def permissions(self) -> frozenset[Permission]:
        """What the role may do."""
        return _PERMISSIONS[self]

    @property
    def signal_role(self) -> Role:
        """The role in which signals are sent. An auditor may only read."""
        return _SIGNAL_ROLES[self]


_PERMISSIONS: Mapping[AccessRole, frozenset[Permission]] = {
    AccessRole.VIEWER: frozenset({Permission.READ_RUNS}),
    AccessRole.AUDITOR: frozenset(
        {Permission.READ_RUNS, Permission.READ_ROWS, Permission.READ_CAPTURES, Permission.READ_ACCESS_LOG}
    ),
    AccessRole.OPERATOR: frozenset(
        {
            Permission.READ_RUNS,
            Permission.READ_ROWS,
            Permission.START_RUNS,
            Permission.SEND_SIGNALS,
            Permission.REPLAY_EVENTS,
            Permission.LEASE_NODES,
        }
    ),
    AccessRole.ENGINEER: frozenset(Permission)
    - {Permission.READ_ACCESS_LOG, Permission.DELETE_RUNS, Permission.MANAGE_TOKENS},
    AccessRole.ADMIN: frozenset(Permission),
}

_SIGNAL_ROLES: Mapping[AccessRole, Role] = {
    AccessRole.VIEWER: Role.VIEWER,
    AccessRole.AUDITOR: Role.VIEWER,
    AccessRole.OPERATOR: Role.OPERATOR,
    AccessRole.ENGINEER: Role.ENGINEER,
    AccessRole.ADMIN: Role.ADMIN,
}
