"""A client for Clew servers: over HTTP, with a token."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from clew.bus.http import http_client
from clew.deferred import dataclass
from clew.definitions import CaptureWish
from clew.diagnostics import ClewError, Diagnostic, TransientFailure, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.server import SERVER_UNREACHABLE
from clew.events.codec import decode
from clew.events.envelope import RawEvent, StoredEvent
from clew.plan import Plan, plan_from_json
from clew.runs.signals import SignalType

if TYPE_CHECKING:
    import httpx2

_TIMEOUT_S = 60.0
"""Longer than the longest silence of an event stream."""
_MOST_RECONNECTIONS = 20
_PAUSE_S = 0.5
_TEMPORARY = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """The HTTP API of a server."""

    url: str
    token: str = field(repr=False)

    def submit(
        self,
        project: str,
        period: str,
        request_id: str | None,
        captures: Sequence[CaptureWish] = (),
        parameters: Mapping[str, object] | None = None,
        *,
        with_current_definitions: bool = False,
        as_of: str | None = None,
    ) -> dict[str, Any]:
        """Request a run with captures and values of parameters, as of a time if one is given. Returns the run."""
        listed = [capture.to_data() for capture in captures]
        values = dict(parameters) if parameters else None
        wish = {"project": project, "period": period, "request_id": request_id, "captures": listed}
        renewed = with_current_definitions or None
        given = {**wish, "parameters": values, "with_current_definitions": renewed, "as_of": as_of}
        return self._document("POST", "/runs", {name: value for name, value in given.items() if value is not None})

    def run(self, run_id: str) -> dict[str, Any]:
        """The current state of a run."""
        return self._document("GET", f"/runs/{quote(run_id)}")

    def plan(self, run_id: str) -> Plan:
        """The plan that a run executes."""
        return plan_from_json(self._document("GET", f"/runs/{quote(run_id)}/plan"))

    def projects(self) -> list[dict[str, Any]]:
        """The projects of its workspace, with the version of each that runs."""
        found: list[dict[str, Any]] = self._document("GET", "/projects")["projects"]
        return found

    def project_plan(self, project: str) -> Plan:
        """The plan of a project's file: what a run of it would do."""
        return plan_from_json(self._document("GET", f"/projects/{quote(project, safe='')}/plan"))

    def signal(self, run_id: str, signal: SignalType, reason: str) -> dict[str, Any]:
        """Send a signal to a run."""
        return self._document("POST", f"/runs/{quote(run_id)}/signals", {"signal": signal.value, "reason": reason})

    def events(self, run_id: str, after: int = 0) -> Iterator[StoredEvent]:
        """The events of a run after `after` as they arrive, until it has ended. Reconnects if the connection breaks."""
        failures = 0
        while True:
            try:
                for event in self._stream(run_id, after):
                    failures, after = 0, event.run_seq
                    yield event
            except (OSError, TransientFailure) as error:
                failures += 1
                if failures > _MOST_RECONNECTIONS:
                    raise self._unreachable(error) from error
                time.sleep(_PAUSE_S)
            else:
                return

    def _stream(self, run_id: str, after: int) -> Iterator[StoredEvent]:
        """Events to the end of the run. Raises OSError if the stream stops early."""
        import httpx2  # noqa: PLC0415 - as in `_open`

        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(after)} if after else {})}
        with self._open("GET", f"/runs/{quote(run_id)}/events/stream", headers=headers) as answer:
            if answer.status_code == 204:
                return
            for sent in httpx2.EventSource(answer, max_event_size=None):
                if sent.event == "run-event":
                    yield decode(RawEvent, json.loads(sent.data)).read()
                elif sent.event == "end":
                    return
        raise ConnectionResetError("the event stream stopped")

    def _document(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        try:
            with self._open(method, path, body) as answer:
                document = json.loads(answer.read())
        except (OSError, ValueError) as error:
            raise self._unreachable(error) from error
        if not isinstance(document, dict):
            raise self._unreachable(ValueError("the response is not a JSON object"))
        return document

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "Iterator[httpx2.Response]":
        """An unread response. Raises OSError if reading it fails."""
        import httpx2  # noqa: PLC0415 - takes a quarter of a second, and most commands send nothing

        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        content = json.dumps(body).encode() if body is not None else None
        try:
            with (
                http_client(timeout_s=_TIMEOUT_S) as client,
                client.stream(method, f"{self.url.rstrip('/')}/api/v1{path}", content=content, headers=sent) as answer,
            ):
                if not answer.is_success:
                    raise self._reported(answer.status_code, answer.read())
                yield answer
        except httpx2.InvalidURL as error:
            raise self._unreachable(error) from error
        except httpx2.HTTPError as error:
            raise OSError(str(error) or type(error).__name__) from error

    def _reported(self, status: int, body: bytes) -> ClewError:
        """The error that the server reports, as if it had happened locally."""
        try:
            problem = json.loads(body)["error"]
            code, message, hint = str(problem["code"]), str(problem["message"]), problem.get("hint")
        except (ValueError, KeyError, TypeError):
            return self._unreachable(ValueError(f"it responded with status {status}"))
        if code not in CATALOGUE:
            return self._unreachable(ValueError(f"{code}: {message}"))
        kind = TransientFailure if status in _TEMPORARY else UserError
        return kind(Diagnostic(code, message, {}, None, hint))

    def _unreachable(self, error: Exception) -> TransientFailure:
        return TransientFailure(SERVER_UNREACHABLE.anywhere(url=self.url, reason=str(error) or type(error).__name__))
