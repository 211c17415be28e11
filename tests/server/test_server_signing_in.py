"""Browsers: the one-time link, the login form, cookies, and requests that other sites make them send."""

import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from clew.auth.roles import AccessRole
from clew.auth.tokens import mint
from clew.events.ledger import EntryKind
from clew.runs.clock import utc_now
from clew.server.access.doorman import LoginAttempts, OneTimeLinks, csrf_of
from clew.server.access.signing_in import local_path
from clew.server.settings import ServerSettings
from tests.server.server_fixtures import ADDRESS, OpenSite, Served
from tests.server.server_processes import served_by_a_process

COOKIE = "clew-session-8765"
WISH = {"project": "group-report", "period": "2026-01", "request_id": "browser"}


def test_the_link_signs_in_once(served: Served) -> None:
    key = served.app.state.doorman.links.new_key()
    first = served.client()
    answer = first.get("/login/link", params={"key": key})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert first.get("/api/v1/me").json()["role"] == "admin"
    second = served.client()
    assert second.get("/login/link", params={"key": key}).status_code == 401
    assert second.get("/api/v1/me").status_code == 401


def test_a_link_expires() -> None:
    moment = 0.0
    links = OneTimeLinks(900, monotonic=lambda: moment)
    early, late = links.new_key(), links.new_key()
    moment = 899.0
    assert links.use(early)
    moment = 900.0
    assert not links.use(late)


def test_a_link_of_a_server_works_for_as_long_as_its_settings_say(serve_with: OpenSite) -> None:
    served = serve_with(ServerSettings(link_lifetime=timedelta(0)))
    answer = served.client().get("/login/link", params={"key": served.app.state.doorman.links.new_key()})
    assert answer.status_code == 401
    assert "expired" in answer.json()["error"]["message"]


def test_another_link_is_printed_on_request_and_only_then(ledger: Path) -> None:
    with served_by_a_process(ledger) as started:
        assert httpx.get(f"{started.url}/login/link", params={"key": started.key}).status_code == 303
        started.process.send_signal(signal.SIGUSR1)
        assert started.process.stdout is not None
        link = started.process.stdout.readline().removeprefix("open: ").strip()
        assert link.startswith(f"{started.url}/login/link?key=")
        assert httpx.get(link).status_code == 303
        assert httpx.get(link).status_code == 401
        started.process.terminate()
        assert started.process.stdout.read() == ""


def test_unknown_keys_and_requests_of_other_sites_lock_nobody_out(serve_with: OpenSite) -> None:
    served = serve_with(ServerSettings(most_failed_logins=1))
    client, token = served.client(), served.token("admin")
    unknown = mint(
        name="x",
        role=AccessRole.ADMIN,
        tenant_id="t",
        environment_id="e",
        created_by="x",
        lifetime=timedelta(1),
        now=utc_now(),
    ).text
    foreign = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    for _ in range(5):
        assert client.get("/login/link", params={"key": "x" * 43}, headers=foreign).status_code == 401
        assert client.post("/login", data={"token": "wrong"}, headers=foreign).status_code == 403
        assert client.post("/login", data={"token": unknown}).status_code == 401
    assert client.post("/login", data={"token": token}).status_code == 303


def test_the_cookie_is_out_of_reach_for_scripts_and_for_other_sites(shared: Served) -> None:
    key = shared.app.state.doorman.links.new_key()
    cookie = shared.client().get("/login/link", params={"key": key}).headers["set-cookie"]
    name, *attributes = [part.strip() for part in cookie.split(";")]
    assert name.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(attributes)
    assert "Secure" not in attributes


def test_over_tls_the_cookie_insists_on_it(serve_with: OpenSite) -> None:
    served = serve_with(ServerSettings(url="https://clew.example.com"))
    client = served.client()
    client.base_url = "https://clew.example.com"
    answer = client.get("/login/link", params={"key": served.app.state.doorman.links.new_key()})
    assert answer.headers["set-cookie"].startswith("__Host-clew-session=")
    assert "Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_browsers_are_not_told_to_use_tls_for_everything_on_this_machine() -> None:
    assert not ServerSettings(certificate="c.pem").is_always_secure
    assert ServerSettings(certificate="c.pem", host="10.0.0.1").is_always_secure
    assert ServerSettings(url="https://clew.example.com").is_always_secure
    assert not ServerSettings(url="http://clew.example.com").is_always_secure


