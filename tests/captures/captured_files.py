"""Captures written by hand, to be read."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.captures.captured_rows import CapturedRows
from clew.captures.manifests import CapturedColumn, CapturedFile, Manifest
from clew.definitions import CaptureMode
from clew.lang.types import parse_type
from clew.storage.local import LocalStorage
from clew.storage.parts import ORDINAL
from clew.storage.row_identity import RowIds
from clew.trace.json_values import arrow_type

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def captured(
    folder: Path,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    *,
    run_id: str = "run-1",
    key: tuple[str, ...] = (),
    mode: CaptureMode = CaptureMode.FULL_RAW,
    deleted: Sequence[int] = (),
) -> CapturedRows:
    """A capture with these rows; `deleted` are positions."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        name: pa.array([row[index] for row in rows], arrow_type(parse_type(type_)))
        for index, (name, type_) in enumerate(columns.items())
    }
    if mode in {CaptureMode.FULL_RAW, CaptureMode.SAMPLE_RAW}:
        first = {ORDINAL: pa.array(range(len(rows)), pa.int64())}
        data = {**first, **data, "_deleted": pa.array([n in deleted for n in range(len(rows))], pa.bool_())}
    else:
        ids = RowIds(run_id)
        data = {"_row_id": pa.array([ids.row_id(n) for n in range(len(rows))], pa.string()), **data}
    path = folder / "rows.parquet"
    pq.write_table(pa.table(data), path)
    file = CapturedFile(path.name, len(rows), path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    return CapturedRows(
        Manifest(
            capture_id=f"cap_{folder.name}",
            run_id=run_id,
            request_id="request",
            environment="dev",
            project="p",
            period="2026-01",
            breakpoint="p::main::x",
            seq=1,
            plan_digest="d",
            mode=mode,
            asked=mode,
            columns=tuple(CapturedColumn(name, type_) for name, type_ in columns.items()),
            natural_key=key,
            rows=len(rows),
            size=file.size,
            files=(file,),
            digest="",
            folder=str(folder),
            created_at=NOW,
            expires_at=NOW + timedelta(days=7),
        ),
        LocalStorage(folder),
    )
