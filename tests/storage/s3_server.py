"""An S3 server on loopback, in a process of its own: moto, which speaks the protocol and keeps objects in memory.

It does not check signatures; `s3_proxy` stands in front of it where a test wants requests to be refused.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from clew.definitions.storage_addresses import RemoteAddress
from clew.storage.object_store import ObjectStorage
from clew.storage.store_access import StoreAccess, parse_credential

KEYS = "test-key:test-secret"
"""The credentials of the tests. They must never turn up in anything that is shown or written."""
REGION = "us-east-1"

_SERVER = """
import logging, sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

class Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"
    def log(self, *args): pass

app = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that runs."""

    endpoint: str

    @property
    def access(self) -> StoreAccess:
        """How Clew reaches it."""
        return StoreAccess(self.endpoint, REGION, path_style=True, credential=parse_credential("s3", KEYS))

    def new_bucket(self) -> str:
        """Make a bucket that no other test has."""
        from pyarrow import fs

        name = f"bucket-{uuid4().hex}"
        access_key, _, secret_key = KEYS.partition(":")
        store = fs.S3FileSystem(
            access_key=access_key,
            secret_key=secret_key,
            region=REGION,
            scheme="http",
            endpoint_override=self.endpoint.removeprefix("http://"),
            allow_bucket_creation=True,
        )
        store.create_dir(name)
        return name

    def storage(self, folder: str = "clew") -> ObjectStorage:
        """A storage root in a bucket of its own."""
        return ObjectStorage(RemoteAddress("s3", self.new_bucket(), folder), self.access)

    def through(self, endpoint: str) -> "S3Server":
        """The same server behind a proxy."""
        return S3Server(endpoint)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server that ends with the block, or with this process."""
    quiet = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(64 << 20), "PYTHONWARNINGS": "ignore"}
    environment = {**os.environ, **quiet, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=Path(__file__).parent,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            assert port, "the S3 server did not start: is moto installed?"
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            process.stdin.close()
            process.wait(timeout=30)
