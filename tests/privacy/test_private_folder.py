"""`.clew` is for its owner: new folders are made so, and open ones are closed when they are used."""

import json
import logging
import os
import stat
from pathlib import Path

import pytest

import clew
from clew.cli.main import run as run_command
from clew.storage.private_folders import make_private
from tests.privacy.clinic import Clinic, copied, write_clinic

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    """What other users of the machine could reach: they cannot go through a folder that is closed."""
    if not mode_of(folder) & 0o077:
        return []
    found = [str(folder)]
    for path in folder.iterdir():
        found += open_to_others(path) if path.is_dir() else [str(path)] if mode_of(path) & 0o077 else []
    return found


def test_a_new_workspace_keeps_its_state_for_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)  # the worst that a machine may be set to
    try:
        write_clinic(tmp_path / "clinic")
        clew.open(tmp_path / "clinic").runs()
    finally:
        os.umask(before)
    folder = tmp_path / "clinic" / ".clew"
    assert mode_of(folder) == 0o700
    assert mode_of(folder / "state.db") == 0o600
    assert open_to_others(folder) == []


def test_a_folder_that_was_open_is_closed_with_everything_in_it(clinic: Clinic, tmp_path: Path) -> None:
    folder = copied(clinic.folder, tmp_path / "copy") / ".clew"
    (folder / "secrets").mkdir(exist_ok=True)
    (folder / "secrets" / "KEY").write_text("word", encoding="utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    clew.open(folder.parent).runs()
    assert {mode_of(path) for path in folder.rglob("*") if path.is_dir()} | {mode_of(folder)} == {0o700}
    assert {mode_of(path) for path in folder.rglob("*") if path.is_file()} == {0o600}


def test_a_secret_that_was_left_open_is_closed_by_the_next_command(clinic: Clinic, tmp_path: Path) -> None:
    folder = copied(clinic.folder, tmp_path / "copy") / ".clew"
    make_private(folder)
    (folder / "secrets").mkdir(mode=0o755)
    (folder / "secrets" / "KEY").write_text("word", encoding="utf-8")
    (folder / "secrets" / "KEY").chmod(0o644)
    assert run_command(["runs", "-w", str(folder.parent)]) == 0
    assert (mode_of(folder / "secrets"), mode_of(folder / "secrets" / "KEY")) == (0o700, 0o600)


def test_a_folder_of_someone_else_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Only the owner of a file may change its mode."""
    if os.geteuid() == 0:
        pytest.skip("root may change the mode of every file")
    with caplog.at_level(logging.WARNING, "clew"):
        make_private(Path("/usr"))
    assert "/usr" in caplog.text
    assert "chmod" in caplog.text


UNSAFE = ["..", ".", ".hidden", "closed.", "x.staging", "a" * 201]


@pytest.mark.parametrize("name", [*UNSAFE, "a/b", "../x"])
def test_a_name_that_is_no_folder_cannot_be_registered(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shop = write_clinic(tmp_path / "clinic")
    project = json.loads((shop.root / "projects/report.yaml").read_text(encoding="utf-8"))
    project["operations"][-1]["arguments"]["register_as_dataset"] = name
    shop.write({"projects/report.yaml": json.dumps(project, indent=1)})
    assert run_command(["check", "--json", "-w", str(shop.root)]) != 0
    found = json.loads(capfd.readouterr().out)["diagnostics"]
    [problem] = [each for each in found if "cannot be registered" in each["message"]]
    assert (problem["code"], problem["file"]) == ("InvalidValue", "projects/report.yaml")
    assert problem["line"] > 1
    assert problem["hint"]


@pytest.mark.parametrize("name", ["closed", "closed-2026.v1", "_closed", "Closed_1"])
def test_other_names_can_be_registered(tmp_path: Path, name: str) -> None:
    shop = write_clinic(tmp_path / "clinic")
    project = json.loads((shop.root / "projects/report.yaml").read_text(encoding="utf-8"))
    project["operations"][-1]["arguments"]["register_as_dataset"] = name
    shop.write({"projects/report.yaml": project})
    assert list(clew.open(shop.root).check("report").diagnostics) == []


@pytest.mark.parametrize("name", ["..", "../up", "a/b"])
def test_sinks_and_periods_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    shop = write_clinic(tmp_path / "clinic", {"sinks": {name: {"type": "capture_store", "path": "out"}}})
    period = {"identifier": name, "level": "month", "start_date": "2026-01-01", "end_date": "2026-01-31"}
    shop.write({"calendars/c.yaml": {"id": "c", "levels": ["month"], "periods": [period]}})
    messages = [each.message for each in clew.open(shop.root).check().diagnostics if each.code == "InvalidValue"]
    assert [each for each in messages if "sink" in each]
    assert [each for each in messages if "identify a period" in each]


def test_formulas_are_escaped_in_csv_only(tmp_path: Path) -> None:
    """The key is validated where it is written; tests/engine/test_privacy_on_spark.py writes files with it."""

    def check(**destination: object) -> list[tuple[str, str]]:
        shop = write_clinic(tmp_path / "clinic")
        project = json.loads((shop.root / "projects/report.yaml").read_text(encoding="utf-8"))
        project["operations"][-1]["arguments"]["destination"] = destination
        shop.write({"projects/report.yaml": project})
        found = clew.open(shop.root).check("report").diagnostics
        return [(each.code, each.message) for each in found]

    assert check(datasource_id="reports", path="out.csv", escape_formulas=True) == []
    assert check(location={"path": "out", "format": "csv", "escape_formulas": True}) == []
    [(code, message)] = check(datasource_id="reports", path="out.parquet", escape_formulas=True)
    assert (code, "csv only" in message) == ("InvalidValue", True)
    [(code, message)] = check(datasource_id="reports", path="out.csv", options={"escape_formulas": True})
    assert (code, "not an option" in message) == ("InvalidValue", True)
