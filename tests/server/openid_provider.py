"""An OpenID Connect provider on loopback: the package oidc-provider-mock, over HTTP.

It verifies PKCE as well, which the package does not, and can be told to change the ID tokens that it issues.
"""

import base64
import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import httpx
import jwt
from werkzeug.serving import make_server

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses a module of Authlib that will be replaced
    import oidc_provider_mock

Key = Any
Forge = Callable[[dict[str, Any], Key], str]
"""Makes an ID token from the claims that are due and the provider's private key."""


@dataclass
class OpenIdProvider:
    """A running provider."""

    issuer: str = ""
    forge: Forge | None = None
    """Replaces the ID tokens."""
    in_userinfo_only: tuple[str, ...] = ()
    """Claims that are left out of ID tokens."""
    challenges: dict[str, str] = field(default_factory=dict)
    """The PKCE challenges of codes."""
    redeemed: list[Mapping[str, str]] = field(default_factory=list)
    """The forms that were sent to redeem codes."""

    def person(self, subject: str, **claims: object) -> None:
        """Have a person with claims."""
        answer = httpx.put(f"{self.issuer}/users/{subject}", json=claims)
        assert answer.status_code == 204, answer.text

    def client(self, redirect_uri: str) -> tuple[str, str]:
        """The id and the secret of a new client."""
        answer = httpx.post(f"{self.issuer}/oauth2/clients", json={"redirect_uris": [redirect_uri]})
        assert answer.status_code in {200, 201}, answer.text
        document = answer.json()
        return document["client_id"], document["client_secret"]

    def sign_in(self, address: str, subject: str) -> str:
        """Do what a person does at the provider; returns the address that it sends the browser to."""
        assert address.startswith(f"{self.issuer}/"), address
        assert httpx.get(address).status_code == 200
        answer = httpx.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def deny(self, address: str) -> str:
        """Refuse at the provider; returns the address that it sends the browser to."""
        state = parse_qs(urlsplit(address).query)["state"][0]
        return f"{httpx.post(address, data={'action': 'deny'}).headers['location']}&state={state}"

    def _before(self) -> flask.Response | None:
        if flask.request.path == "/oauth2/token":
            form = flask.request.form.to_dict()
            self.redeemed.append(form)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if self.challenges.pop(form.get("code", ""), None) != challenge:
                return flask.Response('{"error": "invalid_grant"}', 400, content_type="application/json")
        return None

    def _after(self, response: flask.Response) -> flask.Response:
        if flask.request.path == "/oauth2/authorize" and response.status_code == 302:
            assert flask.request.args["code_challenge_method"] == "S256"
            for code in parse_qs(urlsplit(response.headers["Location"]).query).get("code", []):
                self.challenges[code] = flask.request.args["code_challenge"]
        if flask.request.path == "/oauth2/token" and response.status_code == 200:
            document = json.loads(response.get_data())
            due = jwt.decode(document["id_token"], options={"verify_signature": False})
            key = flask.g.oidc_provider_mock_storage.jwk.get_private_key()
            for claim in self.in_userinfo_only:
                due.pop(claim, None)
            forge = self.forge or signed
            document["id_token"] = forge(due, key)
            response.set_data(json.dumps(document))
        return response


def signed(claims: dict[str, Any], key: Key) -> str:
    """An honest token."""
    return jwt.encode(claims, key, "RS256")


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """A provider on a free port, for clients that are registered."""
    provider = OpenIdProvider()
    app = oidc_provider_mock.app(require_client_registration=True, require_nonce=True)
    app.before_request(provider._before)
    app.after_request(provider._after)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="provider")
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
