"""The certificate that the server shows, looked at before anybody is told that it serves."""

import ssl

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import CERTIFICATE_UNUSABLE
from clew.server.settings import ServerSettings


def require_usable_certificate(settings: ServerSettings) -> None:
    """UserError CertificateUnusable where certificate and key are none, or do not belong together."""
    if settings.certificate is None:
        return
    try:
        # A key with a passphrase is refused: a server that starts by itself has nobody to ask for it.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.certificate, settings.certificate_key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        words = str(reason).lower().replace("_", " ")
        raise UserError(CERTIFICATE_UNUSABLE.anywhere(file=settings.certificate, reason=words)) from error
