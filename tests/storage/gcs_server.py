"""A server on loopback that speaks the protocol of Google Cloud Storage, in a process of its own, in memory."""

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

TOKEN = "test-access-token"
"""The credential of the tests. It must never turn up in anything that is shown or written."""

_SERVER = """
import sys, threading
from functools import partial
from http.server import ThreadingHTTPServer
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

writing = threading.Lock()  # its storage is not for several threads; one that reads may wait for its client

class Handler(RequestHandler):
    def do_POST(self):
        with writing:
            super().do_POST()
    def do_PUT(self):
        with writing:
            super().do_PUT()
    def do_DELETE(self):
        with writing:
            super().do_DELETE()

server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, Storage(use_memory_fs=True)))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class GcsServer:
    """A server that runs."""

    endpoint: str

    @property
    def access(self) -> StoreAccess:
        """How Clew reaches it."""
        return StoreAccess(self.endpoint, credential=parse_credential("gs", TOKEN))

    def storage(self, folder: str = "clew") -> ObjectStorage:
        """A storage root in a bucket that no other test has."""
        from pyarrow.fs import GcsFileSystem

        bucket = f"bucket-{uuid4().hex}"
        host = self.endpoint.removeprefix("http://")
        GcsFileSystem(anonymous=True, scheme="http", endpoint_override=host, project_id="p").create_dir(bucket)
        return ObjectStorage(RemoteAddress("gs", bucket, folder), self.access)


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """A server that ends with the block, or with this process."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parent,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            assert port, "the server did not start: is gcp-storage-emulator installed?"
            yield GcsServer(f"http://127.0.0.1:{port}")
        finally:
            process.stdin.close()
            process.wait(timeout=30)
