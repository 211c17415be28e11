"""The OpenAPI description, and whether the API does what it says."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.server.application import create_app
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import Served, serving, write_ledger

SETTINGS = ServerSettings(allowed_hosts=frozenset({"testserver", "localhost"}))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A separate workspace: what is generated starts runs and sends signals."""
    folder = write_ledger(tmp_path_factory.mktemp("fuzzed") / "ledger")
    with pytest.MonkeyPatch.context() as patch, serving(folder, patch, SETTINGS) as served:
        yield served


class _NoSite:
    """Enough of a site to describe an application that is never called."""

    def __getattr__(self, name: str) -> "_NoSite":
        return self


class _Switched:
    """Stands for the application of a test, while tests are collected for one without a site."""

    target: ASGIApp = create_app(_NoSite(), SETTINGS)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.target(scope, receive, send)


switched = _Switched()
LISTS = {"key"}
"""Parameters that take several values."""
schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", switched).exclude(
    path="/api/v1/runs/{run}/events/stream"
)


@schema.parametrize()
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_the_api_does_what_its_description_says(case: schemathesis.Case[Any], fuzzed: Served) -> None:
    # A parameter may come several times in an address; the last one counts. Such addresses are not invalid.
    assume(not any(isinstance(value, list) for name, value in (case.query or {}).items() if name not in LISTS))
    switched.target = fuzzed.app
    names = {"run": fuzzed.run_id, "project": "gl-close", "dataset": "accounts"}
    for name in set(case.path_parameters or {}) & set(names):
        if len(str(case.path_parameters[name])) % 2:
            case.path_parameters[name] = names[name]
    headers = {"Authorization": f"Bearer {_admin(fuzzed)}"}
    case.call_and_validate(headers=headers, checks=CHECKS)


_TOKENS = dict[str, str]()


def _admin(served: Served) -> str:
    return _TOKENS.setdefault(served.run_id, served.token("admin"))


def test_the_description_names_every_route_with_its_errors(shared: Served) -> None:
    document = shared.client().get("/api/v1/openapi.json").json()
    assert document["info"]["title"] == "Clew"
    assert {"/api/v1/runs", "/api/v1/runs/{run}/explain", "/api/v1/audit"} <= set(document["paths"])
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["summary"], path
            assert operation["responses"]["default"]["content"]["application/json"]["schema"]["$ref"].endswith(
                "ErrorDocument"
            )
    assert "/login" not in document["paths"]
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    assert document["paths"]["/api/v1/health"]["get"]["security"] == []
    assert json.dumps(document).count("HTTPValidationError") == 0
