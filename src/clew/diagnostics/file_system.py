"""What the operating system or a store of files refuses, as an error for people: a full disk is no bug."""

import errno

from clew.diagnostics.codes.commands import FILE_SYSTEM_FAILED
from clew.diagnostics.codes.engine import STORAGE_UNAVAILABLE
from clew.diagnostics.diagnostic import ClewError, TransientFailure, UserError

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


class OutOfReach(OSError):
    """A store as a whole is to blame, not the file that was asked for."""

    may_recover = False
    """Whether it may come to itself, without anyone's doing."""


def unavailable(error: OutOfReach) -> ClewError:
    """The error for people where a store is to blame: one to be tried again where the store may come to itself."""
    kind = TransientFailure if error.may_recover else UserError
    return kind(STORAGE_UNAVAILABLE.anywhere(place=error.filename, problem=error.strerror))


def is_out_of_reach(error: BaseException) -> bool:
    """Whether an error for people says that a store could not be asked: it tells nothing about what lies there."""
    return isinstance(error, ClewError) and error.code == STORAGE_UNAVAILABLE.name


def file_system_failed(error: BaseException) -> ClewError | None:
    """The error for people where the machine or a store is to blame; None where it is not known to be."""
    if isinstance(error, OutOfReach):
        return unavailable(error)
    if not isinstance(error, OSError) or error.errno not in _OUTSIDE:
        return None
    place = error.filename if error.filename is not None else "a file"
    return UserError(FILE_SYSTEM_FAILED.anywhere(place=place, reason=error.strerror))
