"""What the errors of object stores mean, in a sentence that names the place and never a credential.

Libraries put the answer of a server into the text of an OSError. The name of the error in it decides here.
"""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.diagnostics.file_system import OutOfReach, unavailable

if TYPE_CHECKING:
    from clew.definitions.storage_addresses import RemoteAddress

_NO_KEY = re.compile(r"NO_SUCH_KEY|NoSuchKey|BlobNotFound", re.IGNORECASE)
_WITHOUT_REASON = re.compile(r"No response body|ACCESS_DENIED|HTTP status 40[03]")
"""What libraries say where the answer to a question about one file had no body."""


class StoreUnavailable(OutOfReach):
    """A store that does not answer, or not as it should. It may do so later."""

    may_recover = True


class StoreRefused(OutOfReach, PermissionError):
    """A store that does not accept the credentials, or not for this."""


class StoreMissing(OutOfReach, FileNotFoundError):
    """A bucket that does not exist."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What words in an error mean."""

    words: str
    kind: type[OSError]
    code: int
    sentence: str

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.words, re.IGNORECASE)  # compiled once: the library remembers it

    def told(self, store: str, name: str) -> OSError:
        return self.kind(self.code, self.sentence.format(store=store), name)


_OF_THE_STORE = (
    _Meaning(
        r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound|bucket does not exist|UnknownStoreException",
        StoreMissing,
        errno.ENOENT,
        "{store} does not exist",
    ),
    _Meaning(
        r"EXPIRED_TOKEN|ExpiredToken|token (?:has |is )?expired|TokenRefreshRequired",
        StoreRefused,
        errno.EACCES,
        "the credentials for {store} have expired",
    ),
    _Meaning(
        r"REQUEST_TIME_TOO_SKEWED|RequestTimeTooSkewed|REQUEST_EXPIRED|RequestExpired",
        StoreUnavailable,
        errno.EIO,
        "{store} refuses requests: the clock of this machine is off",
    ),
    _Meaning(
        r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|INVALID_SIGNATURE"
        r"|INVALID_CLIENT_TOKEN_ID|UnrecognizedClient|AuthenticationFailed|InvalidAuthenticationInfo|UNAUTHENTICATED",
        StoreRefused,
        errno.EACCES,
        "{store} does not accept the credentials",
    ),
    _Meaning(
        r"ACCESS_DENIED|AccessDenied|\bForbidden\b|HTTP status 403|Status Code: 403|PERMISSION_DENIED"
        r"|AuthorizationPermissionMismatch|AuthorizationFailure",
        StoreRefused,
        errno.EACCES,
        "no permission in {store}",
    ),
)
"""The store is not there, or refuses: that counts before anything about a file."""

_OF_THE_WAY = (
    _Meaning(
        r"SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|ServiceUnavailable|ServerBusy|THROTTL|INTERNAL_FAILURE|InternalError"
        r"|HTTP status 5\d\d|Status Code: 5\d\d|TooManyRequests",
        StoreUnavailable,
        errno.EAGAIN,
        "{store} is overloaded or fails, also when asked again",
    ),
    _Meaning(
        r"curlCode: 28|REQUEST_TIMEOUT|timed? ?out|Timeout",
        StoreUnavailable,
        errno.ETIMEDOUT,
        "{store} does not answer in time",
    ),
    _Meaning(
        r"NETWORK_CONNECTION|curlCode|resolve host|Connection (?:refused|reset)|Premature end of|ConnectionClosed"
        r"|EOFException|Data read has a different length",
        StoreUnavailable,
        errno.EHOSTUNREACH,
        "{store} cannot be reached, or broke the connection",
    ),
    # What remains of an answer about a token where a library drops its body.
    _Meaning(
        r"HTTP status 400|Status Code: 400",
        StoreRefused,
        errno.EACCES,
        "{store} refuses the credentials: they may have expired",
    ),
)
"""The store did not answer, or with nothing that says more."""

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
    if isinstance(error, OutOfReach) or error.filename == str(place):
        return error
    return _meaning(error, f"{place.scheme}://{place.store}", str(place))


def _meaning(error: OSError, store: str, name: str) -> OSError:
    text = str(error)
    for meaning in _OF_THE_STORE:
        if meaning.pattern.search(text):
            return meaning.told(store, name)
    if isinstance(error, FileNotFoundError) or _NO_KEY.search(text):
        return FileNotFoundError(errno.ENOENT, "it does not exist", name)
    if isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
        return type(error)(error.errno, error.strerror or text, name)
    for meaning in _OF_THE_WAY:
        if meaning.pattern.search(text):
            return meaning.told(store, name)
    return StoreUnavailable(errno.EIO, f"{store} fails: {_brief(text)}", name)


def _brief(text: str) -> str:
    """What a library says, in one line without ids of requests."""
    return re.sub(r"\s*\(Request ID:[^)]*\)", "", text).replace("\n", " ").strip()[:200]


_IN_SPARK = re.compile(r"\bs3a://(?P<store>[^/\s:]+)[^\s:]*", re.IGNORECASE)
_OF_A_STORE = re.compile(r"S3Exception|AWS\w*Exception|AccessDeniedException|UnknownStoreException|awssdk|fs\.s3a")


_FRAME = re.compile(r"^\s*(?:at |\.\.\. \d+ more).*$", re.MULTILINE)
"""A line of a Java stack: names of methods in it say nothing about what went wrong."""


def store_problem(text: str) -> ClewError | None:
    """What an error of Spark says about a store; None where it is about something else."""
    told = _FRAME.sub("", text)
    if _OF_A_STORE.search(told) is None:
        return None
    named = _IN_SPARK.search(told)
    store = f"s3://{named['store']}" if named is not None else "the object store"
    error = _meaning(OSError(errno.EIO, told), store, store)
    is_unknown = isinstance(error, StoreUnavailable) and error.errno == errno.EIO and " fails: " in str(error)
    return unavailable(error) if isinstance(error, OutOfReach) and not is_unknown else None
