"""Sessions that nobody uses: where a limit is set, they end before their time."""

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

_MOST_SESSIONS = 10_000


class IdleSessions:
    """When someone last did something in each session, in memory: after a start of the server, all begin anew.

    What pages fetch by themselves does not count, else a forgotten page would keep its session for good.
    """

    def __init__(self, longest: timedelta | None) -> None:
        """Without a limit no session ends this way."""
        self._longest = longest
        self._used_at: OrderedDict[str, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def is_over(self, session: str, now: datetime, *, by_person: bool) -> bool:
        """Whether a session, by its digest, was left alone for too long. Otherwise note that it is used now."""
        if self._longest is None:
            return False
        with self._lock:
            used_at = self._used_at.get(session)
            if used_at is not None and now - used_at > self._longest:
                del self._used_at[session]
                return True
            if by_person or used_at is None:
                self._used_at[session] = now
                self._used_at.move_to_end(session)
            while len(self._used_at) > _MOST_SESSIONS:
                self._used_at.popitem(last=False)
            return False
