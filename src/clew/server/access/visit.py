"""A request by an identified caller: the only way for routes to reach the workspace."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from anyio import CancelScope
from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from clew.api.workspace import Workspace
from clew.auth.access_log import Subject
from clew.auth.gathered_reads import GatheredReads
from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.server.access.doorman import Caller, Doorman
from clew.server.protection.middleware import require_own_page
from clew.server.protection.question_pool import QuestionPool
from clew.server.settings import ServerSettings

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Visit:
    """A caller, and the workspace as they may use it: without the runs of other tenants."""

    caller: Caller
    workspace: Workspace
    reads: GatheredReads | None = None
    """What is asked and answered during the visit; None where no question about rows is expected."""

    def require_own_workspace(self) -> None:
        """Raise UserError Forbidden if the workspace belongs to another tenant."""
        self.caller.require_tenant(self.workspace.tenant)

    def project_ids(self) -> tuple[str, ...]:
        """The projects to choose from; none if the workspace belongs to another tenant."""
        try:
            return tuple(project.id for project in self.workspace.loaded.workspace.projects)
        except UserError:
            return ()

    def has_read(self, subject: Subject, subject_id: str, detail: str) -> None:
        """Say what the caller asks for. It is recorded with the columns and the number of rows of the answer.

        The record is written before the answer is sent, also if the answer is an error or a 304.
        """
        if self.reads is None:
            self.workspace.operations.record_access(subject, subject_id, detail)
        else:
            self.reads.ask(subject, subject_id, detail)

    def has_changed(self, subject: Subject, subject_id: str, detail: str) -> None:
        """Record that the caller has changed something. Call it before answering, too."""
        self.workspace.operations.record_access(subject, subject_id, detail)


def workspace_of(request: Request) -> Workspace:
    """The workspace of the application, with the rights of the person who started the server."""
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
    """The caller, or None without a session. An invalid token is refused."""
    doorman = doorman_of(request)
    authorization = request.headers.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return doorman.by_token(authorization[len(_BEARER) :].strip())
    cookie = request.cookies.get(settings_of(request).cookie)
    # Browsers say that a script asks, also where it keeps a stream open; a page that a person opens is a document.
    by_script = request.method == "GET" and request.headers.get("sec-fetch-dest") == "empty"
    return doorman.by_cookie(cookie, by_person=not by_script) if cookie else None


def caller_of(request: Request) -> Caller:
    """The caller. Raises UserError NotSignedIn without a token or session."""
    caller = caller_or_none(request)
    if caller is None:
        raise UserError(NOT_SIGNED_IN.anywhere(problem="this requires a token or a session"))
    return caller


class Permitted:
    """A dependency that requires a permission. It checks browser requests that change something."""

    def __init__(self, permission: Permission) -> None:
        self.permission = permission


class May(Permitted):
    """The visit of a caller with a permission."""

    async def __call__(self, request: Request) -> Visit:
        """The visit."""
        return await _visit(request, self.permission)


class MayTry(May):
    """The visit of a caller to a route that records what it refuses, and asks for the permission afterwards."""

    async def __call__(self, request: Request) -> Visit:
        """The visit of a caller who may at least see runs."""
        return await _visit(request, Permission.READ_RUNS)


class MayAsk(Permitted):
    """The visit of a caller with a permission, and a place for the question that they ask."""

    async def __call__(self, request: Request) -> AsyncIterator[Visit]:
        """The visit. The place is given up before the response is sent, which a slow reader could delay.

        What was read is recorded before, too. A caller who leaves in the meantime cannot prevent that.
        """
        plain, reads = await _visit(request, self.permission), GatheredReads()
        visit = Visit(plain.caller, plain.workspace.gathering_reads(reads), reads)
        questions: QuestionPool = request.app.state.questions
        async with questions.place(request, visit.caller.key):
            try:
                yield visit
            finally:
                with CancelScope(shield=True):
                    await run_in_threadpool(plain.workspace.record_reads, reads)


async def _visit(request: Request, permission: Permission) -> Visit:
    caller = await run_in_threadpool(caller_of, request)
    await require_own_page(request, caller, settings_of(request))
    caller.require(permission)
    return Visit(caller, workspace_of(request).acting_as(caller.principal))


def may(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI's Depends returns
    """The annotation for a route's parameter of type `Visit`."""
    return Depends(May(permission))


def may_try(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI's Depends returns
    """The same for a route that records what it refuses, and asks for the permission itself."""
    return Depends(MayTry(permission))


def may_ask(permission: Permission) -> Any:  # noqa: ANN401 - what FastAPI's Depends returns
    """The same for a route that answers a question about rows, within the limits of the environment."""
    return Depends(MayAsk(permission), scope="function")


RunVisit = Annotated[Visit, may(Permission.READ_RUNS)]
"""A caller who may see runs, without the values of rows."""
AskingVisit = Annotated[Visit, may_ask(Permission.READ_RUNS)]
"""The same, for what is counted or found in the files of runs."""
RowVisit = Annotated[Visit, may_ask(Permission.READ_ROWS)]
"""A caller who may see the values of rows."""
CaptureVisit = Annotated[Visit, may_ask(Permission.READ_CAPTURES)]

__all__ = [
    "AskingVisit",
    "CaptureVisit",
    "May",
    "MayAsk",
    "Permitted",
    "RowVisit",
    "RunVisit",
    "Visit",
    "caller_of",
    "caller_or_none",
    "doorman_of",
    "may",
    "may_try",
    "settings_of",
    "workspace_of",
]
