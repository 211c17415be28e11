"""Every address of the server, made from the OpenAPI document and the list of pages, with real ids in their places."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from httpx2 import Response
from starlette.routing import Mount

from tests.privacy.clinic import MONTH, Clinic

Values = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Route:
    """A method and the pattern of an address."""

    method: str
    pattern: str

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)(?::\w+)?\}", self.pattern)

    def path(self, values: Mapping[str, str]) -> str:
        return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: values[found[1]], self.pattern)


@dataclass(frozen=True)
class Request:
    """A request that can be sent."""

    route: Route
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)

    def send(self, client: TestClient) -> Response:
        body, form = BODIES.get(self.route.pattern), FORMS.get(self.route.pattern)
        return client.request(self.route.method, self.path, params=self.query, json=body, data=form)


BODIES = {
    "/api/v1/runs": {"project": "care", "period": MONTH, "request_id": "again"},
    "/api/v1/runs/{run}/rerun": {"request_id": "rerun"},
    "/api/v1/runs/{run}/signals": {"signal": "PAUSE"},
    "/api/v1/nodes": {"host": "h", "process_id": 1, "start_time_ms": 1},
    "/api/v1/nodes/{node}/keepalive": {"term": 1},
    "/api/v1/nodes/{node}/release": {"term": 1, "used_until_ms": 1},
}
FORMS = {
    "/runs/{run}/rerun": {"request_id": "rerun page"},
    "/projects/{project}/runs": {"period": MONTH, "request_id": "again"},
    "/projects/{project}/activate": {"seen": "another file"},
    "/projects/{project}/deactivate": {"seen": "7"},
}


def api_routes(clinic: Clinic) -> list[Route]:
    """The routes that the OpenAPI document describes."""
    document = clinic.served.client("admin").get("/api/v1/openapi.json").json()
    return [
        Route(method.upper(), path) for path, methods in sorted(document["paths"].items()) for method in sorted(methods)
    ]


def page_routes(clinic: Clinic) -> list[Route]:
    """The pages, and everything else that the application answers and the document does not describe."""
    described = set(api_routes(clinic))
    found = list[Route]()
    for route in iter_route_contexts(clinic.served.app.routes):
        if isinstance(route.original_route, Mount) or route.path is None:
            continue
        for method in sorted(route.methods or ()):
            if method != "HEAD" and Route(method, route.path) not in described:
                found.append(Route(method, route.path))
    return sorted(found, key=lambda route: (route.pattern, route.method))


def values_of(clinic: Clinic) -> Values:
    """Values for the parameters of addresses: each combination is asked for."""
    return {
        "run": [clinic.care, clinic.report, clinic.failed],
        "row": clinic.care_rows,
        "seq": ["0", "30", "40", "70", "80", "90", "100"],
        "output": ["90", "100"],
        "project": ["care"],
        "dataset": ["patients", "cared"],
        "trace_id": [str(each) for each in clinic.trace_ids] or ["1"],
        "capture": [clinic.capture],
        "other": [clinic.capture],
        "digest": [clinic.served.workspace.find_run(clinic.care).record.request.plan.digest or ""],
        "version": ["1"],
        "node": ["1023"],
    }


COLUMNS = ("name", "cost", "ssn", "greeting", "code", "risk", "region", "payroll", "head", "rows", "ward", "_row_id")
CONDITIONS = ("cost > 0", 'name = "x"', "ssn IS NOT NULL", 'ward = "nowhere"', "LEN(greeting) > 0", "Salary > 1")


SEARCHED = ("101", "1", "a", "north")
"""Values that rows may have."""
SUPPOSITIONS = ("patients: cost = cost + 1", "patients: cost = salary", "wards: head = ward", "visitors: spent = 1")


def queries_of(route: Route, row: str | None) -> Iterator[Mapping[str, Any]]:
    """What may be asked at an address, beside asking for it as it is."""
    yield {}
    pattern = route.pattern
    if "explain" in pattern:
        for column in COLUMNS:
            yield {"row": row, "column": column, "all": "true", "top": "50"}
            yield {"row": row, "column": column, "restated": "true"}
        yield {"where": "cost > 100", "column": "cost"}
        yield {"where": 'name = "x"', "column": "cost"}
    elif pattern.endswith(("/values", "/values.json")):
        for column in COLUMNS:
            yield {"column": column}
            yield {"column": column, "where": "cost > 0"}
    elif pattern.endswith("/condition"):
        for where in CONDITIONS:
            yield {"where": where}
    elif pattern.endswith(("/search", "/search.json")):
        for text in ("cost", "nowhere", MONTH, *SEARCHED):
            yield {"q": text}
    elif "evidence" in pattern:
        for column in ("greeting", "payroll", "cost"):
            yield {"row": row, "column": column}
        yield {"output": 90}
    elif pattern.endswith("/records"):
        yield {"limit": 1000}
        yield {"step": 40, "limit": 1000}
    elif "why-not" in pattern:
        for where in CONDITIONS:
            yield {"where": where}
    elif "rows" in pattern and row is None:
        for where in CONDITIONS:
            yield {"where": where, "limit": 1000}
        for column in COLUMNS:
            yield {"sort": column, "direction": "descending", "at": 80}
            yield {"columns": column}
    elif pattern.startswith("/lineage"):
        for column in COLUMNS:
            yield {"row": row, "column": column}
    elif "/compare" in pattern:
        yield {"at": 0}
        yield {"where": "cost > 0", "sort": "cost", "at": 10}
        yield {"where": 'name = "x"', "at": 10}
        yield {"sort": "salary", "key": "pin", "at": 10}
    elif "/why-changed" in pattern:
        yield {"column": "cost", "at": 10}
        yield {"column": "salary", "at": 10}
        yield {"column": "cost", "at": 10, "where": 'name = "x"'}
    elif "/what-if" in pattern:
        for column in ("cost", "salary"):
            yield {"sensitivity": column}
        for text in SUPPOSITIONS:
            yield {"set": text, "at": 80}
        yield {"drop": 'patients where name = "x"', "expression": '30.risk = "x"'}
        yield {"drop": "patients where cost > 103", "at": 80}
    elif "/sensitivity" in pattern:
        yield {"column": "cost", "at": 10}
        yield {"column": "salary", "at": 10}
    elif pattern.endswith("/diff/{other}"):
        yield {"key": "name"}


def _about(route: Route) -> Mapping[str, Any]:
    """A question that every run can answer, or refuse."""
    return {"where": "cost > 0", "column": "cost"} if "explain" in route.pattern or "why" in route.pattern else {}


def requests(clinic: Clinic, routes: Sequence[Route], values: Values) -> Iterator[Request]:
    """Every address with every combination of values, and every question that may be asked there."""
    for route in routes:
        for chosen in itertools.product(*(values[name] for name in route.parameters)):
            given = dict(zip(route.parameters, chosen, strict=True))
            if "row" in given and given["run"] != clinic.care:
                continue
            rows = values["row"] if "explain" in route.pattern or route.pattern.startswith("/lineage") else [None]
            rows = values["row"][-1:] if "evidence" in route.pattern else rows
            if given.get("run", clinic.care) != clinic.care:
                yield Request(route, route.path(given), _about(route))
                continue
            for row in rows:
                for query in queries_of(route, given.get("row", row)):
                    about = {"run": clinic.care} if route.pattern.startswith("/lineage") and query else {}
                    if "/compare" in route.pattern or "/why-changed" in route.pattern:
                        about = {"other": clinic.failed}
                    yield Request(route, route.path(given), {**about, **query})
