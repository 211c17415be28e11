"""How an object store is reached: endpoint, region, credentials. The only module that holds values of credentials.

Without settings the store's own library finds its way: variables of the environment, files of the user, the role of the
machine. What is set here is handed over as it is, to pyarrow and to Spark, and is never part of a text.
"""

# ruff: noqa: PLC0415 - pyarrow is imported when a store is opened: most commands never do

import json
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from clew.deferred import dataclass
from clew.definitions.storage_addresses import AZURE, GCS, S3, RemoteAddress

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_TRIES = 5
"""As often a request is made that fails because of the surroundings."""
_CONNECT_SECONDS = 10
_SILENT_SECONDS = 10
"""As long a request waits for the next byte: a store that is busy takes longer than the library's three seconds."""
_PARTS = ("access_key", "secret_key", "session_token")


@dataclass(frozen=True, slots=True)
class Credential:
    """What a secret says: its named parts. It shows nothing when it is printed."""

    parts: tuple[tuple[str, str], ...] = field(repr=False)

    def get(self, name: str) -> str | None:
        """A part by its name."""
        return dict(self.parts).get(name)


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """The settings of a store; what is None is left to the library."""

    endpoint: str | None = None
    """An http or https address, for stores that only speak the protocol of another."""
    region: str | None = None
    path_style: bool | None = None
    """Whether the bucket stands in the path of an address rather than in the name of the host."""
    credential: Credential | None = None


NO_SETTINGS = StoreAccess()


def parse_credential(scheme: str, secret: str) -> Credential:
    """The parts of a secret. ValueError, without the secret in it, where they are not all there.

    For S3, ACCESS_KEY:SECRET_KEY or ACCESS_KEY:SECRET_KEY:SESSION_TOKEN; for Azure the key of the account, or
    sas=TOKEN; for Google an access token; for all of them a JSON object with the names of the parts.
    """
    text = secret.strip()
    if text.startswith("{"):
        return Credential(_named_parts(text))
    if scheme == S3:
        values = text.split(":")
        if len(values) not in {2, 3} or not all(values):
            raise ValueError(
                "the credentials for S3 have the form ACCESS_KEY:SECRET_KEY, or a third part: SESSION_TOKEN"
            )
        return Credential(tuple(zip(_PARTS, values, strict=False)))
    if scheme == AZURE:
        name, _, token = text.partition("=")
        return Credential((("sas_token", token),) if name == "sas" else (("account_key", text),))
    if scheme == GCS:
        return Credential((("access_token", text),))
    raise ValueError(f"{scheme}:// takes no credentials")


def _named_parts(text: str) -> tuple[tuple[str, str], ...]:
    try:
        data = json.loads(text)
    except ValueError:
        raise ValueError("the credentials look like JSON, and are not") from None
    known = {*_PARTS, "account_key", "sas_token", "access_token", "expires"}
    if not data or not data.keys() <= known or not all(isinstance(value, str) for value in data.values()):
        raise ValueError(f"the credentials are a JSON object with texts for some of {', '.join(sorted(known))}")
    return tuple(data.items())


@lru_cache(maxsize=64)
def file_system(scheme: str, store: str, access: StoreAccess) -> "FileSystem":
    """The file system of a store; one for all that use it, since it holds the connections."""
    match scheme:
        case "s3":
            return _s3(access)
        case "gs":
            return _gcs(access)
        case "abfss":
            return _azure(store, access)
        case _:
            return _hdfs(store, access)


def path_of(address: RemoteAddress) -> str:
    """A place as the file system of its store names it."""
    match address.scheme:
        case "abfss":
            return "/".join(part for part in (address.store.partition("@")[0], address.folder) if part)
        case "hdfs":
            return f"/{address.folder}"
        case _:
            return "/".join(part for part in (address.store, address.folder) if part)


def _s3(access: StoreAccess) -> "FileSystem":
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    endpoint = urlsplit(access.endpoint) if access.endpoint else None
    settings: dict[str, object] = {}
    if endpoint is not None:
        settings |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
        settings |= {"force_virtual_addressing": access.path_style is False}
    if access.region is not None or endpoint is not None:
        settings["region"] = access.region or "us-east-1"
    if access.credential is not None:
        settings |= {name: access.credential.get(name) for name in _PARTS}
    return S3FileSystem(
        **settings,
        allow_delayed_open=True,  # a file of few bytes is one request
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_SILENT_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_TRIES),
    )


