"""Fixtures that give each test a separate state store, on either database."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from clew.runs.stores import RunStores
from clew.store import StoreOptions, open_run_stores
from tests.store.store_postgres import PostgresServer, postgres_server

OpenStores = Callable[..., RunStores]

EACH_DATABASE = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def new_schema(server: PostgresServer) -> str:
    """The address of an empty schema of a server."""
    schema = f"t{uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{server.url}&options=-csearch_path%3D{schema}"


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    return new_schema(postgres)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state.db'}"


@pytest.fixture(params=EACH_DATABASE)
def url(request: pytest.FixtureRequest) -> str:
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    address: str = request.getfixturevalue(name)
    return address


@pytest.fixture
def open_stores() -> Iterator[OpenStores]:
    """Opens stores that are closed after the test."""
    with ExitStack() as stack:

        def opener(address: str, **options: object) -> RunStores:
            return stack.enter_context(open_run_stores(address, StoreOptions(**options)))  # type: ignore[arg-type]

        yield opener


@pytest.fixture
def stores(url: str, open_stores: OpenStores) -> RunStores:
    """A store on each database in turn."""
    return open_stores(url)


@pytest.fixture
def sqlite_stores(sqlite_url: str, open_stores: OpenStores) -> RunStores:
    return open_stores(sqlite_url)
