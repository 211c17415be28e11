"""One request by somebody who may make it: the only way in which routes reach the site."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from clew.api.opened_environment import OpenedEnvironment, Principal
from clew.api.questions import AbsentRows, ExplainedValue, absent_rows, explained
from clew.api.run_view import RunReader
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.access_log import AccessRecord, Subject
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.runs.clock import utc_now
from clew.runs.request import RunRecord
from clew.server.access.doorman import Caller, Doorman
from clew.server.protection.middleware import require_own_page
from clew.server.settings import ServerSettings
from clew.server.site import Site
from clew.trace.reader import RunTrace

if TYPE_CHECKING:
    from clew.api.starting import RunStarter

_BEARER = "bearer "
_LONGEST_DETAIL = 2000


@dataclass(frozen=True, slots=True)
class Visit:
    """A caller at the site. Runs of other tenants do not exist here; what belongs to the workspace is refused."""

    caller: Caller
    site: Site

    @property
    def runs(self) -> RunReader:
        """The runs that the caller may see."""
        site = self.site
        return RunReader(site.state, site.environment, tenant_id=self.caller.tenant_id, plans=site.plans.plan)

    @property
    def workspace(self) -> WorkspaceFiles:
        """The workspace as its files stand. UserError Forbidden where it belongs to another tenant."""
        self.caller.require_tenant(self.site.tenant)
        return self.site.workspace

    @property
    def workspace_now(self) -> WorkspaceFiles:
        """The workspace as its files stand at this moment, for what freezes them."""
        self.caller.require_tenant(self.site.tenant)
        return self.site.live.look_now()

    @property
    def starter(self) -> "RunStarter":
        """Asks for runs in the name of the caller."""
        from clew.api.starting import starter_of  # noqa: PLC0415 - it brings the libraries of Spark

        return starter_of(self.opened)

    @property
    def opened(self) -> OpenedEnvironment:
        """The environment in the eyes of the caller."""
        caller = self.caller
        principal = Principal(name=caller.name, role=caller.role, tenant_id=caller.tenant_id, token_id=caller.token_id)
        return self.site.opened(principal)

    def trace(self, run: str) -> RunTrace:
        """The trace of a run by its id or the beginning of it. UserError RunNotFinished while the run goes on."""
        return self.trace_of(self.runs.find(run))

    def trace_of(self, run: RunRecord) -> RunTrace:
        """The trace of a run."""
        return self.site.traces.of(run, self.runs, self.site.environment)

    def explain(self, run: str, row_id: str, column: str, at: int | None = None, top: int | None = 5) -> ExplainedValue:
        """Why a value is what it is, through all runs that the caller may see. `top` None gives every parent."""
        return explained(self.opened, run, row_id, column, step=at, top=top)

    def why_not(self, run: str, where: str, output: int | None = None) -> AbsentRows:
        """Why rows are not in an output. Other runs count as far as the caller may see them; rules and files are of the
        workspace, and are told to those whom it belongs to."""
        return absent_rows(self.opened, self.runs.view(run), where, output)

    def has_read(self, subject: Subject, subject_id: str, detail: str = "") -> None:
        """Keep on record that the caller reads values of rows. Belongs before the answer, not behind it."""
        self._keep(subject, subject_id, detail)

    def has_changed(self, subject: Subject, subject_id: str, detail: str) -> None:
        """Keep on record that the caller has changed something. Belongs before the answer, too."""
        self._keep(subject, subject_id, detail)

    def _keep(self, subject: Subject, subject_id: str, detail: str) -> None:
        self.site.access_log.add(
            AccessRecord(
                tenant_id=self.caller.tenant_id,
                actor=self.caller.name,
                role=self.caller.role.value,
                token_id=self.caller.token_id,
                subject=subject,
                subject_id=subject_id,
                detail=detail[:_LONGEST_DETAIL],
                read_at=utc_now(),
            )
        )


def site_of(request: Request) -> Site:
    """The site of the application."""
    site: Site = request.app.state.site
    return site


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
        return Visit(caller, site_of(request))


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
    "site_of",
]
