"""The tiers of the tests: markers are documented, and no test can start more than its markers say."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.store.store_postgres import postgres_server
from tests.tiers import GUARD

ROOT = Path(__file__).parents[2]


def declared() -> dict[str, str]:
    """Our markers with what they mean."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^markers = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return dict(re.findall(r'"(\w+): (.*)"', block[1]))


def test_every_marker_is_explained_to_contributors() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE) == list(declared().items())


def test_make_check_leaves_out_every_marker() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"-m 'not ({' or '.join(declared())})'" in makefile


@pytest.mark.parametrize(("program", "marker"), [("java", "spark"), ("initdb", "postgres"), ("chromium", "browser")])
def test_a_program_that_is_started_without_its_marker_fails_the_test(
    program: str, marker: str, pytestconfig: pytest.Config
) -> None:
    assert subprocess.run([program], capture_output=True, check=False).returncode != 0
    with pytest.raises(pytest.fail.Exception, match=f"without the marker `{marker}`"):
        pytestconfig.stash[GUARD].complain()


def test_the_database_server_of_the_tests_refuses_a_test_without_the_marker(pytestconfig: pytest.Config) -> None:
    with pytest.raises(RuntimeError, match="without the marker `postgres`"), postgres_server():
        pass
    with pytest.raises(pytest.fail.Exception, match="without the marker `postgres`"):
        pytestconfig.stash[GUARD].complain()
