"""Where captures and emissions lie."""

import stat
from pathlib import Path

from clew.captures.manifests import Places
from clew.runs.environment import RunEnvironment
from tests.captures.capture_plans import environment_of

SINKS = {"shelf": {"type": "capture_store", "path": "out/shelf"}}


def places(root: Path) -> Places:
    return Places(RunEnvironment("dev", environment_of(sinks=SINKS), root))


def test_captures_lie_in_the_storage_or_in_a_store_of_the_environment(tmp_path: Path) -> None:
    here = places(tmp_path)
    assert here.captures(None) == tmp_path / ".clew" / "storage" / "captures"
    assert here.captures("shelf", project_version="3") == tmp_path / "out" / "shelf"


def test_what_a_draft_sends_stays_in_the_sandbox(tmp_path: Path) -> None:
    here = places(tmp_path)
    assert here.sink("shelf", "draft") == tmp_path / ".clew" / "sandbox" / "sinks" / "shelf"
    assert here.captures("shelf", project_version="draft").is_relative_to(tmp_path / ".clew" / "sandbox")


def test_a_path_is_told_from_the_workspace_on_and_found_again(tmp_path: Path) -> None:
    here = places(tmp_path)
    folder = here.captures(None) / "cap_1" / "1"
    assert here.shown(folder) == ".clew/storage/captures/cap_1/1"
    assert here.path(here.shown(folder)) == folder


def test_the_salt_of_masks_is_made_once_and_for_nobody_else_to_read(tmp_path: Path) -> None:
    salt = places(tmp_path).salt()
    assert places(tmp_path).salt() == salt
    assert len(salt) == 32
    path = tmp_path / ".clew" / "storage" / "captures" / "salt"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
