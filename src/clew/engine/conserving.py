"""How many rows a point of the plan must have: what was loaded and created, less what was deleted.

No step loses rows by the way: a join keeps them, an update keeps them, a deletion is counted. So an output that takes
every row has a count that is known before it is written, and one that differs is refused.
"""

from collections.abc import Iterable, Sequence

from clew.engine.parts import given_count
from clew.plan.operations import OutputStep
from clew.plan.plan import Plan
from clew.storage.parts import COUNTED_ROWS, DELETED_ROWS, Part, mask_column
from clew.storage.root import StorageRoot
from clew.trace.run_parts import periods_of


def rows_of(plan: Plan, parts: Sequence[Part]) -> int | None:
    """How many rows the working dataset has, deleted ones among them; None where only reading them would tell."""
    loaded = next(part for part in parts if part.kind == "input" and part.name == plan.input.key)
    if periods_of(loaded, plan.input) is not None and COUNTED_ROWS not in (loaded.details or {}):
        return None
    return loaded.counted + sum(part.counted for part in parts if part.kind == "created")


def rows_of_output(plan: Plan, root: StorageRoot, parts: Sequence[Part], step: OutputStep) -> int | None:
    """How many rows an output must have, given all parts up to it; None where only reading tells."""
    if step.selector is not None:
        return None
    before = [part for part in parts if part.seq < step.seq]
    rows = rows_of(plan, before)
    if rows is None or step.include_deleted:
        return rows
    loaded = next(part for part in parts if part.kind == "input" and part.name == plan.input.key)
    details = loaded.details or {}
    at_first = details.get(DELETED_ROWS, None if details.get("format") == "managed" else 0)
    return rows - at_first - _deleted(root, before) if isinstance(at_first, int) else None


def _deleted(root: StorageRoot, parts: Iterable[Part]) -> int:
    """How many rows were deleted. A row is deleted once."""
    return sum(
        given_count(root, part, [mask_column(step.seq)])
        for part in parts
        for step in part.steps
        if step.kind == "delete"
    )
