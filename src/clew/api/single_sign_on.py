"""Single sign-on: asks the OpenID Connect provider of an environment who someone is.

The authorization code flow with PKCE. What the provider says about itself and its keys is kept for a while; a key that
is not among them is looked up once more.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from clew.api.opened_environment import EnvironmentAccess
from clew.auth.id_tokens import names_unknown_key, refused, verified_claims
from clew.auth.openid import Claims, OpenIdAttempt, SignedInPerson, has_claims, person_of
from clew.bus.http import NotTaken, fetch
from clew.deferred import dataclass
from clew.definitions.openid_settings import OpenIdSettings, is_safe_address
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.server import NO_SUCH_ADDRESS, PROVIDER_UNUSABLE
from clew.runs.secrets import SecretRef

_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S = 10.0
_KEPT_S = 600.0
_LONGEST_PROBLEM = 200


@dataclass(frozen=True, slots=True)
class _Provider:
    """What a provider says about itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    """Where people sign out of the provider itself; not all have it."""
    takes_basic: bool
    """Whether it takes the secret of a client in a header; else in the form."""
    keys_uri: str
    keys: Sequence[Mapping[str, Any]]
    read_at: float


class SingleSignOn:
    """Signs people in at the provider of an environment. Used by many threads at once."""

    def __init__(self, access: EnvironmentAccess, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._monotonic = monotonic
        self._known: _Provider | None = None
        self._lock = threading.Lock()

    @property
    def settings(self) -> OpenIdSettings | None:
        """The settings of the environment; None where people sign in with tokens only."""
        return self._access.environment.settings.oidc

    def begin(self, redirect_uri: str) -> tuple[OpenIdAttempt, str]:
        """A new attempt, and the address at the provider to send the browser to."""
        settings = self._required()
        attempt, endpoint = OpenIdAttempt.new(), self._provider(settings).authorization_endpoint
        mark = "&" if "?" in endpoint else "?"
        return attempt, f"{endpoint}{mark}{attempt.parameters(settings, redirect_uri)}"

    def finish(self, attempt: OpenIdAttempt, code: str, redirect_uri: str) -> SignedInPerson:
        """The person who has signed in. Raises UserError if the provider proves nothing, or they have no role."""
        settings = self._required()
        provider = self._provider(settings)
        answer = self._redeemed(provider, settings, attempt, code, redirect_uri)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise refused(settings.issuer, "it sent no ID token")
        if names_unknown_key(token, provider.keys):
            provider = self._provider(settings, anew=True)
        claims = verified_claims(
            token, issuer=settings.issuer, client_id=settings.client_id, nonce=attempt.nonce, keys=provider.keys
        )
        return person_of(self._completed(provider, settings, claims, answer.get("access_token")), settings)

    def end_address(self, back: str) -> str | None:
        """The address at which people sign out of the provider, which then offers to lead back; None if it has none.

        No ID token is sent along, since none is kept: the provider asks people whether they want to sign out.
        """
        settings = self._required()
        endpoint = self._provider(settings).end_session_endpoint
        if endpoint is None:
            return None
        mark = "&" if "?" in endpoint else "?"
        asked = urlencode({"client_id": settings.client_id, "post_logout_redirect_uri": back})
        return f"{endpoint}{mark}{asked}"

    def _required(self) -> OpenIdSettings:
        settings = self.settings
        if settings is None:
            raise UserError(NO_SUCH_ADDRESS.anywhere(path="this address"))
        return settings

    def _provider(self, settings: OpenIdSettings, *, anew: bool = False) -> _Provider:
        with self._lock:
            known = self._known
        now = self._monotonic()
        if known is None or anew or known.issuer != settings.issuer or now - known.read_at > _KEPT_S:
            known = self._discovered(settings.issuer, now)
            with self._lock:
                self._known = known
        return known

    def _discovered(self, issuer: str, now: float) -> _Provider:
        said = _document(issuer, "GET", issuer.rstrip("/") + _DISCOVERY)
        if said.get("issuer") != issuer:
            raise _unusable(issuer, f'it calls itself "{str(said.get("issuer"))[:_LONGEST_PROBLEM]}"')
        methods = said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        keys_uri = _endpoint(issuer, said, "jwks_uri")
        keys = _document(issuer, "GET", keys_uri).get("keys")
        if not isinstance(keys, list):
            raise _unusable(issuer, "it does not publish its keys")
        return _Provider(
            issuer=issuer,
            authorization_endpoint=_endpoint(issuer, said, "authorization_endpoint"),
            token_endpoint=_endpoint(issuer, said, "token_endpoint"),
            userinfo_endpoint=_endpoint(issuer, said, "userinfo_endpoint") if "userinfo_endpoint" in said else None,
            end_session_endpoint=(
                _endpoint(issuer, said, "end_session_endpoint") if "end_session_endpoint" in said else None
            ),
            takes_basic=not isinstance(methods, list)
            or "client_secret_basic" in methods
            or "client_secret_post" not in methods,
            keys_uri=keys_uri,
            keys=tuple(key for key in keys if isinstance(key, dict)),
            read_at=now,
        )

    def _redeemed(
        self, provider: _Provider, settings: OpenIdSettings, attempt: OpenIdAttempt, code: str, redirect_uri: str
    ) -> Mapping[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        basic: tuple[str, str] | None = None
        secret = self._secret(settings.client_secret_ref)
        if secret is not None and provider.takes_basic:
            basic = (quote(settings.client_id, safe=""), quote(secret, safe=""))  # as RFC 6749, 2.3.1 has it
        else:
            form |= {"client_id": settings.client_id} | ({"client_secret": secret} if secret is not None else {})
        return _document(settings.issuer, "POST", provider.token_endpoint, form=form, basic=basic)

    def _secret(self, reference: str | None) -> str | None:
        if reference is None:
            return None
        with self._access.opened() as at:
            return at.state.secrets.resolve([SecretRef.parse(reference)], at.environment.scope)[reference]

    def _completed(self, provider: _Provider, settings: OpenIdSettings, claims: Claims, access_token: object) -> Claims:
        """The claims, with what only the userinfo has: many providers put groups there. It is of the same person."""
        if has_claims(claims, settings) or provider.userinfo_endpoint is None or not isinstance(access_token, str):
            return claims
        more = _document(settings.issuer, "GET", provider.userinfo_endpoint, bearer=access_token)
        if more.get("sub") != claims["sub"]:
            raise refused(settings.issuer, "its userinfo is about someone else")
        return {**more, **claims}


def _endpoint(issuer: str, said: Mapping[str, Any], name: str) -> str:
    url = said.get(name)
    if not isinstance(url, str) or not is_safe_address(url):
        raise _unusable(issuer, f"its {name} is missing or not https")
    return url


def _document(
    issuer: str,
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
    bearer: str | None = None,
) -> Mapping[str, Any]:
    """A JSON object of the provider. Raises TransientFailure ProviderUnusable where there is none."""
    headers = {"Accept": "application/json"}
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer}"
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    body = urlencode(form).encode() if form is not None else None
    try:
        status, answer = fetch(method, url, body, headers, basic=basic, timeout_s=_TIMEOUT_S)
    except NotTaken as error:
        raise _unusable(issuer, f"it does not respond: {error}") from error
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    if status != 200:
        raise _failed(issuer, status, document)
    if not isinstance(document, dict):
        raise _unusable(issuer, "it answers with something that is not JSON")
    return document


def _failed(issuer: str, status: int, document: object) -> TransientFailure | UserError:
    """An answer that is not a success; `error` is how OAuth says why."""
    code = document.get("error") if isinstance(document, dict) else None
    if code == "invalid_grant":
        return refused(issuer, "the sign-in has expired or was used before")
    why = f" {code[:_LONGEST_PROBLEM]}" if isinstance(code, str) and code.isprintable() else ""
    return _unusable(issuer, f"it answers {status}{why}")


def _unusable(issuer: str, problem: str) -> TransientFailure:
    return TransientFailure(PROVIDER_UNUSABLE.anywhere(issuer=issuer, problem=problem))