def _gcs(access: StoreAccess) -> "FileSystem":
    from datetime import UTC, datetime, timedelta

    from pyarrow.fs import GcsFileSystem

    settings: dict[str, object] = {"retry_time_limit": timedelta(seconds=60)}
    if access.endpoint:
        endpoint = urlsplit(access.endpoint)
        settings |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    token = access.credential.get("access_token") if access.credential else None
    if access.credential is not None and token is not None:
        expires = access.credential.get("expires")
        until = datetime.fromisoformat(expires) if expires else datetime.now(UTC) + timedelta(hours=1)
        settings |= {"access_token": token, "credential_token_expiration": until}
    return GcsFileSystem(**settings)


def _azure(store: str, access: StoreAccess) -> "FileSystem":
    from pyarrow.fs import AzureFileSystem

    account = store.partition("@")[2].partition(".")[0]
    settings: dict[str, object] = {}
    if access.endpoint:
        endpoint = urlsplit(access.endpoint)
        settings |= {"blob_storage_authority": endpoint.netloc, "dfs_storage_authority": endpoint.netloc}
        settings |= {"blob_storage_scheme": endpoint.scheme, "dfs_storage_scheme": endpoint.scheme}
    if access.credential is not None:
        settings |= {name: access.credential.get(name) for name in ("account_key", "sas_token")}
    return AzureFileSystem(account, **settings)


def _hdfs(store: str, access: StoreAccess) -> "FileSystem":
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from clew.storage.web_hdfs import web_hdfs
    except ImportError as error:
        raise OSError("hdfs:// needs the package requests: pip install 'clew[hdfs]'") from error

    return PyFileSystem(FSSpecHandler(web_hdfs(store, access.endpoint)))


def duckdb_name(address: RemoteAddress) -> str:
    """The name of a file in a query of DuckDB. It has no characters that are taken for a pattern."""
    return f"clew://{address.scheme}/{quote(address.store, safe='')}/{quote(address.folder, safe='/')}"


# Spark


def spark_uri(address: RemoteAddress) -> str:
    """A place as Spark names it: Hadoop calls S3 s3a."""
    return f"s3a{str(address)[2:]}" if address.scheme == S3 else str(address)


def spark_settings(address: RemoteAddress, access: StoreAccess) -> Mapping[str, str]:
    """Hadoop's settings for one store, and for no other: never print the values."""
    match address.scheme:
        case "s3":
            return _s3a_settings(f"fs.s3a.bucket.{address.store}", access)
        case "abfss" if access.credential is not None:
            account = address.store.partition("@")[2]
            key, token = access.credential.get("account_key"), access.credential.get("sas_token")
            if key:
                return {f"fs.azure.account.key.{account}": key}
            return {f"fs.azure.account.auth.type.{account}": "SAS", f"fs.azure.sas.fixed.token.{account}": token or ""}
        case _:
            return {}


def _s3a_settings(prefix: str, access: StoreAccess) -> dict[str, str]:
    found: dict[str, str | None] = {}
    if access.endpoint is not None:
        secure = urlsplit(access.endpoint).scheme == "https"
        found |= {"endpoint": access.endpoint, "connection.ssl.enabled": str(secure).lower()}
        found |= {"path.style.access": str(access.path_style is not False).lower()}
    elif access.path_style is not None:
        found["path.style.access"] = str(access.path_style).lower()
    if access.region is not None or access.endpoint is not None:
        found["endpoint.region"] = access.region or "us-east-1"
    if access.credential is not None:
        token = access.credential.get("session_token")
        provider = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
        found |= {
            "aws.credentials.provider": f"org.apache.hadoop.fs.s3a.{provider}",
            "access.key": access.credential.get("access_key"),
            "secret.key": access.credential.get("secret_key"),
            "session.token": token,
        }
    return {f"{prefix}.{name}": value for name, value in found.items() if value is not None}
