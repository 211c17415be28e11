"""Signing in at an OpenID Connect provider: an attempt, and what the claims about a person mean here."""

import base64
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from clew.auth.roles import AccessRole
from clew.deferred import dataclass
from clew.definitions.openid_settings import OpenIdSettings
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import ID_TOKEN_REFUSED, NO_GROUP_WITH_ROLE

Claims = Mapping[str, object]
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIdAttempt:
    """What a browser keeps while its user is at the provider, so that what comes back belongs to it."""

    state: str
    """Comes back with the answer: without it, another site could sign people in as someone else."""
    nonce: str
    """Comes back inside of the ID token, which is therefore of this attempt."""
    verifier: str
    """Proves to the provider that who redeems the code has asked for it (PKCE)."""

    @classmethod
    def new(cls) -> "OpenIdAttempt":
        """An attempt with 256 random bits in each part."""
        return cls(state=secrets.token_urlsafe(32), nonce=secrets.token_urlsafe(32), verifier=secrets.token_urlsafe(48))

    def parameters(self, settings: OpenIdSettings, redirect_uri: str) -> str:
        """The question to the provider, as the query of an address."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return urlencode(
            {
                "response_type": "code",
                "client_id": settings.client_id,
                "redirect_uri": redirect_uri,
                "scope": " ".join(settings.scopes),
                "state": self.state,
                "nonce": self.nonce,
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInPerson:
    """A person, as the provider has proven and the environment has decided."""

    name: str
    role: AccessRole
    issuer: str
    subject: str
    """What the provider calls them; it never changes and is never given to someone else."""


def person_of(claims: Claims, settings: OpenIdSettings) -> SignedInPerson:
    """The person that claims speak of. Raises UserError if they have no usable name, or no group with a role."""
    name, subject = _name(claims, settings), claims["sub"]
    if not isinstance(subject, str) or not subject.isprintable() or not 0 < len(subject) <= _LONGEST_NAME:
        raise UserError(ID_TOKEN_REFUSED.anywhere(issuer=settings.issuer, problem="it does not say who you are"))
    groups = set(groups_in(claims, settings.groups_claim))
    role = next((role for group, role in settings.roles.items() if group in groups), None)
    if role is None:
        raise UserError(NO_GROUP_WITH_ROLE.anywhere(name=name, issuer=settings.issuer))
    return SignedInPerson(name=name, role=AccessRole(role), issuer=settings.issuer, subject=subject)


def _name(claims: Claims, settings: OpenIdSettings) -> str:
    claim = settings.name_claim
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        problem = f'it does not say your name: the claim "{claim}" is missing'
    elif claim == "email" and claims.get("email_verified") is False:
        problem = "your e-mail address has not been verified"
    elif len(name) > _LONGEST_NAME or not name.isprintable():
        problem = f'your name in the claim "{claim}" is too long, or has characters that cannot be shown'
    else:
        name = name.strip()
        return settings.names.get(name, name)
    raise UserError(ID_TOKEN_REFUSED.anywhere(issuer=settings.issuer, problem=problem))


def has_claims(claims: Claims, settings: OpenIdSettings) -> bool:
    """Whether claims have both the name and the groups."""
    return settings.name_claim in claims and bool(groups_in(claims, settings.groups_claim))


def groups_in(claims: Claims, claim: str) -> Sequence[str]:
    """The groups in a claim: a list of texts, or one text. A name with dots may also lead into objects."""
    for found in _values(claims, claim):
        if isinstance(found, str):
            return (found,)
        if isinstance(found, list):
            return tuple(each for each in found if isinstance(each, str))
    return ()


def _values(claims: Claims, claim: str) -> Iterator[object]:
    yield claims.get(claim)
    found: object = claims
    for part in claim.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    yield found
