"""A REST catalog of Iceberg on loopback: pyiceberg's catalog in SQLite behind the protocol that Spark's client speaks.

It lets in whoever has its token. Requirements and updates of a commit are checked and applied by pyiceberg, so that
what Spark commits is held against another implementation of the format.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

TOKEN = "rest-catalog-token"
_NAMESPACE = re.compile(r"/v1/namespaces/([^/]+)")
_TABLES = re.compile(r"/v1/namespaces/([^/]+)/tables")
_TABLE = re.compile(r"/v1/namespaces/([^/]+)/tables/([^/]+)")
_METRICS = re.compile(r"/v1/namespaces/([^/]+)/tables/([^/]+)/metrics")
_STATUS = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


@dataclass(frozen=True)
class RestCatalog:
    """A server that runs."""

    uri: str
    tables: SqlCatalog
    """What it serves, without the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    catalog: SqlCatalog
    lock: threading.Lock

    def do_GET(self) -> None:
        self._answer({"/v1/config": self._config, "/v1/namespaces": self._namespaces})

    def do_HEAD(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        self._answer({"/v1/namespaces": self._create_namespace})

    def do_DELETE(self) -> None:
        self._answer({})

    def _answer(self, fixed: dict[str, Any]) -> None:
        path = unquote(urlsplit(self.path).path)
        size = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(size)) if size else {}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, {"error": {"message": "who is asking?", "type": "NotAuthorizedException", "code": 401}})
            return
        try:
            with self.lock:
                found = fixed[path](sent) if path in fixed else self._of_path(path, sent)
            self._send(200 if found is not None else 204, found)
        except tuple(_STATUS) as error:
            code = _STATUS[type(error)]
            self._send(code, {"error": {"message": str(error), "type": _java(error), "code": code}})
        except Exception as error:  # noqa: BLE001 - a client must hear of everything
            self._send(500, {"error": {"message": repr(error), "type": "ServerError", "code": 500}})

    def _of_path(self, path: str, sent: dict[str, Any]) -> dict[str, Any] | None:
        if _METRICS.fullmatch(path):
            return None
        if found := _TABLE.fullmatch(path):
            return self._table(found.groups(), sent)
        if found := _TABLES.fullmatch(path):
            return self._created(found[1], sent) if self.command == "POST" else self._listed(found[1])
        if found := _NAMESPACE.fullmatch(path):
            return {"namespace": [found[1]], "properties": self.catalog.load_namespace_properties(found[1])}
        raise NoSuchTableError(path)

    def _config(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"defaults": {}, "overrides": {}}

    def _namespaces(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"namespaces": [list(each) for each in self.catalog.list_namespaces()]}

    def _create_namespace(self, sent: dict[str, Any]) -> dict[str, Any]:
        self.catalog.create_namespace(tuple(sent["namespace"]), sent.get("properties") or {})
        return {"namespace": sent["namespace"], "properties": sent.get("properties") or {}}

    def _listed(self, namespace: str) -> dict[str, Any]:
        names = self.catalog.list_tables(namespace)
        return {"identifiers": [{"namespace": list(each[:-1]), "name": each[-1]} for each in names]}

    def _created(self, namespace: str, sent: dict[str, Any]) -> dict[str, Any]:
        request = CreateTableRequest.model_validate(sent)
        name = (namespace, request.name)
        if self.catalog.table_exists(name):
            raise TableAlreadyExistsError(f"{namespace}.{request.name}")
        spec = request.partition_spec or UNPARTITIONED_PARTITION_SPEC
        order = request.write_order or UNSORTED_SORT_ORDER
        if not request.stage_create:
            made = self.catalog.create_table(
                name, request.table_schema, request.location, spec, order, request.properties
            )
            return _loaded(made)
        location = request.location or f"{self.catalog.properties['warehouse']}/{namespace}/{request.name}"
        metadata = new_table_metadata(request.table_schema, spec, order, location, request.properties)
        return {"metadata": json.loads(metadata.model_dump_json()), "config": {}}

    def _table(self, name: tuple[str, ...], sent: dict[str, Any]) -> dict[str, Any] | None:
        if self.command == "DELETE":
            self.catalog.drop_table(name)
            return None
        if self.command != "POST":
            found = _loaded(self.catalog.load_table(name))
            return None if self.command == "HEAD" else found
        sent.setdefault("identifier", {"namespace": list(name[:-1]), "name": name[-1]})
        request = CommitTableRequest.model_validate(sent)
        table = Table(name, None, "", self.catalog._load_file_io(), self.catalog)  # type: ignore[arg-type]
        done = self.catalog.commit_table(table, request.requirements, request.updates)
        return {"metadata-location": done.metadata_location, "metadata": json.loads(done.metadata.model_dump_json())}

    def _send(self, status: int, content: dict[str, Any] | None) -> None:
        data = b"" if content is None or self.command == "HEAD" else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _loaded(table: Table) -> dict[str, Any]:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _java(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error").removesuffix("Exception") + "Exception"


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    """A catalog that keeps its tables in a folder, until the block ends."""
    folder.mkdir(parents=True)
    catalog = SqlCatalog("rest", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/tables")
    handler = type("Handler", (_Handler,), {"catalog": catalog, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="rest catalog")
    thread.start()
    try:
        yield RestCatalog(f"http://127.0.0.1:{server.server_port}", catalog)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        catalog.close()
