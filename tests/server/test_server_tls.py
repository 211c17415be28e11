"""`clew serve` with a certificate, made for each test."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from tests.server.server_processes import served_by_a_process


@dataclass(frozen=True)
class Certificate:
    """A certificate for 127.0.0.1 that its own key has signed."""

    file: Path
    key: Path

    def options(self) -> list[str]:
        return ["--certificate", str(self.file), "--certificate-key", str(self.key)]


def certificate_in(folder: Path, *locked: str) -> Certificate:
    folder.mkdir()
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-keyout", str(made.key), "-out", str(made.file)]
    subprocess.run(["openssl", "req", "-x509", *elliptic, *named, *files, *(locked or ["-nodes"])], check=True)
    return made


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return certificate_in(tmp_path / "tls")


def test_with_a_certificate_everything_goes_over_tls(
    ledger: Path, certificate: Certificate, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = open_workspace(ledger).tokens.create("t", role=AccessRole.ADMIN, days=1).text
    monkeypatch.setenv("CLEW_TOKEN", token)
    trusting = ssl.create_default_context(cafile=str(certificate.file))
    with served_by_a_process(ledger, *certificate.options()) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with httpx.Client(base_url=server.url, timeout=60, verify=trusting) as client:
            answer = client.get("/login/link", params={"key": server.key})
            cookie = answer.headers["set-cookie"].lower()
            assert (answer.status_code, cookie.partition("=")[0]) == (303, "__host-clew-session")
            assert {"secure", "httponly", "samesite=lax"} <= {part.strip() for part in cookie.split(";")}
            assert len(client.get("/api/v1/runs").json()["runs"]) == 1
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(server.url.replace("https", "http"), timeout=60)
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(server.url, timeout=60)
        asking = ["run", "nope", "--period", "2026-01", "--server", server.url]
        assert command(asking) == 1
        assert "ServerUnreachable" in capsys.readouterr().err
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
        assert command(asking) == 3
        assert 'error UnknownProject: no project "nope"' in capsys.readouterr().err


def test_a_certificate_that_is_of_no_use_is_named_before_anything_is_served(
    ledger: Path, tmp_path: Path, certificate: Certificate, capsys: pytest.CaptureFixture[str]
) -> None:
    others = certificate_in(tmp_path / "others")
    locked = certificate_in(tmp_path / "locked", "-passout", "pass:secret")
    for wrong in (
        Certificate(ledger / "clew.yaml", certificate.key),
        Certificate(certificate.file, ledger / "clew.yaml"),
        Certificate(certificate.file, others.key),
        locked,
    ):
        options = ["serve", "--port", "0", "--no-worker", "--workspace", str(ledger), *wrong.options()]
        assert command(options) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"error CertificateUnusable: the certificate {wrong.file} cannot be used: ")