def test_the_form_signs_in_with_a_token_and_out_again(served: Served) -> None:
    client = served.client()
    answer = client.post("/login", data={"token": f" {served.token('auditor')} ", "next": "/runs?status=FAILED"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs?status=FAILED")
    assert client.get("/api/v1/me").json()["role"] == "auditor"
    cookie = client.cookies[COOKIE]
    assert client.post("/logout").status_code == 403
    assert client.post("/logout", data={"csrf_token": csrf_of(cookie)}).status_code == 303
    client.cookies.set(COOKIE, cookie)
    assert client.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        ("/runs", "/runs"),
        ("/runs?x=1#y", "/runs?x=1#y"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("", "/"),
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(wanted: str, where: str) -> None:
    assert local_path(wanted) == where


def test_a_session_ends_with_its_token(served: Served) -> None:
    client = served.client()
    client.post("/login", data={"token": served.token("admin")})
    assert client.get("/api/v1/me").status_code == 200
    [token] = served.state.tokens.tokens()
    served.state.tokens.revoke(token.token_id, utc_now())
    assert client.get("/api/v1/me").status_code == 401


def test_a_session_ends_with_its_time(serve_with: OpenSite) -> None:
    client = serve_with(ServerSettings(session_lifetime=timedelta(seconds=-1))).browser()
    client.cookies.set(COOKIE, client.cookies.get(COOKIE) or "x")
    assert client.get("/api/v1/me").status_code == 401


def test_a_session_that_nobody_uses_ends_though_its_pages_fetch_by_themselves(
    serve_with: OpenSite,
) -> None:
    served = serve_with(ServerSettings(longest_idle=timedelta(minutes=30)))
    later = timedelta(0)
    served.app.state.doorman = replace(served.app.state.doorman, clock=lambda: utc_now() + later)
    client, script = served.browser(), {"Sec-Fetch-Dest": "empty"}
    for minutes, headers in ((25, {}), (50, script), (54, script)):
        later = timedelta(minutes=minutes)
        assert client.get("/api/v1/me", headers=headers).status_code == 200, minutes
    later = timedelta(minutes=56)
    assert client.get("/api/v1/me", headers=script).status_code == 401
    assert client.get("/api/v1/me").status_code == 401
    assert served.workspace.tokens.sessions() == ()
    assert served.state.ledger.last(EntryKind.SESSION_ENDED) is not None


def test_a_made_up_cookie_is_nobody(shared: Served) -> None:
    client = shared.client()
    client.cookies.set(COOKIE, "x" * 43)
    assert client.get("/api/v1/me").status_code == 401


def test_a_page_of_this_server_can_change_things(served: Served) -> None:
    client = served.browser()
    token = csrf_of(client.cookies[COOKIE])
    assert client.post("/api/v1/runs", json=WISH, headers={"X-CSRF-Token": token}).status_code == 202
    own = {"X-CSRF-Token": token, "Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/runs", json=WISH, headers=own).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "0" * 64},
        {"X-CSRF-Token": "good", "Origin": "https://evil.example"},
        {"X-CSRF-Token": "good", "Origin": "null"},
        {"X-CSRF-Token": "good", "Sec-Fetch-Site": "cross-site"},
        {"X-CSRF-Token": "good", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_request_that_another_site_made_changes_nothing(shared: Served, headers: dict[str, str]) -> None:
    client = shared.browser()
    if headers.get("X-CSRF-Token") == "good":
        headers = {**headers, "X-CSRF-Token": csrf_of(client.cookies[COOKIE])}
    answer = client.post("/api/v1/runs", json=WISH, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ForgedRequest")


def test_the_form_token_of_one_session_is_of_no_use_in_another(shared: Served) -> None:
    one, other = shared.browser(), shared.browser()
    headers = {"X-CSRF-Token": csrf_of(one.cookies[COOKIE])}
    assert other.post("/api/v1/runs", json=WISH, headers=headers).status_code == 403


def test_another_site_cannot_sign_somebody_in(shared: Served) -> None:
    form = {"token": shared.token("admin")}
    answer = shared.client().post("/login", data=form, headers={"Origin": "https://evil.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ForgedRequest")


def test_tokens_work_without_a_form_token(served: Served) -> None:
    headers = {"Origin": "https://ci.example", "Sec-Fetch-Site": "cross-site"}
    assert served.client("operator").post("/api/v1/runs", json=WISH, headers=headers).status_code == 202


def test_attempts_to_sign_in_are_limited(serve_with: OpenSite) -> None:
    served = serve_with(ServerSettings(most_failed_logins=3))
    client = served.client()
    for _ in range(3):
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
    refused = client.post("/login", data={"token": served.token("admin")})
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "TooManyAttempts")
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    key = served.app.state.doorman.links.new_key()
    assert client.get("/login/link", params={"key": key}).status_code == 429


def test_failed_attempts_are_forgotten_after_a_while_and_after_success() -> None:
    moment = 0.0
    attempts = LoginAttempts(most=2, window_s=60, monotonic=lambda: moment)
    attempts.failed("a")
    attempts.failed("a")
    attempts.require_patience("b")
    with pytest.raises(Exception, match="TooManyAttempts"):
        attempts.require_patience("a")
    moment = 61.0
    attempts.require_patience("a")
    attempts.failed("b")
    attempts.succeeded("b")
    attempts.failed("b")
    attempts.require_patience("b")
