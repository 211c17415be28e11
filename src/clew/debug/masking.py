"""How columns that are not for everybody are masked, where an environment masks them."""

from clew.debug.policy import CapturePolicy
from clew.model import Mask, MaskKind
from clew.plan.plan import Plan
from clew.plan.privacy import privacy_by_column, set_by_steps

REDACTED, HASHED = Mask(MaskKind.REDACT), Mask(MaskKind.HASH)
_STRICTNESS = {MaskKind.REDACT: 2, MaskKind.HASH: 1, MaskKind.KEEP_LAST: 0}


def masks_of(plan: Plan, policy: CapturePolicy) -> dict[str, Mask]:
    """The mask of each column that is personal or secret.

    Some last characters are kept of values as they were loaded only. In what steps have made of them, the part that
    is personal may stand anywhere: the end of "Hello Ann" is all of a name whose mask would show nothing of it.
    """
    calculated = HASHED if policy.mask.kind is MaskKind.KEEP_LAST else policy.mask
    derived = set_by_steps(plan)
    return {
        column: REDACTED if privacy == "secret" else calculated if column in derived else policy.mask
        for column, privacy in privacy_by_column(plan).items()
    }


def stricter(one: Mask, other: Mask | None) -> Mask:
    """Which of two masks shows less."""
    if other is None:
        return one
    return max(one, other, key=lambda mask: (_STRICTNESS[mask.kind], -mask.characters))
