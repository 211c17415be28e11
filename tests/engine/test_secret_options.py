"""The value of a secret in an option reaches the format, and nothing else that anybody can read."""

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from clew.cli.main import run as command_line
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

VALUE = "x7-canary-4711"


def written_with(shop: Shop, format_: str, options: dict[str, Any]) -> Shop:
    location = {"path": "out/orders", "format": format_, "options": options}
    arguments = {"destination": {"location": location}, "columns": ["id", "currency"]}
    return shop.project("p", {"seq": 1, "name": "Write", "type": "output", "arguments": arguments})


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("MARK_OF_NULLS", VALUE)
    return make_shop(tmp_path).write({"data/orders.csv": "id,currency,amount,_period\n1,,10.00,2026-01\n"})


def everything_below(root: Path) -> str:
    """Every byte that the run left behind, except its output."""
    return "\n".join(
        path.read_bytes().decode("latin-1")
        for path in sorted(root.rglob("*"))
        if path.is_file() and "out" not in path.relative_to(root).parts
    )


def printed(shop: Shop, *arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        command_line([*arguments, "--workspace", str(shop.root)])
    return out.getvalue()


def test_the_value_is_used_and_stands_nowhere(shop: Shop) -> None:
    written_with(shop, "csv", {"null_value": "secret://env/MARK_OF_NULLS"})
    view = shop.run("p")
    assert view.snapshot.status.value == "COMPLETED"
    (file,) = (shop.root / "out" / "orders").glob("part-*")
    assert file.read_text() == f"id,currency\n1,{VALUE}\n"
    assert VALUE not in everything_below(shop.root)
    run_id = view.record.run_id
    shown = [
        printed(shop, "plan", "p", "--json"),
        printed(shop, "show", run_id, "--json"),
        printed(shop, "events", run_id, "--json"),
        printed(shop, "trace", run_id, "--json"),
    ]
    assert "secret://env/MARK_OF_NULLS" in shown[0]
    assert VALUE not in "".join(shown)


def test_an_error_of_the_format_does_not_show_it(shop: Shop) -> None:
    """Spark quotes the option that it cannot use."""
    written_with(shop, "csv", {"sep": "secret://env/MARK_OF_NULLS", "quote": "secret://env/MARK_OF_NULLS"})
    view = shop.run("p")
    assert view.failure is not None
    assert VALUE not in view.failure.message
    assert VALUE not in everything_below(shop.root)
    assert VALUE not in printed(shop, "show", view.record.run_id)


def test_a_source_takes_secrets_too(shop: Shop) -> None:
    strategy = {
        "type": "path",
        "datasource_id": "data",
        "path": "{table}.csv",
        "options": {"null_value": "secret://env/MARK_OF_NULLS"},
    }
    shop.write({"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": strategy}]}})
    shop.write({"data/orders.csv": f"id,currency,amount,_period\n1,{VALUE},10.00,2026-01\n"})
    written_with(shop, "csv", {"null_value": "none"})
    view = shop.run("p")
    assert view.snapshot.status.value == "COMPLETED"
    (file,) = (shop.root / "out" / "orders").glob("part-*")
    assert file.read_text() == "id,currency\n1,none\n"
    run = Workspace(shop.root).get_run(view.record.run_id)
    assert VALUE not in str(run.to_json())


@pytest.mark.parametrize("value", ["runs", "postgres", "20260101", "pw", "  abc  "])
def test_a_short_value_or_an_ordinary_word_is_refused_as_a_secret(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MARK_OF_NULLS", value)
    view = written_with(shop, "csv", {"null_value": "secret://env/MARK_OF_NULLS"}).run("p")
    assert view.failure is not None
    assert view.failure.code == "WeakSecret"
    assert 'the value of the secret "secret://env/MARK_OF_NULLS"' in view.failure.message
    assert view.failure.hint
    assert not (shop.root / "out").exists()
