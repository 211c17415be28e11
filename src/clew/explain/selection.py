"""What selectors decided about a row."""

from clew.explain.conditions import decisions
from clew.explain.tree import Deleted, StepRef
from clew.lang.evaluation import Row
from clew.lang.text_form import text_of
from clew.plan.steps import DeleteStep, PlannedExpression


def deleted_by(step: DeleteStep, seen: Row) -> Deleted:
    """Why a step deleted a row that it saw."""
    if step.selector is None:
        return Deleted(StepRef.of(step), None, None, ())
    text, resolved = selector_texts(step.selector)
    return Deleted(StepRef.of(step), text, resolved, decisions(step.selector.tree, seen))


def selector_texts(selector: PlannedExpression) -> tuple[str, str | None]:
    """A selector as it was written and, where it uses named ones, with those put in place."""
    return selector.text, text_of(selector.tree) if "{{" in selector.text else None
