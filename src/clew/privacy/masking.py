"""Masks: how a value is shown to someone who may not see it.

Captures write masked values with Spark, readers mask what they read. The same value gives the same mask in both.
"""

import hashlib
from collections.abc import Mapping

from clew.definitions.capture_masks import Mask, MaskKind
from clew.lang.conversion import to_text
from clew.lang.typed import Value
from clew.plan.datasets import PrivacyName
from clew.plan.plan import Plan
from clew.plan.privacy import ColumnClasses, set_by_steps

REDACTED, HASHED = Mask(MaskKind.REDACT), Mask(MaskKind.HASH)
REDACTION = "[masked]"
"""What stands in place of a redacted value."""
NOT_SHOWN = "[not shown]"
"""What stands in place of a hidden value where something must stand."""

_DIGITS = 16


def masks_of_plan(plan: Plan, classes: ColumnClasses, mask: Mask) -> dict[str, Mask]:
    """The mask of each column of a plan that is personal or secret, in an environment with `mask`.

    Some last characters are kept of values as they were loaded only. In what steps have made of them, the part that
    is personal may stand anywhere: the end of "Hello Ann" is all of a name whose mask would show nothing of it. Of
    columns that a restricted one has merely chosen, hashes would tell which rows were chosen: they are redacted.
    """
    calculated, chosen = set_by_steps(plan), classes.merely_chosen()
    derived = HASHED if mask.kind is MaskKind.KEEP_LAST else mask
    return {
        column: REDACTED if privacy == "secret" or column in chosen else derived if column in calculated else mask
        for column, privacy in classes.all().items()
    }


def masks_of_loaded(classes: Mapping[str, PrivacyName], mask: Mask) -> dict[str, Mask]:
    """The same for the columns of a dataset as it was loaded."""
    return {column: REDACTED if privacy == "secret" else mask for column, privacy in classes.items()}


def masked(value: Value, mask: Mask, salt: str) -> str | None:
    """A masked value; NULL stays NULL. `captures.writing.masked_sql` is the same for Spark."""
    if value is None:
        return None
    match mask.kind:
        case MaskKind.HASH:
            return hashlib.sha256(f"{salt}{_text(value)}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        case MaskKind.REDACT:
            return REDACTION
        case MaskKind.KEEP_LAST:
            text = _text(value)
            hidden = len(text) - mask.characters
            return "*" * hidden + text[hidden:] if hidden > 0 else "*" * len(text)


def _text(value: Value) -> str:
    """The text that Spark casts a value to."""
    return str(value).lower() if isinstance(value, bool) else to_text(value)
