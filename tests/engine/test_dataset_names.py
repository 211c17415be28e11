"""What the name of a dataset means when a run starts: its definition as it is then, and one rule for its data.

The definition gives columns, keys and documentation. A registered version is the data from the first registration on.
A dataset with its own resolver cannot be registered. What was read, and by which resolver, is on record.
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from clew.api.run_view import RunView
from clew.api.workspace import Workspace
from clew.cli.main import run as command_line
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

_GOALS = SHOP["datasets/targets.yaml"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def output(path: str, seq: int = 20, **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return {"seq": seq, "name": "Write", "type": "output", "arguments": {"destination": destination, **arguments}}


def goals_joined(**join: Any) -> dict[str, Any]:
    joined = {"alias": "targets", "dataset_id": "targets", "on": "targets.currency = orders.currency", **join}
    assignments = [{"column": "goal", "expression": "targets.goal"}]
    arguments = {"joins": [joined], "assignments": assignments}
    return {"seq": 10, "name": "Look up goals", "type": "update", "arguments": arguments}


def registering(shop: Shop) -> Shop:
    """A project that registers goals ten times as high as those in the file."""
    higher = {"assignments": [{"column": "goal", "expression": "goal * 10"}]}
    return shop.project(
        "plan-goals",
        {"seq": 10, "name": "Raise", "type": "update", "arguments": higher},
        output("goals", columns=["currency", "goal", "_period"], register_as_dataset="targets"),
        dataset="drafted-goals",
    ).write(
        {
            "datasets/drafted.yaml": {**_GOALS, "id": "drafted-goals", "resolver_id": "drafted"},
            "resolvers/drafted.yaml": {
                "id": "drafted",
                "version": 4,
                "rules": [
                    {"name": "file", "strategy": {"type": "path", "datasource_id": "data", "path": "targets.csv"}}
                ],
            },
        }
    )


def failure(view: RunView) -> tuple[str, str]:
    assert view.failure is not None, view.snapshot.status
    return view.failure.code, view.failure.message


def goals(shop: Shop, path: str = "reports/out") -> dict[int, int | None]:
    return {row["id"]: row["goal"] for row in shop.read(path)}


def printed(shop: Shop, *arguments: str) -> Any:
    """What a command prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        command_line([*arguments, "--json", "--workspace", str(shop.root)])
    return json.loads(out.getvalue())


def checked(shop: Shop) -> dict[str, Any]:
    found: dict[str, Any] = printed(shop, "check")
    return found


def snapshots(shop: Shop, view: RunView) -> dict[str, dict[str, Any]]:
    shown = printed(shop, "show", view.record.run_id)
    return {each["dataset"]: each for each in shown["resolver_snapshots"]}


def test_a_registered_version_is_the_data_of_a_declared_dataset_from_the_first_registration_on(shop: Shop) -> None:
    registering(shop).project("report", goals_joined(), output("out"))
    assert checked(shop)["ok"]
    first = shop.run("report")
    assert goals(shop) == {1: 1, 2: 3}
    assert snapshots(shop, first)["targets"]["resolver"] == "r"
    shop.run("plan-goals")
    second = shop.run("report")
    assert goals(shop) == {1: 10, 2: 30}
    found = snapshots(shop, second)["targets"]
    assert (found["dataset_version"], found["resolver"], found["registered"]) == (1, None, True)


def test_check_says_that_registration_will_replace_what_the_default_resolver_finds(shop: Shop) -> None:
    found = checked(registering(shop).project("report", goals_joined(), output("out")))
    (note,) = found["notes"]
    assert note == (
        'the project "plan-goals" registers the dataset "targets": from the first registration on, its data is what '
        'is registered, and no longer what the default resolver "r" finds'
    )


def test_a_dataset_with_a_resolver_cannot_be_registered(shop: Shop) -> None:
    registering(shop).write({"datasets/targets.yaml": {**_GOALS, "resolver_id": "r"}})
    (found,) = checked(shop)["diagnostics"]
    assert found["code"] == "RegistrationConflict"
    assert found["file"] == "projects/plan-goals.yaml"
    assert found["message"] == (
        'the dataset "targets" has its own resolver, "r": an output cannot become a version of it'
    )


def test_a_dataset_that_got_a_resolver_after_the_activation_is_not_registered(shop: Shop) -> None:
    registering(shop).run("plan-goals")
    shop.write({"datasets/targets.yaml": {**_GOALS, "resolver_id": "r"}})
    code, message = failure(shop.run("plan-goals"))
    assert code == "RegistrationConflict"
    assert 'has its own resolver, "r"' in message
    with shop.starter() as starter:
        assert [version.version for version in starter.state.datasets.versions("targets")] == [1]


def test_a_dataset_that_is_registered_by_its_name_is_found_by_its_id(shop: Shop) -> None:
    registering(shop).write({"datasets/targets.yaml": {**_GOALS, "id": "goals-of-sales", "name": "targets"}})
    shop.project("report", goals_joined(dataset_id="goals-of-sales"), output("out"))
    assert checked(shop)["ok"]
    registered = shop.run("plan-goals").outputs()[0]
    assert (registered["dataset"], registered["dataset_version"]) == ("goals-of-sales", 1)
    shop.run("report")
    assert goals(shop) == {1: 10, 2: 30}


