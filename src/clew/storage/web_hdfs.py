"""HDFS without a JVM: over HTTP, as every name node offers it (WebHDFS).

A file shows while it is being written, so what others may look for is written aside and renamed. Renaming is one
operation there, which replaces what is there or refuses to, as it is told.
"""

import getpass
import os
import shutil
from typing import Any
from urllib.parse import urlsplit

from fsspec.implementations.webhdfs import WebHDFS

from clew.storage.layout import temporary_name

_USUAL_PORT = 9870
_SECONDS = 30


class HdfsFiles(WebHDFS):  # type: ignore[misc]
    """The files of a name node. Whatever goes wrong is an OSError."""

    cachable = False

    def _call(self, *arguments: Any, **more: Any) -> Any:  # noqa: ANN401
        try:
            return super()._call(*arguments, **more)
        except (RuntimeError, ValueError) as error:
            raise OSError(str(error)) from error

    def _connect(self) -> None:
        super()._connect()
        asked = self.session.request

        def request(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401
            return asked(*arguments, **{"timeout": _SECONDS, **more})

        self.session.request = request

    def info(self, path: str, **more: Any) -> Any:  # noqa: ANN401
        """A file with its age, which the library leaves in Hadoop's words."""
        return _aged(super().info(path, **more))

    def ls(self, path: str, detail: bool = False, **more: Any) -> Any:  # noqa: ANN401
        """The files of a folder, with their ages."""
        found = super().ls(path, detail=detail, **more)
        return [_aged(each) for each in found] if detail else found

    def mv(self, path1: str, path2: str, **_: Any) -> None:  # noqa: ANN401
        """Rename a file. FileExistsError where there is one with the new name."""
        done = self._call("RENAME", method="put", path=path1, destination=self._strip_protocol(path2)).json()
        if not done["boolean"]:
            raise FileExistsError(path2)

    def copy(self, path1: str, path2: str, **_: Any) -> None:  # noqa: ANN401
        """Copy a file. Readers of the new name see what was there before, or all of the copy."""
        folder, slash, name = path2.rpartition("/")
        aside = f"{folder}{slash}{temporary_name(name)}"  # hidden from readers of a folder, if it should stay
        with self.open(path1, "rb") as source, self.open(aside, "wb") as target:
            shutil.copyfileobj(source, target, 8 << 20)
        self._call(
            "RENAME", method="put", path=aside, destination=self._strip_protocol(path2), renameoptions="OVERWRITE"
        )


def _aged(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "mtime": found["modificationTime"] / 1e3}


def web_hdfs(store: str, endpoint: str | None) -> HdfsFiles:
    """The files of the name node in an address; without an endpoint, its WebHDFS has the usual port."""
    found = urlsplit(endpoint or f"http://{store.partition(':')[0]}:{_USUAL_PORT}")
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return HdfsFiles(found.hostname or "", found.port or _USUAL_PORT, user=user, use_https=found.scheme == "https")
