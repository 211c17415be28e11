"""`clew sessions`."""

import json
from datetime import timedelta
from pathlib import Path

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.runs.clock import utc_now
from tests.cli.conftest import Clew


def sign_in(sample: Path, name: str) -> str:
    """A session as the server begins it; the secret of its cookie."""
    return open_workspace(sample).tokens.begin_session(
        name=name, role=AccessRole.VIEWER, tenant="default", lifetime=timedelta(hours=1), now=utc_now(), token=None
    )


def test_sessions_are_listed_without_what_opens_them_and_end_at_once(sample: Path, clew: Clew) -> None:
    assert "nobody is signed in" in clew("sessions", cwd=sample).out
    secret, other = sign_in(sample, "Ada"), sign_in(sample, "Bob")
    listed = clew("sessions", "--json", cwd=sample).json["sessions"]
    assert sorted(each["name"] for each in listed) == ["Ada", "Bob"]
    assert secret not in json.dumps(listed)
    [ada] = [each["session_id"] for each in listed if each["name"] == "Ada"]
    assert f"session {ada} of Ada has ended" in clew("sessions", "end", ada, cwd=sample).out
    tokens = open_workspace(sample).tokens
    assert tokens.session(secret, utc_now()) is None
    assert tokens.session(other, utc_now()) is not None
    assert [each["name"] for each in clew("sessions", "end", "Bob", "--json", cwd=sample).json["ended"]] == ["Bob"]
    assert tokens.session(other, utc_now()) is None
    assert clew("verify", "--all", cwd=sample).code == 0


def test_what_is_not_open_cannot_end(sample: Path, clew: Clew) -> None:
    answer = clew("sessions", "end", "Ada", cwd=sample)
    assert answer.code == 3
    assert "NoSuchSession" in answer.err
    assert clew("sessions", "end", cwd=sample).code == 2


def test_only_admins_see_sessions(sample: Path, clew: Clew) -> None:
    path = sample / "clew.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("  dev:\n", "  dev:\n    local_role: operator\n", 1), encoding="utf-8")
    answer = clew("sessions", cwd=sample)
    assert answer.code != 0
    assert "Forbidden" in answer.err
