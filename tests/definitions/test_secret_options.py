"""Options that look like secrets are references, wherever users write options."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from clew.definitions.option_maps import looks_like_a_secret
from tests.engine.engine_workspaces import SHOP, Shop, make_shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def with_options(shop: Shop, place: str, options: dict[str, Any]) -> Shop:
    """The options at each place where a user can write them."""
    match place:
        case "location":
            target: dict[str, Any] = {"location": {"path": "out", "format": "delta", "options": options}}
        case "path":
            target = {"datasource_id": "reports", "path": "out", "format": "delta", "options": options}
        case _:
            target = {"datasource_id": "reports", "path": "out"}
    step = {"seq": 1, "name": "Write", "type": "output", "arguments": {"destination": target}}
    shop.project("p", step)
    if place == "resolver":
        # The options of csv are known and none is a secret; those of a connector may be anything.
        strategy = {
            "type": "path",
            "datasource_id": "data",
            "path": "{table}",
            "format": "avro",
            "options": options,
        }
        shop.write(
            {"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": strategy}]}}
        )
    if place == "spark":
        environment = {"mode": "dev", "spark": {"config": options}}
        shop.write({"clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": environment}}})
    return shop


@pytest.mark.parametrize("place", ["location", "path", "resolver", "spark"])
@pytest.mark.parametrize(
    "option",
    [
        {"password": "hunter2-and-more"},
        {"fs.s3a.secret.key": "wJalrXUtnFEMI"},
        {"accessKey": "AKIA1234"},
        {"sfToken": 12345678},
        {"url": "jdbc:x://h/db;password=hunter2"},
        {"sasl.config": 'module required password="hunter2";'},
    ],
)
def test_a_secret_in_clear_is_refused_by_check(shop: Shop, place: str, option: dict[str, Any]) -> None:
    found = Workspace(with_options(shop, place, option).root).check().diagnostics
    assert [each.code for each in found] == ["SecretInClear"]
    (name, value) = next(iter(option.items()))
    assert found[0].message == f'the option "{name}" holds a secret in clear'
    assert str(value) not in f"{found[0].to_json()}".replace(str(found[0].span), "")


@pytest.mark.parametrize("place", ["location", "path", "resolver", "spark"])
def test_a_reference_is_fine_everywhere(shop: Shop, place: str) -> None:
    shop = with_options(shop, place, {"password": "secret://env/DELTA_PASSWORD", "header": True})
    assert Workspace(shop.root).check().diagnostics == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("password", True),
        ("PASSWORD", True),
        ("db_passwd", True),
        ("apiKey", True),
        ("fs.azure.account.key.x", True),
        ("oauthToken", True),
        ("credentials", True),
        ("primaryKey", False),
        ("partition.keys", False),
        ("credentials.provider", False),
        ("keyFile", False),
        ("header", False),
        ("delimiter", False),
        ("monkey", False),
        ("compression", False),
        ("maxRecordsPerFile", False),
    ],
)
def test_names_are_judged_by_their_words(name: str, expected: bool) -> None:
    assert looks_like_a_secret(name) is expected
