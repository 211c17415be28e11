"""Secrets by reference. Plans and events hold `secret://PROVIDER/NAME`; the value exists only inside the step."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import INVALID_SECRET_REFERENCE, SECRET_NOT_FOUND
from clew.runs.redaction import Redactor

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
        """The value, or None where there is none."""
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


@dataclass(frozen=True, slots=True)
class StepSecrets:
    """The secrets that a step may ask for: those of its run's tenant and environment."""

    resolver: SecretsResolver
    scope: SecretScope

    def resolve(self, *references: str) -> Mapping[str, str]:
        """The values of references such as `secret://env/NAME`."""
        return self.resolver.resolve([SecretRef.parse(reference) for reference in references], self.scope)


def _variable_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", text).upper()
