"""What can be wrong with a request over HTTP, with who makes it, or with how the server is started."""

from clew.diagnostics.diagnostic import Code, Nature

NOT_SIGNED_IN = Code(
    "NotSignedIn",
    "{problem}",
    "A request carries no token and no session, or one that is unknown, expired or revoked.",
    "send `Authorization: Bearer TOKEN`; `clew token create` makes a token",
)
FORBIDDEN = Code(
    "Forbidden",
    "{problem}",
    "The role of the caller does not allow the request, or what it is about belongs to another tenant.",
    "ask somebody with a role that may do it",
)
FORGED_REQUEST = Code(
    "ForgedRequest",
    "the request does not come from a page of this server",
    "A browser sent a request that changes something without the proof that one of the server's own pages made it.",
    "open the page again and repeat what you did",
)
TOO_MANY_ATTEMPTS = Code(
    "TooManyAttempts",
    "too many attempts to sign in; try again in {retry_after_s} seconds",
    "Several attempts to sign in from one address failed within a few minutes.",
    "wait, then sign in with a valid token",
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
    "The server has no page and no resource at this address.",
    "/api/v1/openapi.json lists the resources",
    Nature.NOT_FOUND,
)
METHOD_NOT_ALLOWED = Code(
    "MethodNotAllowed",
    "{path} does not take {method}",
    "The address exists, but not for this method.",
    "/api/v1/openapi.json lists the methods",
    Nature.USAGE,
)
TOO_LARGE = Code(
    "TooLarge",
    "the request has more than {limit} bytes",
    "The body of a request is larger than the server takes.",
    "send less",
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
    "The Host header names a host that the server was not told to answer for; a page of another site may have tried to "
    "reach it through a name of its own.",
    "use the address that `clew serve` printed, or start it with --url or --allow-host",
    Nature.USAGE,
)
PROJECT_CHANGED = Code(
    "ProjectChanged",
    'project "{project}" has changed since the page that this was decided on',
    "A version was to be activated or deactivated from a page that showed another file, or another active version, "
    "than there is by now. Nothing was done.",
    "look at the project again and decide anew",
)
TOKENS_NEEDED = Code(
    "TokensNeeded",
    "{host} can be reached from other machines, and there is no valid token for this environment yet",
    "The server may listen beyond this machine only where those who call it can prove who they are.",
    "make one with `clew token create NAME --role admin`, or serve on 127.0.0.1",
    Nature.USAGE,
)
ADDRESS_TAKEN = Code(
    "AddressTaken",
    "cannot listen on {host} port {port}: {reason}",
    "Another program listens there, or the address is not one of this machine.",
    "choose another --port, or end the other program",
)
CERTIFICATE_UNUSABLE = Code(
    "CertificateUnusable",
    "the certificate {file} cannot be used: {reason}",
    "The files are not a certificate and its key in PEM, do not belong together, or the key is locked by a passphrase.",
    "give a certificate in PEM, and with --certificate-key the key that belongs to it, without a passphrase",
)
NO_SUCH_TOKEN = Code(
    "NoSuchToken",
    'no token "{token_id}"',
    "A token is named that the environment does not have.",
    "`clew token list` lists the tokens",
    Nature.NOT_FOUND,
)
SERVER_UNREACHABLE = Code(
    "ServerUnreachable",
    "{url} does not answer: {reason}",
    "The server of --server is not there, or broke off.",
    "check the address, and that `clew serve` runs",
)

SERVER_CODES = (
    NOT_SIGNED_IN,
    FORBIDDEN,
    FORGED_REQUEST,
    TOO_MANY_ATTEMPTS,
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
    NO_SUCH_TOKEN,
    SERVER_UNREACHABLE,
)