@pytest.mark.parametrize(("version", "pin"), [(3, 1), (1, 99), (2, 3)])
def test_a_pin_that_is_not_the_version_of_a_resolved_dataset_is_refused(shop: Shop, version: int, pin: int) -> None:
    shop.write({"datasets/targets.yaml": {**_GOALS, "version": version, "resolver_id": "r"}})
    shop.project("report", goals_joined(dataset_version=pin), output("out"))
    (found,) = checked(shop)["diagnostics"]
    assert (found["code"], found["message"]) == ("UnknownDataset", f'no dataset "targets version {pin}"')
    assert found["hint"] == (
        f"the definition has version {version}, and the data comes from a resolver, which keeps no other versions"
    )


def test_a_pin_is_refused_in_a_run_once_the_definition_has_another_version(shop: Shop) -> None:
    shop.project("report", goals_joined(dataset_version=1), output("out"))
    pinned = shop.run("report")
    assert snapshots(shop, pinned)["targets"] == {
        "dataset": "targets",
        "dataset_version": 1,
        "pinned_version": 1,
        "registered": False,
        "resolver": "r",
        "resolver_version": 1,
        "resolver_source": "default",
        "rule": "a",
        "sources": "targets.csv",
    }
    shop.write({"datasets/targets.yaml": {**_GOALS, "version": 2}})
    code, message = failure(shop.run("report"))
    assert (code, message) == ("UnknownDataset", 'no dataset "targets version 1"')


def test_a_pin_to_a_version_that_was_never_registered_is_refused_by_check_and_by_the_run(shop: Shop) -> None:
    registering(shop).project("report", goals_joined(dataset_version=7), output("out"))
    shop.run("plan-goals")
    (found,) = checked(shop)["diagnostics"]
    assert (found["code"], found["message"]) == ("UnknownDataset", 'no dataset "targets version 7"')
    assert found["hint"] == "the registered version is 1"
    assert failure(shop.run("report"))[0] == "UnknownDataset"


def test_the_versions_of_every_dataset_and_resolver_are_in_the_snapshot(shop: Shop) -> None:
    registering(shop).project("report", goals_joined(), output("out"))
    orders = {**SHOP["datasets/orders.yaml"], "version": 5, "resolver_id": "month"}
    month = {**SHOP["resolvers/r.yaml"], "id": "month", "version": 9, "is_default": False}
    shop.write({"datasets/orders.yaml": orders, "resolvers/month.yaml": month})
    shop.run("plan-goals")
    view = shop.run("report")
    found = snapshots(shop, view)
    assert found["orders"]["dataset_version"] == 5
    assert (found["orders"]["resolver"], found["orders"]["resolver_version"]) == ("month", 9)
    assert found["orders"]["resolver_source"] == "dataset"
    assert (found["targets"]["dataset_version"], found["targets"]["resolver"]) == (1, None)
    run = Workspace(shop.root).get_run(view.record.run_id)
    assert [each.to_json() for each in run.resolver_snapshots()] == list(found.values())


class TestAfterActivation:
    """An activated project keeps its operations; the datasets that it reads must exist and be active when it runs."""

    @pytest.fixture
    def report(self, shop: Shop) -> Shop:
        shop.write({"datasets/targets.yaml": {**_GOALS, "resolver_id": "r"}})
        shop.project("report", goals_joined(), output("out"))
        assert shop.run("report").snapshot.status.value == "COMPLETED"
        return shop

    def test_a_dataset_that_became_inactive_stops_the_run(self, report: Shop) -> None:
        report.write({"datasets/targets.yaml": {**_GOALS, "resolver_id": "r", "status": "inactive"}})
        assert failure(report.run("report")) == ("DatasetInactive", 'the dataset "targets" is inactive, not active')

    def test_a_dataset_that_was_deleted_stops_the_run(self, report: Shop) -> None:
        (report.root / "datasets" / "targets.yaml").unlink()
        assert failure(report.run("report")) == ("UnknownDataset", 'no dataset "targets"')

    def test_the_latest_version_with_another_resolver_is_read(self, report: Shop) -> None:
        strategy = {"type": "path", "datasource_id": "data", "path": "new_targets.csv", "format": "csv"}
        report.write(
            {
                "resolvers/new.yaml": {"id": "new", "version": 3, "rules": [{"name": "n", "strategy": strategy}]},
                "datasets/targets.yaml": {**_GOALS, "version": 2, "resolver_id": "new"},
                "data/new_targets.csv": "currency,goal,_period\nEUR,7,2026-01\nUSD,8,2026-01\n",
            }
        )
        view = report.run("report")
        assert goals(report) == {1: 7, 2: 8}
        found = snapshots(report, view)["targets"]
        assert (found["dataset_version"], found["resolver"], found["resolver_version"]) == (2, "new", 3)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"temporal_mode": "none"}, "has the temporal mode none, not period"),
            ({"columns": [_GOALS["main_table"]["columns"][0]]}, 'has no column "goal"'),
            (
                {"columns": [_GOALS["main_table"]["columns"][0], {"name": "goal", "type": "string"}]},
                'has "goal" as string, not integer',
            ),
        ],
    )
    def test_a_definition_that_no_longer_fits_the_plan_stops_the_run(
        self, report: Shop, change: dict[str, Any], said: str
    ) -> None:
        table = {**_GOALS["main_table"], **change}
        report.write({"datasets/targets.yaml": {**_GOALS, "resolver_id": "r", "version": 2, "main_table": table}})
        code, message = failure(report.run("report"))
        assert code == "DatasetConflict"
        assert said in message
