"""A worker of captures that is killed while it writes two of them: `capture_crash.py ROOT`.

When it dies, the rows of one sample are written and not published, and the other one is published and not committed.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.api.workspace import Workspace
from clew.captures.queue import CaptureLease, CaptureOutcome, CaptureStatus
from clew.captures.worker import CaptureWorker
from clew.captures.writing import CaptureWriter
from clew.definitions import CaptureMode
from clew.runs.limits import LeasePolicy
from clew.storage.root import StorageRoot
from clew.store.captures import SqlCaptureStore

LEASE = LeasePolicy(ttl_s=0.5)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(root: str) -> None:
    describe, finish = CaptureWriter._manifest, SqlCaptureStore.finish
    both_are_there = threading.Barrier(2, action=die)

    def describing(writer: CaptureWriter, kept: Any, folder: StorageRoot, write_ms: int) -> Any:
        if writer.request.mode is CaptureMode.SAMPLE_VIEW:
            both_are_there.wait()
        return describe(writer, kept, folder, write_ms)

    def finishing(store: SqlCaptureStore, lease: CaptureLease, status: CaptureStatus, outcome: CaptureOutcome) -> bool:
        if lease.record.request is not None and lease.record.request.mode is CaptureMode.SAMPLE_RAW:
            both_are_there.wait()
        return finish(store, lease, status, outcome)

    patch.object(CaptureWriter, "_manifest", describing).start()
    patch.object(SqlCaptureStore, "finish", finishing).start()
    workspace = Workspace(Path(root), "prod")
    with open_state(workspace.run_environment) as state:
        session = RunStarter(workspace.files, workspace.run_environment, state).session()
        worker = CaptureWorker(workspace.run_environment, state, lambda: session, lease=LEASE)
        threads = [threading.Thread(target=worker.run, args=(threading.Event(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
