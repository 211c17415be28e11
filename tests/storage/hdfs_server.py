"""An HDFS on loopback, in a process of its own: name node and data node, from the jars that `make stores` fetches."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from clew.definitions.storage_addresses import RemoteAddress
from clew.storage.object_store import ObjectStorage
from clew.storage.store_access import StoreAccess

MINICLUSTER = os.environ.get("CLEW_HDFS")
"""The folder with the jars of the servers."""
_OF_SPARK = (
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
    "slf4j-api-*.jar",
    "jcl-over-slf4j-*.jar",
    "javax.servlet-api-*.jar",
    "log4j-*.jar",
)
"""The jars of PySpark that the servers need."""


@dataclass(frozen=True, slots=True)
class HdfsServer:
    """A server that runs."""

    store: str
    """Host and port, as they stand in addresses."""
    endpoint: str
    """Where its WebHDFS answers."""

    @property
    def access(self) -> StoreAccess:
        """How Clew reaches it."""
        return StoreAccess(self.endpoint)

    def storage(self) -> ObjectStorage:
        """A storage root in a folder that no other test has."""
        return ObjectStorage(RemoteAddress("hdfs", self.store, f"{uuid4().hex}/clew"), self.access)


@contextmanager
def hdfs_server(folder: Path) -> Iterator[HdfsServer]:
    """A server that ends with the block, or with this process."""
    import pyspark

    assert MINICLUSTER
    jars = Path(pyspark.__file__).parent / "jars"
    classes = [f"{MINICLUSTER}/*", *(str(path) for pattern in _OF_SPARK for path in sorted(jars.glob(pattern)))]
    source = Path(__file__).with_name("HdfsServer.java")
    command = ["java", "-Xmx512m", "-cp", os.pathsep.join(classes), str(source), str(folder)]
    log = folder / "hdfs.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ready = next((line for line in process.stdout if line.startswith("ready ")), "")
            assert ready, log.read_text()[-3000:]
            _, port, http = ready.split()
            yield HdfsServer(f"127.0.0.1:{port}", f"http://127.0.0.1:{http}")
        finally:
            process.stdin.close()
            process.wait(timeout=60)
