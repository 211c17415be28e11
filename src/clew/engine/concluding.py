"""What reconciliation and checks mean for a run that has done its last step: it may end, with alerts, or has failed."""

from collections.abc import Iterable

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import TOTALS_DIFFER
from clew.events.values import CheckResult
from clew.plan.plan import Plan
from clew.plan.recorded_controls import is_protected
from clew.runs.alerts import Alert, RaisedAlert
from clew.trace.reconciliation import Reconciliation, Waterfall

_MOST_TOLD = 5


def concluded(found: Reconciliation, plan: Plan) -> list[RaisedAlert]:
    """The alerts for what does not tie. UserError TotalsDiffer where the run must not be COMPLETED."""
    failing = [each for each in found.waterfalls if each.fails_run]
    if failing:
        told = [_told(each, plan) for each in failing[:_MOST_TOLD]]
        more = f"; and {len(failing) - _MOST_TOLD} more" if len(failing) > _MOST_TOLD else ""
        raise UserError(TOTALS_DIFFER.anywhere(problem="; ".join(told) + more))
    alerts = dict[str, RaisedAlert]()
    for each in found.waterfalls:
        if not each.ties and each.control is not None:
            scope = f"{each.output.seq}:{each.control.name}"
            alert = RaisedAlert(alert=Alert.TOTALS_DIFFER, message=f"{each.title} does not tie", scope=scope)
            alerts.setdefault(scope, alert)
    return list(alerts.values())


def check_alerts(results: Iterable[CheckResult]) -> list[RaisedAlert]:
    """The alerts for checks that only warn, and for rows that were quarantined."""
    return [
        RaisedAlert(
            alert=Alert.CHECK_FAILED,
            message=f'the check "{each.name}" failed: {each.message}',
            scope=f"{each.at}:{each.name}",
        )
        for each in results
        if not each.passed and not each.stops
    ]


def _told(waterfall: Waterfall, plan: Plan) -> str:
    """What does not tie, in a sentence for events: without values of rows that not everyone may see."""
    rows, amount = waterfall.difference
    control = waterfall.control
    if waterfall.problem is not None:
        return f"{waterfall.title}: {waterfall.problem}"
    parts = [f"{rows:+,} rows"] if rows else []
    if control is not None and amount and abs(amount) > control.largest_difference:
        parts.append("an amount" if is_protected(plan, control) else f"{amount:+,f}")
    group = " in one group" if waterfall.key else ""
    return f"{waterfall.title} does not tie{group}: what came in exceeds what went out by {' and '.join(parts)}"
