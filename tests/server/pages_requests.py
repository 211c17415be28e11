"""Requests as a browser makes them."""

from collections.abc import Mapping

from fastapi.testclient import TestClient
from httpx2 import Response


def as_page(client: TestClient, path: str, query: Mapping[str, str | int] | None = None) -> Response:
    """A page, asked for by a browser."""
    return client.get(
        path, params=dict(query) if query else None, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    )
