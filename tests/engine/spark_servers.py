"""Spark as others run it: a standalone cluster and a Connect server, on loopback, as processes of the test."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

CAN_HIDE = sys.platform == "linux" and os.geteuid() == 0 and shutil.which("unshare") is not None
needs_namespaces = pytest.mark.skipif(not CAN_HIDE, reason="only root on Linux can give a process a disk to itself")

_HOME = Path(pyspark.__file__).parent
_SMALL = {"SPARK_DAEMON_MEMORY": "600m", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, hidden: Sequence[Path] = ()) -> Iterator[str]:
    """The address of a master with so many workers of one core each.

    Workers see an empty file system, each one to itself, in the place of folders that are hidden from them.
    """
    with ExitStack() as running:
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        address = running.enter_context(_started(master, folder / "master", r"Starting Spark master at (spark://\S+)"))
        for number in range(workers):
            place = folder / f"worker{number}"
            options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "600m"]
            worker = ["org.apache.spark.deploy.worker.Worker", *options, "--work-dir", str(place), address]
            ready = r"(Successfully registered) with master"
            running.enter_context(_started(worker, place, ready, hidden=hidden))
        yield address


@contextmanager
def connect_server(folder: Path, further: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a Connect server on a local Spark, with further settings."""
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--driver-memory", "700m"]
    settings = {
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **(further or {}),
    }
    confs = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    listening = r"Spark Connect server started at: \S*?:(\d+)"
    with _started([*submit, *confs, *server], folder / "connect", listening) as port:
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def hive_metastore(folder: Path) -> Iterator[str]:
    """The address of a Hive metastore, a server to itself with tables in a folder, as platforms have it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {
        "datanucleus.schema.autoCreateAll": "true",
        "hive.async.log.enabled": "false",
        "hive.log.dir": str(folder),
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.root.logger": "console",
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    }
    confs = [text for name, value in settings.items() for text in ("--hiveconf", f"{name}={value}")]
    metastore = ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port), *confs]
    with _started(metastore, folder, rf"(Started the new metaserver) on port \[{port}\]"):
        yield f"thrift://127.0.0.1:{port}"


@contextmanager
def _started(command: Sequence[str], folder: Path, ready: str, hidden: Sequence[Path] = ()) -> Iterator[str]:
    """A process of Spark, once its log says that it is ready; what the pattern captures from that line."""
    folder.mkdir(parents=True, exist_ok=True)
    script = [str(_HOME / "bin" / "spark-class"), *command]
    if hidden:
        mounts = "".join(f"mount -t tmpfs hidden {shlex.quote(str(path))} && " for path in hidden)
        script = ["unshare", "--mount", "sh", "-c", f"{mounts}exec {shlex.join(script)}"]
    environment = {**os.environ, **_SMALL, "SPARK_HOME": str(_HOME), "SPARK_LOG_DIR": str(folder)}
    with subprocess.Popen(
        script, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        log = process.stdout
        rest = threading.Thread(target=log.read, name=f"log of {folder.name}")
        try:
            said = _first(log, re.compile(ready))
            rest.start()
            yield said
        finally:
            process.terminate()
            process.wait()
            if rest.ident is not None:
                rest.join()


def _first(log: Iterable[str], pattern: re.Pattern[str]) -> str:
    seen = list[str]()
    for line in log:
        seen.append(line)
        found = pattern.search(line)
        if found:
            return found[1]
    raise AssertionError("".join(seen[-30:]))
