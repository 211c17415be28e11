"""Where a page of a list ended, as a text that clients hand back without looking into it."""

import base64
import binascii

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import INVALID_REQUEST


def cursor_of(name: str) -> str:
    """The cursor behind an item."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def item_of(cursor: str) -> str:
    """The item that a cursor stands behind. UserError InvalidRequest where it is none of ours."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise UserError(INVALID_REQUEST.anywhere(problem="the cursor is none that this server gave")) from error
