"""One request by an identified caller: the only way in which routes reach the workspace."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from clew.api.workspace import Workspace
from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.server.access.doorman import Caller, Doorman
from clew.server.protection.middleware import require_own_page
from clew.server.settings import ServerSettings

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Visit:
    """A caller with the workspace as they may use it: runs of other tenants do not exist in it."""

    caller: Caller
    workspace: Workspace

    def require_own_workspace(self) -> None:
        """UserError Forbidden where the workspace belongs to another tenant."""
        self.caller.require_tenant(self.workspace.tenant)

    def project_ids(self) -> tuple[str, ...]:
        """The projects to choose from; none where the workspace belongs to another tenant."""
        try:
            return tuple(project.id for project in self.workspace.loaded.workspace.projects)
        except UserError:
            return ()

    def has_read(self, subject: Subject, subject_id: str, detail: str = "") -> None:
        """Keep on record that the caller reads values of rows. Belongs before the answer, not behind it."""
        self.workspace.operations.record_access(subject, subject_id, detail)

    def has_changed(self, subject: Subject, subject_id: str, detail: str) -> None:
        """Keep on record that the caller has changed something. Belongs before the answer, too."""
        self.workspace.operations.record_access(subject, subject_id, detail)


def workspace_of(request: Request) -> Workspace:
    """The workspace of the application, as whoever started the server sees it."""
    workspace: Workspace = request.app.state.workspace
    return workspace


def settings_of(request: Request) -> ServerSettings:
    """The settings of the application."""
    settings: ServerSettings = request.app.state.settings
    return settings


def doorman_of(request: Request) -> Doorman:
    """The doorman of the application."""
    doorman: Doorman = request.app.state.doorman
    return doorman


def caller_or_none(request: Request) -> Caller | None:
    """Who calls, or None for somebody without session. A token that is of no use is refused."""
    doorman = doorman_of(request)
    authorization = request.headers.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return doorman.by_token(authorization[len(_BEARER) :].strip())
    cookie = request.cookies.get(settings_of(request).cookie)
    return doorman.by_cookie(cookie) if cookie else None


def caller_of(request: Request) -> Caller:
    """Who calls. UserError NotSignedIn where nobody knows."""
    caller = caller_or_none(request)
    if caller is None:
        raise UserError(NOT_SIGNED_IN.anywhere(problem="this needs a token or a session"))
    return caller


class May:
    """A dependency: the visit of a caller who has a permission. Requests of browsers that change things are checked."""

    def __init__(self, permission: Permission) -> None:
        self.permission = permission

    async def __call__(self, request: Request) -> Visit:
        """The visit."""
        caller = await run_in_threadpool(caller_of, request)
        await require_own_page(request, caller, settings_of(request))
        caller.require(self.permission)
        return Visit(caller, workspace_of(request).acting_as(caller.principal))


def may(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI's Depends gives
    """What a route's parameter of type `Visit` is annotated with."""
    return Depends(May(permission))


RunVisit = Annotated[Visit, may(Permission.READ_RUNS)]
"""Somebody who may see runs, without the values of rows."""
RowVisit = Annotated[Visit, may(Permission.READ_ROWS)]
"""Somebody who may see the values of rows."""
CaptureVisit = Annotated[Visit, may(Permission.READ_CAPTURES)]

__all__ = [
    "CaptureVisit",
    "May",
    "RowVisit",
    "RunVisit",
    "Visit",
    "caller_of",
    "caller_or_none",
    "doorman_of",
    "may",
    "settings_of",
    "workspace_of",
]
