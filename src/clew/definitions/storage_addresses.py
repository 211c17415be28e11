"""Addresses of places where files lie: a path of this machine, or a URL of an object store.

out/reports                                        a path, relative to the workspace or absolute
file:///srv/clew                                   the same as a URL
s3://bucket/folder (also s3a://)                   Amazon S3, and what speaks its protocol
gs://bucket/folder                                 Google Cloud Storage
abfss://container@account.dfs.core.windows.net/x   Azure Data Lake
hdfs://host:port/folder                            Hadoop
"""

import re
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote

from clew.deferred import dataclass

S3, GCS, AZURE, HDFS, FILE = "s3", "gs", "abfss", "hdfs", "file"
SCHEMES: dict[str, str] = {"s3": S3, "s3a": S3, "gs": GCS, "abfss": AZURE, "hdfs": HDFS, "file": FILE}
"""What users may write, and what it means."""

KNOWN = "use a path, or an address that starts with s3://, gs://, abfss://, hdfs:// or file://"

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<slashes>/+)")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]")
_CONTAINER = re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]*@[A-Za-z0-9-]+\.dfs\.[A-Za-z0-9.-]+")
_CREDENTIALS = re.compile(r"://[^@]*:[^@]*@")
_HOST = re.compile(r"[A-Za-z0-9._-]*(:\d+)?")
_FORMS = {
    S3: (_BUCKET, "s3://BUCKET/FOLDER"),
    GCS: (_BUCKET, "gs://BUCKET/FOLDER"),
    AZURE: (_CONTAINER, "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"),
    HDFS: (_HOST, "hdfs://HOST:PORT/FOLDER"),
}


class BadAddress(ValueError):
    """An address that cannot be used, with what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A place in an object store."""

    scheme: str
    """One of S3, GCS, AZURE, HDFS."""
    store: str
    """The bucket; container and account; or host and port."""
    folder: str
    """Below the store, without slashes around it; empty for all of it."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.store}" + (f"/{self.folder}" if self.folder else "")

    def below(self, key: str) -> "RemoteAddress":
        """A place below this one."""
        return RemoteAddress(self.scheme, self.store, "/".join(part for part in (self.folder, key) if part))

    def contains(self, other: "RemoteAddress") -> bool:
        """Whether another place is this one or below it."""
        return (self.scheme, self.store) == (other.scheme, other.store) and (
            f"{other.folder}/".startswith(f"{self.folder}/") if self.folder else True
        )


Address = Path | RemoteAddress


def is_remote(text: str) -> bool:
    """Whether a text is an address of an object store, right or wrong, rather than a path of this machine."""
    found = _SCHEME.match(text)
    return found is not None and found["scheme"].lower() != FILE


def parse_address(text: str, base: Path) -> Address:
    """What an address says. Paths are relative to a folder. BadAddress where it cannot be used."""
    found = _SCHEME.match(text)
    if found is None:
        return base / text
    scheme = SCHEMES.get(found["scheme"].lower())
    if scheme is None:
        raise BadAddress(f'"{shown(text)}" has the scheme "{found["scheme"]}", which Clew does not know', KNOWN)
    if scheme == FILE:
        return _local(text, found)
    return _remote(text, scheme, found)


def local_path(text: str, base: Path) -> Path:
    """The folder of this machine that a path or an address with `file:` means, right or wrong."""
    found = _SCHEME.match(text)
    return base / text if found is None else Path(unquote("/" + text[found.end() :]))


def _local(text: str, found: re.Match[str]) -> Path:
    if len(found["slashes"]) == 2:
        raise BadAddress(f'"{text}" names another machine', "write file:///FOLDER with three slashes, or a path")
    return Path(unquote("/" + text[found.end() :]))


def _remote(text: str, scheme: str, found: re.Match[str]) -> RemoteAddress:
    pattern, form = _FORMS[scheme]
    hint = f"write {form}"
    rest = text[found.end() :]
    if scheme == HDFS and len(found["slashes"]) == 3:
        rest = "/" + rest
    elif len(found["slashes"]) != 2:
        raise BadAddress(f'"{shown(text)}" is not a valid address', hint)
    store, _, folder = rest.partition("/")
    if _CREDENTIALS.search(text) or (scheme != AZURE and "@" in store):
        raise BadAddress(
            f'"{shown(text)}" contains credentials', "remove them, and name a secret as credential_ref instead"
        )
    if pattern.fullmatch(store) is None:
        raise BadAddress(f'"{shown(text)}" is not a valid address', hint)
    if any(char in folder for char in "?#"):
        raise BadAddress(f'"{shown(text)}" has options in it', "remove what starts with ? or #; settings have keys")
    parts = folder.rstrip("/").split("/")
    if folder and any(part in {"", ".", ".."} for part in parts):
        raise BadAddress(f'"{shown(text)}" has an empty or a relative folder in it', hint)
    return RemoteAddress(scheme, store, folder.rstrip("/"))


def shown(text: str) -> str:
    """An address as messages may show it: what stands before an @ may be a secret, unless it is a container."""
    return _CREDENTIALS.sub("://…@", re.sub(r"[?#].*", "", text))


def overlap(one: Address, other: Address) -> bool:
    """Whether one of two places is inside the other. A place is not inside itself."""
    match one, other:
        case RemoteAddress(), RemoteAddress():
            return one != other and (one.contains(other) or other.contains(one))
        case Path(), Path():
            first, second = Path(normpath(one)), Path(normpath(other))
            return first in second.parents or second in first.parents
        case _:
            return False
