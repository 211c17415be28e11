"""What the operating system refuses, as an error for people: a full disk is no bug."""

import errno

from clew.diagnostics.codes.commands import FILE_SYSTEM_FAILED
from clew.diagnostics.diagnostic import UserError

_OUTSIDE = frozenset(
    {
        errno.EACCES,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENODEV,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.ENXIO,
        errno.EPERM,
        errno.EROFS,
        errno.ESTALE,
    }
)
"""Numbers that tell of the machine. Others, such as a file that is missing, may come from what Clew itself did."""


def file_system_failed(error: BaseException) -> UserError | None:
    """The error for people where the machine is to blame; None where it is not known to be."""
    if not isinstance(error, OSError) or error.errno not in _OUTSIDE:
        return None
    place = error.filename if error.filename is not None else "a file"
    return UserError(FILE_SYSTEM_FAILED.anywhere(place=place, reason=error.strerror))
