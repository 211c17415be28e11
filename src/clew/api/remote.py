"""A server of Clew as commands use it: over HTTP, with a token."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote

from clew.definitions import CaptureWish
from clew.diagnostics import ClewError, Diagnostic, TransientFailure, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.server import SERVER_UNREACHABLE
from clew.events.codec import decode
from clew.events.envelope import RawEvent, StoredEvent
from clew.plan import Plan, plan_from_json
from clew.runs.signals import SignalType

_TIMEOUT_S = 60.0
"""Longer than a stream of events is silent."""
_MOST_RECONNECTIONS = 20
_PAUSE_S = 0.5
_TEMPORARY = frozenset({429, 503})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to wherever it leads."""

    def redirect_request(self, *_arguments: object) -> None:
        """Nobody is followed."""


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """The API of a server."""

    url: str
    token: str = field(repr=False)

    def submit(
        self, project: str, period: str, request_id: str | None, captures: Sequence[CaptureWish] = ()
    ) -> dict[str, Any]:
        """Ask for a run with captures; the run as it stands."""
        listed = [capture.to_data() for capture in captures]
        wish = {"project": project, "period": period, "request_id": request_id, "captures": listed}
        return self._document("POST", "/runs", {name: value for name, value in wish.items() if value is not None})

    def run(self, run_id: str) -> dict[str, Any]:
        """A run as it stands."""
        return self._document("GET", f"/runs/{quote(run_id)}")

    def plan(self, run_id: str) -> Plan:
        """The plan that a run executes."""
        return plan_from_json(self._document("GET", f"/runs/{quote(run_id)}/plan"))

    def signal(self, run_id: str, signal: SignalType, reason: str) -> dict[str, Any]:
        """Tell a run something."""
        return self._document("POST", f"/runs/{quote(run_id)}/signals", {"signal": signal.value, "reason": reason})

    def events(self, run_id: str, after: int = 0) -> Iterator[StoredEvent]:
        """The events of a run behind `after` as they come, until it has ended. A broken connection is made anew."""
        failures = 0
        while True:
            try:
                for event in self._stream(run_id, after):
                    failures, after = 0, event.run_seq
                    yield event
            except (OSError, HTTPException, TransientFailure) as error:
                failures += 1
                if failures > _MOST_RECONNECTIONS:
                    raise self._unreachable(error) from error
                time.sleep(_PAUSE_S)
            else:
                return

    def _stream(self, run_id: str, after: int) -> Iterator[StoredEvent]:
        """Events to the end of the run. A stream that just stops is an OSError."""
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": str(after)} if after else {})}
        with self._open("GET", f"/runs/{quote(run_id)}/events/stream", headers=headers) as answer:
            if answer.status == 204:
                return
            name, data = "", ""
            for line in answer:
                word, _, value = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    name = value
                elif word == "data":
                    data = value
                elif not word and name == "run-event":
                    yield decode(RawEvent, json.loads(data)).read()
                elif not word and name == "end":
                    return
                if not word:
                    name = ""
        raise ConnectionResetError("the stream of events stopped")

    def _document(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        try:
            with self._open(method, path, body) as answer:
                document = json.load(answer)
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        if not isinstance(document, dict):
            raise self._unreachable(ValueError("the answer is not a document"))
        return document

    def _open(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HTTPResponse:
        request = urllib.request.Request(  # noqa: S310 - the user names the server
            f"{self.url.rstrip('/')}/api/v1{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})},
            method=method,
        )
        try:
            answer: HTTPResponse = urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                raise self._reported(error.code, error.read()) from error
        except ValueError as error:
            raise self._unreachable(error) from error
        return answer

    def _reported(self, status: int, body: bytes) -> ClewError:
        """What the server says is wrong, as if it had happened here."""
        try:
            problem = json.loads(body)["error"]
            code, message, hint = str(problem["code"]), str(problem["message"]), problem.get("hint")
        except (ValueError, KeyError, TypeError):
            return self._unreachable(ValueError(f"it answered with status {status}"))
        if code not in CATALOGUE:
            return self._unreachable(ValueError(f"{code}: {message}"))
        kind = TransientFailure if status in _TEMPORARY else UserError
        return kind(Diagnostic(code, message, {}, None, hint))

    def _unreachable(self, error: Exception) -> TransientFailure:
        reason = getattr(error, "reason", None) or error
        return TransientFailure(SERVER_UNREACHABLE.anywhere(url=self.url, reason=str(reason) or type(error).__name__))
