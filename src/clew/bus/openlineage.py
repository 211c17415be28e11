"""Runs as OpenLineage events, posted to a receiver such as Marquez or appended to a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from clew.bus.http import NotTaken, http_address, post
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import DELIVERY_FAILED
from clew.events.envelope import StoredEvent
from clew.events.values import CheckResult
from clew.plan import Plan
from clew.runs.request import RunRecord
from clew.runs.stores import OutboxEntry
from clew.storage.whole_lines import append_line


class LineageTarget(Protocol):
    """Where OpenLineage events go."""

    def send(self, document: bytes) -> None:
        """Deliver a document, and return once it is accepted; else raise OSError or NotTaken."""
        ...


class HttpTarget:
    """An address that receives OpenLineage events, with a key if it needs one."""

    def __init__(self, url: str, *, api_key: Callable[[], str] | None = None, timeout_s: float = 10.0) -> None:
        """`api_key` is called for each delivery, so that the value is not kept and may change."""
        self._url = http_address(url)
        self._api_key = api_key
        self._timeout_s = timeout_s

    def send(self, document: bytes) -> None:
        """Post a document."""
        headers = {"Content-Type": "application/json"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key()}"
        post(self._url, document, headers, timeout_s=self._timeout_s)


class FileTarget:
    """A file with one event a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, document: bytes) -> None:
        """Append a document."""
        append_line(self._path, document)


class OpenLineageBus:
    """Sends what OpenLineage has an event for, and confirms the rest without sending it."""

    def __init__(
        self,
        name: str,
        target: LineageTarget,
        *,
        namespace: str,
        plan_of: Callable[[RunRecord], Plan | None],
        checks_until: Callable[[StoredEvent], Sequence[CheckResult]],
    ) -> None:
        """`checks_until` is what the checks of a run have found until an event."""
        self._name = name
        self._target = target
        self._namespace = namespace
        self._plan_of = plan_of
        self._checks_until = checks_until

    def deliver(self, entry: OutboxEntry) -> None:
        """Build the event and deliver it. The same entry gives the same bytes."""
        from openlineage.client.serde import Serde  # noqa: PLC0415 - slow to import, and few environments need it

        from clew.bus.openlineage_events import ends_run, run_event  # noqa: PLC0415

        plan = self._plan_of(entry.run)
        asks = plan is not None and bool(plan.checks) and ends_run(entry.event)
        results = self._checks_until(entry.event) if asks else ()
        event = run_event(entry.run, entry.event, plan, self._namespace, results)
        if event is None:
            return
        try:
            self._target.send(Serde.to_json(event).encode())
        except (NotTaken, OSError) as error:
            raise TransientFailure(DELIVERY_FAILED.anywhere(bus=self._name, reason=str(error))) from error
