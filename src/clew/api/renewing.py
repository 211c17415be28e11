"""Retries that use the definitions as they are now: what the new run gets in place of the plan of its run."""

from clew.api.opened_environment import OpenedEnvironment
from clew.api.projects import plan_of_current_definitions
from clew.api.run_parameters import parameters_of_request, plan_for_run
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.engine.opening import DRAFT
from clew.events.bodies import SignalAccepted
from clew.events.values import PlanRef
from clew.runs.renewal import Renewal
from clew.runs.request import RunRequest
from clew.runs.signals import SignalType
from clew.storage.plans import keep_plan


def renewal_of(at: OpenedEnvironment, run_id: str, signal: SignalType, signal_id: str | None) -> Renewal | None:
    """The current definitions for a RETRY_RUN, activated where the run had a version.

    None where the signal is going to be refused: then nothing is activated. The same signal again gives the same.
    Raises UserError for another signal, and with everything that is wrong with the definitions.
    """
    if signal is not SignalType.RETRY_RUN:
        problem = f"{signal} goes on with the plan of the run; only RETRY_RUN can take the current definitions"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="send RETRY_RUN, which starts a new run"))
    run = at.state.stores.catalog.run(run_id)
    if signal_id is not None:
        for event in at.state.stores.reader.events(run_id):
            if isinstance(event.body, SignalAccepted) and event.body.signal_id == signal_id:
                return Renewal.of_payload(event.body.payload)
    if not run.status.is_terminal or Permission.SEND_SIGNALS not in at.principal.role.permissions:
        return None
    return _renewal(at, run.request)


def _renewal(at: OpenedEnvironment, request: RunRequest) -> Renewal:
    files = at.files_now
    choice = plan_of_current_definitions(files, at.state, request.project_id, at.principal)
    plan = plan_for_run(choice.plan, files, request.period, at.environment.settings.parameters, request.values)
    keep_plan(at.environment.storage_root, plan)
    return Renewal(
        PlanRef(plan.name, plan.digest[:16], plan.digest),
        DRAFT if choice.version is None else str(choice.version),
        {**request.parameters, **parameters_of_request(plan)},
    )
