"""`clew token`."""

from pathlib import Path

from clew.api.workspace import open_workspace
from tests.cli.conftest import Clew


def test_a_token_is_shown_once_and_only_its_digest_is_kept(sample: Path, clew: Clew) -> None:
    made = clew("token", "create", "Ada", "--role", "auditor", "--days", "7", cwd=sample)
    assert made.code == 0
    head, text, note = made.out.splitlines()
    assert head.endswith("for Ada, auditor of tenant default, 7 days:")
    assert text.startswith("clew_")
    assert note == "copy it now: it is not shown again"
    listed = clew("token", "list", cwd=sample)
    assert text not in listed.out
    assert "Ada" in listed.out
    assert "valid until" in listed.out
    document = clew("token", "--json", cwd=sample).json["tokens"][0]
    assert (document["name"], document["role"], document["revoked_at"]) == ("Ada", "auditor", None)
    assert "secret_digest" not in document


def test_a_revoked_token_is_listed_as_such(sample: Path, clew: Clew) -> None:
    token = clew("token", "create", "ci", "--role", "operator", "--tenant", "other", "--json", cwd=sample).json
    assert token["token"].startswith(f"clew_{token['token_id']}_")
    assert token["tenant"] == "other"
    assert clew("token", "revoke", token["token_id"], cwd=sample).code == 0
    assert "revoked" in clew("token", cwd=sample).out


def test_tokens_belong_to_an_environment(sample: Path, clew: Clew) -> None:
    clew("token", "create", "Ada", cwd=sample)
    assert "no tokens" in clew("token", "--env", "prod", cwd=sample).out
    assert open_workspace(sample).environment_name == "dev"


def test_wrong_usage_is_told(sample: Path, clew: Clew) -> None:
    assert "create needs a name" in clew("token", "create", cwd=sample).err
    role = clew("token", "create", "Ada", "--role", "audtor", cwd=sample)
    assert (role.code, 'did you mean "auditor"?' in role.err) == (2, True)
    assert clew("token", "destroy", cwd=sample).code == 2
    assert clew("token", "revoke", "nope", cwd=sample).code == 3
