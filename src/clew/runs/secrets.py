"""Secrets by reference: plans and events hold `secret://PROVIDER/NAME`; only the step has the value.

Values that were looked up are redacted from everything that is written down.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, quote_plus

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import INVALID_SECRET_REFERENCE, SECRET_NOT_FOUND, WEAK_SECRET
from clew.events.bodies import EventBody
from clew.events.codec import decode, encode
from clew.events.envelope import NewEvent

REDACTED = "[secret]"

REFERENCE = "secret://"
"""How a reference begins."""


_NAMES = frozenset(
    {
        *("tenant_id", "project_id", "environment_id", "project_version", "plan", "plan_id", "plan_version", "digest"),
        *("period", "request_id", "run_id", "new_run_id", "retry_of", "step_id", "retried_step_id", "failed_step_id"),
        *("seq", "name", "type", "kind", "path", "file", "sha256", "checksum", "code", "alert", "severity"),
        *("signal_id", "signal", "actor", "role", "refusal", "requested_by", "approved_by", "steps"),
        *("cursor", "counters", "counts", "dataset", "table", "column", "columns", "row_id"),
    }
)
"""Fields of events whose values are identifiers, places and numbers."""


_ADDRESSES = frozenset({"uri", "url"})
_PARTS_OF_ADDRESS = re.compile(r"([^/?;]*//[^/@?;]*@)?([^?;]*)(.*)", re.DOTALL)


class Redactor:
    """Knows the values that were resolved, and replaces them wherever they appear, even in common encodings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: tuple[str, ...] = ()

    def learn(self, values: Iterable[str]) -> None:
        """Remember values that must never be shown."""
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
        """A JSON value without secrets.

        Keys, and values that name something or say where it is, stay as they are: changed, they would name nothing.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: item if key in _NAMES else self._item(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _item(self, key: str, value: Any) -> Any:  # noqa: ANN401 -- JSON values have no narrower type
        return self.address(value) if key in _ADDRESSES and isinstance(value, str) else self.value(value)

    def address(self, text: str) -> str:
        """An address without secrets in its user and its parameters. Its path stays: it says where something is."""
        user, path, parameters = _PARTS_OF_ADDRESS.fullmatch(text).groups()  # type: ignore[union-attr] # always matches
        return f"{self.text(user or '')}{path}{self.text(parameters)}"

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
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:  # another environment of the process may have written it, which knows other secrets
            record.exc_text = self._redactor.text(record.exc_text)
        return True


class RecordKeeper(logging.Handler):
    """Keeps records somewhere and prints nothing, so that it does not count where Python asks who prints."""


class _BeforeAllOthers(logging.Handler):
    """Stands at the logger above all of Clew's, so that records are rewritten before any other handler sees them.

    Where there is no handler at all Python prints warnings itself. As there is one now, the last of its kind does that.
    """

    def __init__(self, redactor: Redactor, logger: logging.Logger) -> None:
        super().__init__()
        self.addFilter(RedactingFilter(redactor))
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, which the filter has rewritten, where no other handler will."""
        printer = logging.lastResort
        printing = [each for each in self._logger.handlers if not isinstance(each, RecordKeeper)]
        is_last = printing[-1:] == [self]
        if is_last and not logging.getLogger().handlers and printer is not None and record.levelno >= printer.level:
            printer.handle(record)


@contextmanager
def redacted_logs(redactor: Redactor) -> Iterator[None]:
    """While this is active, no log record of Clew shows a secret, whichever handler prints it."""
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


_SHORTEST, _LONG = 8, 16
"""Characters: below the first no value is a secret, below the second none that is only letters, or a number."""
_SCOPE_SEPARATOR = "__"
_REFERENCE = re.compile(r"secret://([a-z][a-z0-9-]*)/([A-Za-z0-9_][A-Za-z0-9_.-]*)")


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A reference to a secret."""

    provider: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "SecretRef":
        """The reference that a text is."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise UserError(INVALID_SECRET_REFERENCE.anywhere(reference=text))
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"secret://{self.provider}/{self.name}"


