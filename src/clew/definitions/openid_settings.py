"""How people sign in to the server at an OpenID Connect provider, and which roles its groups have."""

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from clew.definitions.privacy import RoleName
from clew.definitions.shapes import NAME, SECRET, TEXT, Choice, ListOf, Located, MapOf, key, record
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE


def is_safe_address(url: str) -> bool:
    """Whether nobody can listen in on the way to an address: by TLS, or because it is this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _port = parts.port
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    if parts.scheme != "http":
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@record("the OpenID Connect settings")
class OpenIdSettings(Located):
    """The provider at which people sign in to the server, and what its groups may do here."""

    issuer: str = key(TEXT, "The address of the provider, exactly as it calls itself. It must be https.")
    client_id: str = key(NAME, "The id under which the provider knows this server.")
    client_secret_ref: str | None = key(
        SECRET, "The secret that the provider gave this server; none for a public client.", default=None
    )
    roles: Mapping[str, RoleName] = key(
        MapOf(Choice(RoleName), "roles by group", at_least=1),
        "The role of each group. Who is in several has the role of the first one listed; who is in none is refused.",
    )
    groups_claim: str = key(
        NAME, "The claim with a person's groups; dots lead into it, as in realm_access.roles.", default="groups"
    )
    name_claim: str = key(
        NAME,
        "The claim with a person's name, by which Clew tells people apart. People must not be able to change it.",
        default="preferred_username",
    )
    names: Mapping[str, str] = key(
        MapOf(NAME, "names by the name at the provider"),
        "Names under which people are known here already, as users of the operating system or by their tokens.",
        default_factory=dict,
    )
    scopes: tuple[str, ...] = key(
        ListOf(NAME, "scopes", at_least=1), "What the provider is asked for.", default=("openid", "profile", "email")
    )
    label: str = key(NAME, "What the sign-in page calls the provider.", default="single sign-on")

    def check(self) -> Iterator[Diagnostic]:
        """The address is safe and complete, and an ID token is asked for."""
        if not is_safe_address(self.issuer) or "?" in self.issuer or "#" in self.issuer:
            problem = f'"{self.issuer}" cannot be the address of a provider'
            hint = "it must start with https:// (http:// only for this machine), and has no ? and no #"
            yield INVALID_VALUE.at(self.place("issuer"), problem=problem, hint=hint)
        if "openid" not in self.scopes:
            hint = "add openid: without it, the provider does not say who signs in"
            yield INVALID_VALUE.at(self.place("scopes"), problem="the scope openid is missing", hint=hint)
