"""Environments as runs take them."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from clew.api.workspace import Workspace


def test_a_password_is_put_into_the_address_of_the_store_whatever_its_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "{state_store: 'postgresql://clerk@ledger-db/clew', state_store_credential_ref: 'secret://env/STORE'}"
    (tmp_path / "clew.yaml").write_text(f"name: w\nenvironments:\n  dev: {settings}\n", encoding="utf-8")
    monkeypatch.setenv("STORE", "p@ss/w:rd%?#")
    environment = Workspace(tmp_path).run_environment
    address = make_url(environment.store_url(environment.secrets()))
    assert (address.username, address.password) == ("clerk", "p@ss/w:rd%?#")
    assert (address.host, address.database) == ("ledger-db", "clew")
