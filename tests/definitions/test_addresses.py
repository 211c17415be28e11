"""Addresses of databases: which a state store can be in, and that passwords stand elsewhere."""

from collections.abc import Callable, Mapping

import pytest

from clew.definitions import LoadedWorkspace

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]


def messages(workspace_of: WorkspaceOf, files: Mapping[str, str | bytes]) -> list[str]:
    return [each.message for each in workspace_of(files).diagnostics]


def settings(state_store: str) -> Mapping[str, str]:
    return {"clew.yaml": f'name: t\nenvironments:\n  dev:\n    state_store: "{state_store}"\n'}


def database(url: str) -> Mapping[str, str]:
    return {"datasources/d.yaml": f'id: d\ntype: database\noptions: {{url: "{url}"}}\n'}


@pytest.mark.parametrize("address", ["mysql://u@host/db", "state.db", "sqlite://", "postgres://host/db"])
def test_a_state_store_is_in_sqlite_or_postgresql(workspace_of: WorkspaceOf, address: str) -> None:
    assert messages(workspace_of, settings(address)) == ["this is not a valid state store address"]


@pytest.mark.parametrize("address", ["postgresql://u:hunter2@h/db", "postgresql://h/db?user=u&password=hunter2"])
def test_no_password_stands_in_the_address_of_a_state_store(workspace_of: WorkspaceOf, address: str) -> None:
    assert messages(workspace_of, settings(address)) == ["the address of the state store contains a password"]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter2@h/db",
        "jdbc:postgresql://h/db?user=u&password=hunter2",
        "jdbc:sqlserver://h;user=u;Password=hunter2",
        "jdbc:oracle:thin:scott/tiger@//h:1521/s",
    ],
)
def test_no_password_stands_in_the_address_of_a_datasource(workspace_of: WorkspaceOf, address: str) -> None:
    assert messages(workspace_of, database(address)) == ["the address of the database contains a password"]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ledger-db/clew",
        "postgresql://u@h:5432/db?sslmode=require",
        "postgresql://u@/db?host=/var/run/postgresql",
        "jdbc:oracle:thin:@//h:1521/s",
        "jdbc:derby:memory:x;create=true",
    ],
)
def test_addresses_without_a_password_are_taken(workspace_of: WorkspaceOf, address: str) -> None:
    assert messages(workspace_of, database(address)) == []
