"""What can be wrong with a request over HTTP, with who makes it, or with how the server is started."""

from clew.diagnostics.diagnostic import Code, Nature

NOT_SIGNED_IN = Code(
    "NotSignedIn",
    "{problem}",
    "The request has no token or session, or it is unknown, expired or revoked.",
    "send `Authorization: Bearer TOKEN`; `clew token create` creates a token",
)
FORBIDDEN = Code(
    "Forbidden",
    "{problem}",
    "The role of the caller does not allow the request, or the resource belongs to another tenant.",
    "ask someone whose role allows it",
)
FORGED_REQUEST = Code(
    "ForgedRequest",
    "the request did not come from a page of this server",
    "A browser sent a state-changing request without proof that it came from a page of this server.",
    "reload the page and try again",
)
TOO_MANY_ATTEMPTS = Code(
    "TooManyAttempts",
    "too many attempts to sign in; try again in {retry_after_s} seconds",
    "Several attempts to sign in from one address failed within a few minutes.",
    "wait, then sign in with a valid token",
)
PROVIDER_UNUSABLE = Code(
    "ProviderUnusable",
    "{issuer} cannot be used to sign in: {problem}",
    "The OpenID Connect provider of the environment cannot be reached, or does not answer as the standard says.",
    "try again later, or sign in with a token; whoever runs the server finds the settings under `oidc` in clew.yaml",
)
ID_TOKEN_REFUSED = Code(
    "IdTokenRefused",
    "{issuer} has not proven who you are: {problem}",
    "The ID token is expired, not for this server, not of this sign-in, not signed by the provider, or names nobody.",
    "sign in again",
)
NO_GROUP_WITH_ROLE = Code(
    "NoGroupWithRole",
    "{name} is known to {issuer}, but is in none of the groups that have a role here",
    "Someone signed in at the provider, but `oidc.roles` in clew.yaml gives none of their groups a role.",
    "ask an admin of this server for a role for one of your groups, then sign in again",
)
UNSAFE_SIGN_IN = Code(
    "UnsafeSignIn",
    "people would sign in over {address}, where others can listen in",
    "With OpenID Connect, the provider sends people back to the server, whose address must be https or this machine.",
    "use --certificate, or a TLS proxy and an https address with --url",
    Nature.USAGE,
)
TOO_MANY_STREAMS = Code(
    "TooManyStreams",
    "you hold {streams} event streams open already",
    "The server keeps a limited number of event streams open for each caller.",
    "close one of them, or poll the events of the run instead",
)
INVALID_REQUEST = Code(
    "InvalidRequest",
    "{problem}",
    "A parameter or the body of a request is missing, of the wrong type or out of range.",
    "/api/v1/openapi.json describes every request",
    Nature.USAGE,
)
NO_SUCH_ADDRESS = Code(
    "NoSuchAddress",
    "there is nothing at {path}",
    "There is no page or resource at this address.",
    "/api/v1/openapi.json lists the resources",
    Nature.NOT_FOUND,
)
METHOD_NOT_ALLOWED = Code(
    "MethodNotAllowed",
    "{path} does not support {method}",
    "The address exists, but does not support this method.",
    "/api/v1/openapi.json lists the methods",
    Nature.USAGE,
)
TOO_LARGE = Code(
    "TooLarge",
    "the request has more than {limit} bytes",
    "The request body is larger than the server accepts.",
    "send a smaller request",
    Nature.USAGE,
)
TOO_SLOW = Code(
    "TooSlow",
    "the request did not arrive within {seconds} seconds",
    "A client took too long to send its request.",
    "send it again",
)
UNKNOWN_HOST = Code(
    "UnknownHost",
    'this server is not called "{host}"',
    "The Host header names a host that this server does not answer for. A page of another site may have tried to reach "
    "it through a different name.",
    "use the address that `clew serve` printed, or start it with --url or --allow-host",
    Nature.USAGE,
)
PROJECT_CHANGED = Code(
    "ProjectChanged",
    'project "{project}" has changed since the page was loaded',
    "The page showed an older file or another active version. Nothing was done.",
    "reload the project page, then decide",
)
TOKENS_NEEDED = Code(
    "TokensNeeded",
    "{host} can be reached from other machines, and there is no valid token for this environment yet",
    "A server that other machines can reach needs at least one token, so that callers can sign in.",
    "create one with `clew token create NAME --role admin`, or serve on 127.0.0.1",
    Nature.USAGE,
)
ADDRESS_TAKEN = Code(
    "AddressTaken",
    "cannot listen on {host} port {port}: {reason}",
    "Another program uses this address, or the address does not belong to this machine.",
    "choose another --port, or stop the other program",
)
CERTIFICATE_UNUSABLE = Code(
    "CertificateUnusable",
    "the certificate {file} cannot be used: {reason}",
    "The files are not a PEM certificate and key, do not match, or the key has a passphrase.",
    "use a PEM certificate and, with --certificate-key, its key without a passphrase",
)
NO_SUCH_SESSION = Code(
    "NoSuchSession",
    'no open session has the id or name "{name}"',
    "A browser session with this id, or of a person with this name, is not open in this environment.",
    "`clew sessions` lists the sessions that are open",
    Nature.NOT_FOUND,
)
NO_SUCH_TOKEN = Code(
    "NoSuchToken",
    'no token "{token_id}"',
    "The environment has no such token.",
    "`clew token list` lists the tokens",
    Nature.NOT_FOUND,
)
SERVER_UNREACHABLE = Code(
    "ServerUnreachable",
    "{url} does not respond: {reason}",
    "The server given with --server is unreachable or dropped the connection.",
    "check the address, and that `clew serve` is running",
)

SERVER_CODES = (
    NOT_SIGNED_IN,
    FORBIDDEN,
    FORGED_REQUEST,
    TOO_MANY_ATTEMPTS,
    PROVIDER_UNUSABLE,
    ID_TOKEN_REFUSED,
    NO_GROUP_WITH_ROLE,
    UNSAFE_SIGN_IN,
    TOO_MANY_STREAMS,
    INVALID_REQUEST,
    NO_SUCH_ADDRESS,
    METHOD_NOT_ALLOWED,
    TOO_LARGE,
    TOO_SLOW,
    UNKNOWN_HOST,
    PROJECT_CHANGED,
    TOKENS_NEEDED,
    ADDRESS_TAKEN,
    CERTIFICATE_UNUSABLE,
    NO_SUCH_SESSION,
    NO_SUCH_TOKEN,
    SERVER_UNREACHABLE,
)
