"""Signing in at an OpenID Connect provider, which really runs, and at one that lies."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi.testclient import TestClient

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.server.access.doorman import csrf_of
from clew.server.application import create_app
from clew.server.serving import require_tokens
from clew.server.settings import ServerSettings
from tests.server.openid_provider import Forge, Key, OpenIdProvider, openid_provider, signed
from tests.server.server_fixtures import ADDRESS, OpenSite, Served
from tests.server.server_processes import served_by_a_process

pytestmark = [
    pytest.mark.filterwarnings("ignore::authlib.deprecate.AuthlibDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
COOKIE = "clew-session-8765"
CALLBACK = "/login/oidc/callback"
ROLES = "{finance-ops: operator, finance-audit: auditor, clew-admins: admin}"
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def running() -> Iterator[OpenIdProvider]:
    with pytest.MonkeyPatch.context() as patch, openid_provider() as provider:
        patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
        yield provider


@pytest.fixture
def provider(running: OpenIdProvider) -> Iterator[OpenIdProvider]:
    """The provider, with people; honest when the test begins."""
    running.forge, running.in_userinfo_only = None, ()
    running.person("s-ada", preferred_username="ada", groups=["clew-admins", "everyone"])
    running.person("s-bob", preferred_username="bob", groups=["finance-audit", "finance-ops"])
    running.person("s-eve", preferred_username="eve", groups=["everyone"])
    yield running
    running.forge = None


def settings_for(provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch, more: str = "", port: int = 8765) -> str:
    """The settings of an environment whose people sign in there."""
    client_id, secret = provider.client(f"http://127.0.0.1:{port}{CALLBACK}")
    monkeypatch.setenv("OIDC_SECRET", secret)
    reference = "client_secret_ref: secret://env/OIDC_SECRET"
    return f"    oidc: {{issuer: '{provider.issuer}', client_id: {client_id}, {reference}, roles: {ROLES}{more}}}\n"


@pytest.fixture
def site(serve_with: OpenSite, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch) -> Served:
    return serve_with(extra=settings_for(provider, monkeypatch))


def begin(client: TestClient, wanted: str = "/") -> str:
    """Follow the link of the sign-in page; returns the address at the provider."""
    answer = client.get("/login/oidc", params={"next": wanted}, headers=BROWSER)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def sign_in(client: TestClient, provider: OpenIdProvider, subject: str, wanted: str = "/") -> httpx.Response:
    """Sign in with a browser; returns the last answer of the server."""
    back = provider.sign_in(begin(client, wanted), subject)
    assert back.startswith(f"{ADDRESS}{CALLBACK}?")
    return client.get(back, headers=BROWSER)  # type: ignore[return-value]  # of httpx2, which is the same in what is used


def refusals(site: Served) -> list[tuple[str, str]]:
    """Actor and detail of the sign-ins that are on record as refused, the newest first."""
    found = site.client("admin").get("/api/v1/audit", params={"subject": "sign-in"}).json()["records"]
    return [(each["actor"], each["detail"]) for each in found if "could not" in each["detail"]]


def test_a_person_signs_in_over_http_and_the_session_is_listed_and_ended(
    ledger: Path, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = ledger / "clew.yaml"
    extra = settings_for(provider, monkeypatch, port=port)
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("    mode: dev\n", f"    mode: dev\n{extra}", 1), encoding="utf-8")
    with served_by_a_process(ledger, "--port", str(port)) as server, httpx.Client(base_url=server.url) as browser:
        page = browser.get("/login", params={"next": "/runs?status=FAILED"}, headers=BROWSER)
        assert 'href="/login/oidc?next=%2Fruns%3Fstatus%3DFAILED"' in page.text
        assert 'name="token"' in page.text
        sent = browser.get("/login/oidc?next=%2Fruns%3Fstatus%3DFAILED")
        answer = browser.get(provider.sign_in(sent.headers["location"], "s-bob"))
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs?status=FAILED")
        assert browser.get("/api/v1/me").json()["name"] == "bob"
        assert browser.get("/api/v1/me").json()["role"] == "operator"
        assert "Max-Age=43200" in next(each for each in answer.headers.get_list("set-cookie") if "session" in each)
        assert "client_secret" not in provider.redeemed[-1]
        capsys.readouterr()
        assert command(["sessions", "--workspace", str(ledger)]) == 0
        assert "bob" in capsys.readouterr().out
        assert command(["sessions", "end", "bob", "--workspace", str(ledger)]) == 0
        assert browser.get("/api/v1/me").status_code == 401
    with open_workspace(ledger) as workspace:
        details = [each.detail for each in workspace.operations.access_records(limit=10)]
        assert f"signed in at {provider.issuer} as s-bob" in details
        assert "ended the session of bob" in details
        assert workspace.verify().is_intact


def test_the_first_group_that_is_listed_decides(site: Served, provider: OpenIdProvider) -> None:
    client = site.client()
    assert sign_in(client, provider, "s-bob").status_code == 303
    assert client.get("/api/v1/me").json()["role"] == "operator"


def test_a_role_changes_at_the_next_sign_in(site: Served, provider: OpenIdProvider) -> None:
    client = site.client()
    sign_in(client, provider, "s-bob")
    provider.person("s-bob", preferred_username="bob", groups=["finance-audit"])
    assert client.get("/api/v1/me").json()["role"] == "operator"
    sign_in(client, provider, "s-bob")
    assert client.get("/api/v1/me").json()["role"] == "auditor"
    provider.person("s-bob", preferred_username="bob", groups=[])
    assert sign_in(site.client(), provider, "s-bob").status_code == 403


def test_who_has_no_group_with_a_role_is_told_so_on_a_page_and_is_on_record(
    site: Served, provider: OpenIdProvider
) -> None:
    client = site.client()
    answer = sign_in(client, provider, "s-eve")
    assert answer.status_code == 403
    assert "eve is known to" in answer.text
    assert "ask an admin" in answer.text
    assert COOKIE not in client.cookies
    [(actor, detail)] = refusals(site)
    assert (actor, "none of the groups" in detail) == ("eve", True)


def test_signing_out_ends_the_session_and_is_on_record(site: Served, provider: OpenIdProvider) -> None:
    client = site.client()
    sign_in(client, provider, "s-ada")
    cookie = client.cookies[COOKIE]
    left = client.post("/logout", data={"csrf_token": csrf_of(cookie)}).headers["location"]
    assert left == "/login?left=1"
    page = client.get(left, headers=BROWSER).text
    assert "You have signed out here" in page
    assert "You have signed out here" not in client.get("/login", headers=BROWSER).text
    assert 'href="/logout/oidc"' in page
    client.cookies.set(COOKIE, cookie)
    assert client.get("/api/v1/me").status_code == 401
    records = site.client("admin").get("/api/v1/audit", params={"subject": "sign-in", "actor": "ada"}).json()["records"]
    assert [each["detail"] for each in records] == ["signed out", f"signed in at {provider.issuer} as s-ada"]


def test_people_are_led_to_where_they_sign_out_of_the_provider(site: Served, provider: OpenIdProvider) -> None:
    there = site.client().get("/logout/oidc", headers=BROWSER).headers["location"]
    where, _, asked = there.partition("?")
    said = httpx.get(f"{provider.issuer}/.well-known/openid-configuration").json()
    assert where == said["end_session_endpoint"]
    assert parse_qs(asked)["post_logout_redirect_uri"] == [f"{ADDRESS}/login"]
    assert set(parse_qs(asked)) == {"client_id", "post_logout_redirect_uri"}
    assert f"{ADDRESS}/login" in httpx.get(there).text


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", "/" + "x" * 4000])
def test_nobody_is_sent_elsewhere(site: Served, provider: OpenIdProvider, wanted: str) -> None:
    assert sign_in(site.client(), provider, "s-ada", wanted).headers["location"] == "/"


def test_an_answer_that_the_browser_has_not_asked_for_signs_nobody_in(site: Served, provider: OpenIdProvider) -> None:
    """Another site sends a victim the answer that was meant for the attacker."""
    attacker, victim, third = site.client(), site.client(), site.client()
    back = provider.sign_in(begin(attacker), "s-bob")
    assert victim.get(back, headers=BROWSER).status_code == 401
    begin(third)
    answer = third.get(back, headers=BROWSER)
    assert (answer.status_code, "not begun in this browser" in answer.text) == (401, True)
    assert COOKIE not in victim.cookies
    assert COOKIE not in third.cookies
    assert all(actor == "unknown" for actor, _ in refusals(site))
    assert attacker.get(back).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "e30=", "bnVsbA==", "eyJzdGF0ZSI6IDF9", "\x7f"])
def test_a_cookie_that_cannot_be_read_is_none(site: Served, cookie: str) -> None:
    client = site.client()
    client.cookies.set("clew-sign-in-8765", cookie)
    answer = client.get(CALLBACK, params={"state": "x", "code": "y"}, headers=BROWSER)
    assert answer.status_code == 401


def other_key() -> Key:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def changed(**claims: object) -> Forge:
    return lambda due, key: signed({**due, **claims}, key)


def without(claim: str) -> Forge:
    return lambda due, key: signed({name: value for name, value in due.items() if name != claim}, key)


def symmetric(due: dict[str, Any], key: Key) -> str:
    """Signed with what everyone knows: the trick that turns a public key into a shared secret."""
    return jwt.encode(due, "the public key, or the secret of the client", "HS256")


FORGERIES: dict[str, tuple[Forge, str]] = {
    "another nonce": (changed(nonce="x" * 43), "not of this sign-in"),
    "no nonce": (without("nonce"), "not of this sign-in"),
    "another client": (changed(aud="another-client"), "for another application"),
    "another client too": (changed(azp="another-client"), "for another application"),
    "another provider": (changed(iss="https://login.example.com"), "of another provider"),
    "expired": (changed(exp=int(time.time()) - 120, iat=int(time.time()) - 7200), "has expired"),
    "no expiry": (without("exp"), "lacks the claim"),
    "of the future": (changed(nbf=int(time.time()) + 86_400), "not valid yet"),
    "another key": (lambda due, _key: signed(due, other_key()), "not signed by its key"),
    "no signature": (lambda due, _key: jwt.encode(due, None, "none"), "not signed in a way"),  # type: ignore[arg-type]
    "a shared secret": (symmetric, "not signed in a way"),
    "nonsense": (lambda _due, _key: "x.y.z", "cannot be read"),
    "no name": (without("preferred_username"), "does not say your name"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyJWT warns of short secrets, of which one is forged here
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_token_that_proves_nothing_signs_nobody_in(site: Served, provider: OpenIdProvider, forgery: str) -> None:
    provider.forge, words = FORGERIES[forgery]
    if forgery == "no name":
        provider.person("s-ada", groups=["clew-admins"])
    client = site.client()
    answer = sign_in(client, provider, "s-ada")
    assert (answer.status_code, COOKIE in client.cookies) == (401, False)
    assert words in answer.text
    assert "Sign in with single sign-on" in answer.text
    [(_, detail)] = refusals(site)
    assert words in detail
    provider.forge = None
    provider.person("s-ada", preferred_username="ada", groups=["clew-admins"])
    assert sign_in(client, provider, "s-ada").status_code == 303


def test_a_code_cannot_be_redeemed_by_who_has_not_asked_for_it(site: Served, provider: OpenIdProvider) -> None:
    """The provider compares the verifier with the challenge, so both must be right."""
    client = site.client()
    assert sign_in(client, provider, "s-ada").status_code == 303
    back = provider.sign_in(begin(client), "s-ada")
    [code] = parse_qs(urlsplit(back).query)["code"]
    provider.challenges[code] = "that of another attempt"
    answer = client.get(back, headers=BROWSER)
    assert (answer.status_code, "expired or was used before" in answer.text) == (401, True)


def test_a_refusal_of_the_provider_is_told(site: Served, provider: OpenIdProvider) -> None:
    client = site.client()
    answer = client.get(provider.deny(begin(client)), headers=BROWSER)
    assert (answer.status_code, "access_denied" in answer.text) == (401, True)


def test_an_answer_in_the_name_of_another_provider_is_refused(site: Served, provider: OpenIdProvider) -> None:
    client = site.client()
    back = provider.sign_in(begin(client), "s-ada")
    answer = client.get(f"{back}&iss=https%3A%2F%2Fevil.example", headers=BROWSER)
    assert (answer.status_code, "another provider" in answer.text) == (401, True)


def test_a_provider_that_is_down_is_one_clear_page(serve_with: OpenSite, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    oidc = f"{{issuer: 'http://127.0.0.1:{port}', client_id: clew, roles: {ROLES}}}"
    client = serve_with(extra=f"    oidc: {oidc}\n").client()
    answer = client.get("/login/oidc", headers=BROWSER)
    assert answer.status_code == 503
    assert "cannot be used to sign in: it does not respond" in answer.text
    assert 'name="token"' in answer.text
    assert "Traceback" not in answer.text
    assert client.get("/login", headers=BROWSER).status_code == 200


def test_a_provider_that_calls_itself_otherwise_is_not_used(
    serve_with: OpenSite, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = settings_for(provider, monkeypatch).replace(provider.issuer, f"{provider.issuer}/")
    answer = serve_with(extra=extra).client().get("/login/oidc", headers=BROWSER)
    assert (answer.status_code, "it calls itself" in answer.text) == (503, True)


def test_groups_may_be_in_the_userinfo_and_deep_in_a_claim(
    serve_with: OpenSite, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve_with(extra=settings_for(provider, monkeypatch, ", groups_claim: realm_access.roles"))
    provider.person("s-kim", preferred_username="kim", realm_access={"roles": ["finance-audit"]})
    provider.in_userinfo_only = ("realm_access",)
    client = site.client()
    assert sign_in(client, provider, "s-kim").status_code == 303
    assert client.get("/api/v1/me").json()["role"] == "auditor"


def test_an_address_that_is_not_verified_is_no_name(
    serve_with: OpenSite, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve_with(extra=settings_for(provider, monkeypatch, ", name_claim: email"))
    provider.person("s-kim", email="ada@example.com", email_verified=False, groups=["clew-admins"])
    answer = sign_in(site.client(), provider, "s-kim")
    assert (answer.status_code, "has not been verified" in answer.text) == (401, True)


def test_without_a_provider_there_is_no_such_way(shared: Served) -> None:
    assert "single sign-on" not in shared.client().get("/login", headers=BROWSER).text
    assert shared.client().get("/login/oidc").status_code == 404


def test_a_person_is_one_person_by_token_and_by_provider(
    serve_with: OpenSite, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who requests a run with a token cannot approve it as the person that the provider knows, in any spelling."""
    more = "    approval: {required: true, by: another_person, roles: [admin]}\n"
    names = ", name_claim: email, names: {ada@example.com: ada}"
    served = serve_with(extra=settings_for(provider, monkeypatch, names))
    folder = served.workspace.root
    settings = folder / "clew.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("    mode: dev\n", f"    mode: dev\n{more}", 1), encoding="utf-8")
    provider.person("s-ada", email="ada@example.com", groups=["clew-admins"])
    provider.person("s-kim", email="kim@example.com", groups=["clew-admins"])
    with open_workspace(folder).following_files() as workspace:
        site = Served(workspace, create_app(workspace), served.run_id, served.engine)
        token = workspace.tokens.create("Ada", role=AccessRole.ADMIN, days=1)
        program = site.client()
        program.headers["Authorization"] = f"Bearer {token.text}"
        wish = {"project": "gl-close", "period": "2026-02", "request_id": "four-eyes"}
        run_id = program.post("/api/v1/runs", json=wish).json()["run_id"]
        answers = []
        for subject in ("s-ada", "s-kim"):
            browser = site.client()
            sign_in(browser, provider, subject)
            headers = {"X-CSRF-Token": csrf_of(browser.cookies[COOKIE])}
            answers.append(browser.post(f"/api/v1/runs/{run_id}/signals", json={"signal": "APPROVE"}, headers=headers))
        assert [answer.status_code for answer in answers] == [409, 200]
        assert "Ada requested the run" in answers[0].text


def test_a_server_that_others_reach_needs_tls_for_it(site: Served) -> None:
    open_line = ServerSettings(host="0.0.0.0", url="http://clew.example.com")
    with pytest.raises(UserError, match="UnsafeSignIn"):
        require_tokens(site.workspace, open_line)
    require_tokens(site.workspace, ServerSettings(host="0.0.0.0", url="https://clew.example.com"))
    with pytest.raises(UserError, match="UnsafeSignIn"):
        require_tokens(site.workspace, ServerSettings(url="http://clew.example.com"))
