"""Planning a delete."""

from clew.definitions import Delete
from clew.plan.operations.context import Context, PlannedOperation, reads
from clew.plan.steps import DeleteStep


def plan_delete(context: Context, operation: Delete) -> PlannedOperation:
    """The step of a delete. Without a selector it deletes every row."""
    selector = context.expressions.selector(operation.selector, context.scope()) if operation.selector else None
    if operation.selector and selector is None:
        return PlannedOperation(None, context.state)
    lineage = context.state.lineage.deleting([selector.tree] if selector else [])
    step = DeleteStep(
        seq=context.placed.seq,
        id=context.id,
        name=operation.name,
        description=operation.description or None,
        path=context.placed.path,
        place=operation.span,
        breakpoint=context.breakpoint,
        selector=selector,
        reads=reads([("selector", selector)]),
        adds=(),
    )
    return PlannedOperation(step, context.state.changed((), lineage))
