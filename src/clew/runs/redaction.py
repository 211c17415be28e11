"""Keeps the values of secrets out of everything that is written down."""

import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

from clew.runs.events.bodies import EventBody
from clew.runs.events.codec import decode, encode
from clew.runs.events.envelope import NewEvent

REDACTED = "[secret]"


class Redactor:
    """Knows the values that were resolved, and replaces them wherever they turn up, also in their usual encodings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: tuple[str, ...] = ()

    def learn(self, values: Iterable[str]) -> None:
        """Remember values that nobody may read."""
        forms = {form for value in values if value for form in _forms(value)}
        with self._lock:
            # Longest first: a value that contains another one is replaced as a whole.
            self._values = tuple(sorted({*self._values, *forms}, key=lambda form: (-len(form), form)))

    def text(self, text: str) -> str:
        """A text without secrets."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        return text

    def value(self, value: Any) -> Any:  # noqa: ANN401 -- JSON values have no narrower type
        """A JSON value without secrets, in keys as well."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def event(self, event: NewEvent) -> NewEvent:
        """An event without secrets."""
        if not self._values:
            return event
        body_type: type[EventBody] = type(event.body)
        return replace(
            event,
            body=decode(body_type, self.value(encode(event.body))),
            engine_run_ref=self.value(event.engine_run_ref),
        )


class RedactingFilter(logging.Filter):
    """For log handlers: no record passes with a secret in it, nor in its traceback."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; let it pass."""
        record.msg = self._redactor.text(record.getMessage())
        record.args = None
        if record.exc_info:
            record.exc_text = self._redactor.text(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


class _BeforeAllOthers(logging.Handler):
    """Stands at the logger above all of Clew's, so that records are rewritten before any other handler sees them.

    Where there is no handler at all Python prints warnings itself. As there is one now, the last of its kind does that.
    """

    def __init__(self, redactor: Redactor, logger: logging.Logger) -> None:
        super().__init__()
        self.addFilter(RedactingFilter(redactor))
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, which the filter has rewritten, where nobody else will."""
        printer = logging.lastResort
        is_last = self._logger.handlers[-1:] == [self]
        if is_last and not logging.getLogger().handlers and printer is not None and record.levelno >= printer.level:
            printer.handle(record)


@contextmanager
def redacted_logs(redactor: Redactor) -> Iterator[None]:
    """Let nothing that Clew logs meanwhile show what the redactor knows, whoever handles the records."""
    logger = logging.getLogger("clew")
    handler = _BeforeAllOthers(redactor, logger)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _forms(value: str) -> set[str]:
    stripped = value.strip()
    plain = {value, stripped} - {""}
    return {form for text in plain for form in (text, quote(text, safe=""), quote_plus(text), json.dumps(text)[1:-1])}
