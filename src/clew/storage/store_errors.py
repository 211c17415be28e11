"""What the errors of object stores mean, in a sentence that names the place and never a credential.

Libraries put the answer of a server into the text of an OSError. The name of the error in it decides here.
"""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.engine import STORAGE_UNAVAILABLE

if TYPE_CHECKING:
    from clew.definitions.storage_addresses import RemoteAddress

_MISSING = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_NO_KEY = re.compile(r"NO_SUCH_KEY|NoSuchKey|BlobNotFound", re.IGNORECASE)
_EXPIRED = re.compile(r"EXPIRED_TOKEN|ExpiredToken|token (?:has |is )?expired|TokenRefreshRequired", re.IGNORECASE)
_CLOCK = re.compile(r"REQUEST_TIME_TOO_SKEWED|RequestTimeTooSkewed|REQUEST_EXPIRED|RequestExpired", re.IGNORECASE)
_WRONG_KEY = re.compile(
    r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|INVALID_SIGNATURE"
    r"|INVALID_CLIENT_TOKEN_ID|UnrecognizedClient|AuthenticationFailed|InvalidAuthenticationInfo|UNAUTHENTICATED",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|\bForbidden\b|HTTP status 403|PERMISSION_DENIED|AuthorizationPermissionMismatch"
    r"|AuthorizationFailure",
    re.IGNORECASE,
)
_BUSY = re.compile(
    r"SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|ServiceUnavailable|ServerBusy|THROTTL|INTERNAL_FAILURE|InternalError"
    r"|HTTP status 5\d\d|TooManyRequests",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"HTTP status 400")
"""What remains of an answer about a token where a library drops its body."""
_WITHOUT_REASON = re.compile(r"No response body|ACCESS_DENIED|HTTP status 40[03]")
_SILENT = re.compile(r"curlCode: 28|REQUEST_TIMEOUT|timed? ?out|Timeout", re.IGNORECASE)
_UNREACHABLE = re.compile(r"NETWORK_CONNECTION|curlCode|resolve host|Connection (?:refused|reset)", re.IGNORECASE)


class StoreUnavailable(OSError):
    """A store that does not answer, or not as it should. It may do so later."""


class StoreRefused(PermissionError):
    """A store that does not accept the credentials, or not for this."""


class StoreMissing(FileNotFoundError):
    """A bucket that does not exist."""


OUT_OF_REACH = (StoreUnavailable, StoreRefused, StoreMissing)
"""The store as a whole is to blame, not the file that was asked for."""


def unavailable(error: OSError) -> ClewError:
    """The error for people where a store is to blame: one to be tried again where the store may come to itself."""
    kind = TransientFailure if isinstance(error, StoreUnavailable) else UserError
    return kind(STORAGE_UNAVAILABLE.anywhere(place=error.filename, problem=error.strerror))


Probe = Callable[[], object]
"""Asks the store something whose answer, unlike that to a question about one file, says why it refuses."""


@contextmanager
def explained(place: "RemoteAddress", probe: Probe | None = None) -> Iterator[None]:
    """Give every OSError that a library raises the sentence that people need, and the type that code asks for."""
    try:
        yield
    except OSError as error:
        raise explanation(_telling(error, probe), place) from None


def _telling(error: OSError, probe: Probe | None) -> OSError:
    """The error itself, or the one that a second question gives where the answer to the first had no body."""
    if probe is None or not _WITHOUT_REASON.search(str(error)):
        return error
    try:
        probe()
    except OSError as second:
        return second
    return error


def explanation(error: OSError, place: "RemoteAddress") -> OSError:
    """The error that says what an error of a library means."""
    if isinstance(error, OUT_OF_REACH) or error.filename == str(place):
        return error
    return _meaning(error, f"{place.scheme}://{place.store}", str(place))


def _meaning(error: OSError, store: str, name: str) -> OSError:
    text = str(error)
    if _MISSING.search(text):
        return StoreMissing(errno.ENOENT, f"{store} does not exist", name)
    if _EXPIRED.search(text):
        return StoreRefused(errno.EACCES, f"the credentials for {store} have expired", name)
    if _CLOCK.search(text):
        return StoreUnavailable(errno.EIO, f"{store} refuses requests: the clock of this machine is off", name)
    if _WRONG_KEY.search(text):
        return StoreRefused(errno.EACCES, f"{store} does not accept the credentials", name)
    if _DENIED.search(text):
        return StoreRefused(errno.EACCES, f"no permission in {store}", name)
    if isinstance(error, FileNotFoundError) or _NO_KEY.search(text):
        return FileNotFoundError(errno.ENOENT, "it does not exist", name)
    if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
        return type(error)(error.errno, error.strerror or text, name)
    if _BUSY.search(text):
        return StoreUnavailable(errno.EAGAIN, f"{store} is overloaded or fails, also when asked again", name)
    if _SILENT.search(text):
        return StoreUnavailable(errno.ETIMEDOUT, f"{store} does not answer in time", name)
    if _UNREACHABLE.search(text):
        return StoreUnavailable(errno.EHOSTUNREACH, f"{store} cannot be reached, or broke the connection", name)
    if _REFUSED.search(text):
        return StoreRefused(errno.EACCES, f"{store} refuses the credentials: they may have expired", name)
    return StoreUnavailable(errno.EIO, f"{store} fails: {_brief(text)}", name)


def _brief(text: str) -> str:
    """What a library says, in one line without ids of requests."""
    return re.sub(r"\s*\(Request ID:[^)]*\)", "", text).replace("\n", " ").strip()[:200]


_IN_SPARK = re.compile(r"\bs3a://(?P<store>[^/\s:]+)[^\s:]*", re.IGNORECASE)
_OF_A_STORE = re.compile(r"S3Exception|AWS\w*Exception|AccessDeniedException|UnknownStoreException|awssdk|fs\.s3a")


def store_problem(text: str) -> ClewError | None:
    """What an error of Spark says about a store; None where it is about something else."""
    named = _IN_SPARK.search(text)
    if named is None or _OF_A_STORE.search(text) is None:
        return None
    if re.search(r"UnknownStoreException|NoSuchBucket", text):
        text = "NoSuchBucket"
    store = f"s3://{named['store']}"
    error = _meaning(OSError(errno.EIO, text), store, store)
    is_known = not (isinstance(error, StoreUnavailable) and error.errno == errno.EIO and " fails: " in str(error))
    return unavailable(error) if is_known else None
