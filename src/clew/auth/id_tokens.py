"""ID tokens: verified against the keys of the provider before anything in them is believed."""

import hmac
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jwt

from clew.auth.openid import Claims
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import ID_TOKEN_REFUSED

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Signatures that only the holder of a private key can make. `none` and those with a shared secret are not."""
_LEEWAY_S = 60
"""How far clocks may differ."""
_REQUIRED = ["iss", "sub", "aud", "exp", "iat"]
_PROBLEMS: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "its ID token has expired",
    jwt.ImmatureSignatureError: "its ID token is not valid yet; the clocks of both servers may differ",
    jwt.InvalidAudienceError: "its ID token is for another application",
    jwt.InvalidIssuerError: "its ID token is of another provider",
    jwt.InvalidSignatureError: "its ID token is not signed by its key",
}
_Key = Mapping[str, Any]


def refused(issuer: str, problem: str) -> UserError:
    """An ID token that proves nothing."""
    return UserError(ID_TOKEN_REFUSED.anywhere(issuer=issuer, problem=problem))


def names_unknown_key(token: str, keys: Sequence[_Key]) -> bool:
    """Whether a token names a key that is not among those known: the provider may have a new one."""
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except jwt.PyJWTError:
        return False
    return kid is not None and all(key.get("kid") != kid for key in keys)


def verified_claims(token: str, *, issuer: str, client_id: str, nonce: str, keys: Sequence[_Key]) -> Claims:
    """What an ID token says. Raises UserError IdTokenRefused if signature, issuer, audience, time or nonce is wrong."""
    claims = _signed_claims(token, issuer, client_id, keys)
    authorized = claims.get("azp")
    audience = claims["aud"]
    if authorized is not None and authorized != client_id:
        raise refused(issuer, "its ID token was made for another application")
    if authorized is None and isinstance(audience, list) and len(audience) > 1:
        raise refused(issuer, "its ID token is for several applications, and does not say for which it was made")
    sent = claims.get("nonce")
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), nonce.encode()):
        raise refused(issuer, "its ID token is not of this sign-in")
    return claims


def _signed_claims(token: str, issuer: str, client_id: str, keys: Sequence[_Key]) -> dict[str, Any]:
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise refused(issuer, "its ID token is not signed in a way that proves anything")
        for key in _candidates(keys, header.get("kid"), algorithm):
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=client_id,
                    issuer=issuer,
                    leeway=_LEEWAY_S,
                    options={"require": _REQUIRED},
                )
            except jwt.InvalidSignatureError:
                continue  # a provider may have several keys without ids
    except jwt.MissingRequiredClaimError as error:
        raise refused(issuer, f'its ID token lacks the claim "{error.claim}"') from error
    except jwt.PyJWTError as error:
        raise refused(issuer, _PROBLEMS.get(type(error), "its ID token cannot be read")) from error
    raise refused(issuer, _PROBLEMS[jwt.InvalidSignatureError])


def _candidates(keys: Sequence[_Key], kid: object, algorithm: str) -> Iterator[jwt.PyJWK]:
    """The keys that may have signed: for signatures, of the right kind, and with the id where the token names one."""
    for key in keys:
        named = kid is None or key.get("kid") in {None, kid}
        if named and key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm:
            try:
                yield jwt.PyJWK.from_dict(dict(key), algorithm)
            except jwt.PyJWTError:
                continue
