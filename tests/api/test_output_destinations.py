"""Where outputs of a run go: what replacing a folder would take away is found before anything is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.engine.output.destinations import Destinations
from clew.engine.output.places import LocalOutput
from clew.plan.operations import OutputStep
from clew.runs.environment import RunEnvironment

FILES: dict[str, Any] = {
    "clew.yaml": {"name": "w"},
    "calendars/c.yaml": {"id": "c", "generate": {"first_year": 2026, "last_year": 2026}},
    "datasources/f.yaml": {"id": "f", "type": "files", "options": {"root": "reports"}},
    "resolvers/r.yaml": {
        "id": "r",
        "is_default": True,
        "rules": [{"name": "a", "strategy": {"type": "path", "datasource_id": "f", "path": "x.csv"}}],
    },
    "datasets/d.yaml": {"id": "d", "main_table": {"name": "t", "columns": [{"name": "id", "type": "integer"}]}},
}
Place = Callable[..., LocalOutput | None]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    def target(path: str, **arguments: Any) -> LocalOutput | None:
        destination = {"datasource_id": "f", "path": path, "format": arguments.pop("format", "parquet")}
        output = {"seq": 1, "name": "o", "type": "output", "arguments": {"destination": destination, **arguments}}
        project = {"id": "p", "status": "active", "input_dataset": "d", "operations": [output]}
        for name, content in {**FILES, "projects/p.yaml": project}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        workspace = Workspace(tmp_path)
        plan, definitions = workspace.plan("p"), workspace.loaded.workspace
        period = definitions.periods.period("2026-01")
        assert period is not None
        [step] = plan.steps
        assert isinstance(step, OutputStep)
        storage_of = RunEnvironment("dev", definitions.settings.environments["dev"], tmp_path).storage_of
        found = Destinations(definitions, period, "run", plan, None, lambda _: "", storage_of).place_of(step, 1)
        assert found is None or isinstance(found, LocalOutput)
        return found

    return target


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")


def test_a_folder_with_files_that_no_output_wrote_is_not_replaced(place: Place, tmp_path: Path) -> None:
    put(tmp_path / "reports/closed/2026-01/part-00000-a.snappy.parquet")
    put(tmp_path / "reports/closed/notes/signed.pdf")
    with pytest.raises(UserError) as refused:
        place("closed")
    assert refused.value.code == "OutputConflict"
    assert "would delete notes/signed.pdf, which no output wrote" in str(refused.value)
    assert refused.value.diagnostics[0].span is not None


def test_what_an_output_wrote_before_is_replaced(place: Place, tmp_path: Path) -> None:
    for name in ("part-00000-a.snappy.parquet", "_SUCCESS", ".part-00000-a.snappy.parquet.crc"):
        put(tmp_path / "reports/closed" / name)
    target = place("closed")
    assert target is not None
    assert target.path == tmp_path / "reports/closed"


@pytest.mark.parametrize("more", [{"mode": "append"}, {"format": "delta"}])
def test_an_output_that_takes_nothing_away_may_have_neighbours(place: Place, tmp_path: Path, more: Any) -> None:
    put(tmp_path / "reports/closed/signed.pdf")
    assert place("closed", **more) is not None


def test_a_link_does_not_lead_an_output_over_the_definitions(place: Place, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/closed").symlink_to(tmp_path / "projects")
    with pytest.raises(UserError) as refused:
        place("closed")
    assert refused.value.code == "OutputConflict"