@dataclass(frozen=True, slots=True)
class SecretScope:
    """For whom a secret is resolved. The same name may mean another value elsewhere."""

    tenant_id: str
    environment_id: str


class SecretsProvider(Protocol):
    """A place where secrets are kept."""

    def find(self, name: str, scope: SecretScope) -> str | None:
        """The value, or None if there is none."""
        ...


class EnvironmentSecrets:
    """Variables of the worker's process: `TENANT__ENVIRONMENT__NAME`, else `ENVIRONMENT__NAME`, else `NAME`."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables

    def find(self, name: str, scope: SecretScope) -> str | None:
        """The value of the most particular variable that exists."""
        if _SCOPE_SEPARATOR in name:
            return None  # else a name could reach into the variables of another tenant
        variables = os.environ if self._variables is None else self._variables
        environment, tenant = _variable_part(scope.environment_id), _variable_part(scope.tenant_id)
        candidates = (
            _SCOPE_SEPARATOR.join((tenant, environment, name)),
            _SCOPE_SEPARATOR.join((environment, name)),
            name,
        )
        return next((variables[candidate] for candidate in candidates if candidate in variables), None)


class FileSecrets:
    """Files under a folder: `TENANT/ENVIRONMENT/NAME`, else `ENVIRONMENT/NAME`, else `NAME`, without a last newline."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def find(self, name: str, scope: SecretScope) -> str | None:
        """The content of the most particular file that exists and lies inside the folder."""
        parts = ((scope.tenant_id, scope.environment_id, name), (scope.environment_id, name), (name,))
        for path in (self._folder.joinpath(*part).resolve() for part in parts):
            if path.is_relative_to(self._folder) and path.is_file():
                return path.read_text(encoding="utf-8").removesuffix("\n")
        return None


class SecretsResolver:
    """Resolves references by the providers it was given."""

    def __init__(self, providers: Mapping[str, SecretsProvider], redactor: Redactor | None = None) -> None:
        self._providers = dict(providers)
        self.redactor = redactor or Redactor()

    def resolve(self, refs: Iterable[SecretRef], scope: SecretScope) -> Mapping[str, str]:
        """The values by reference. From here on the redactor knows them."""
        values = {str(ref): self._value(ref, scope) for ref in refs}
        for reference, value in values.items():
            problem = _weakness(value.strip())
            if problem is not None:
                raise UserError(WEAK_SECRET.anywhere(reference=reference, problem=problem))
        self.redactor.learn(values.values())
        return values

    def _value(self, ref: SecretRef, scope: SecretScope) -> str:
        provider = self._providers.get(ref.provider)
        if provider is None:
            raise UserError(INVALID_SECRET_REFERENCE.anywhere(reference=str(ref)))
        value = provider.find(ref.name, scope)
        if value is None:
            raise UserError(
                SECRET_NOT_FOUND.anywhere(reference=str(ref), tenant=scope.tenant_id, environment=scope.environment_id)
            )
        return value


def with_secrets(options: Mapping[str, str], resolver: SecretsResolver, scope: SecretScope) -> dict[str, str]:
    """Options with the values of the secrets that they refer to."""
    refs = [SecretRef.parse(value) for value in options.values() if value.startswith(REFERENCE)]
    values = resolver.resolve(refs, scope)
    return {name: values.get(value, value) for name, value in options.items()}


@dataclass(frozen=True, slots=True)
class StepSecrets:
    """The secrets that a step may ask for: those of its run's tenant and environment."""

    resolver: SecretsResolver
    scope: SecretScope

    def resolve(self, *references: str) -> Mapping[str, str]:
        """The values of references such as `secret://env/NAME`."""
        return self.resolver.resolve([SecretRef.parse(reference) for reference in references], self.scope)


def _weakness(value: str) -> str | None:
    """Why a value cannot be told from ordinary text; None where it can."""
    if len(value) < _SHORTEST:
        return f"shorter than {_SHORTEST} characters"
    if len(value) < _LONG and value.isalpha():
        return "an ordinary word, or looks like one"
    if len(value) < _LONG and re.fullmatch(r"[\d.,:/-]+", value):
        return "a number, or looks like one"
    return None


def _variable_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", text).upper()
