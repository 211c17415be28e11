"""Looking up a row starts quickly: what it loads is little, and stays little."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.storage.checked_files import TraceFiles
from clew.storage.parts import PartFile
from clew.storage.roots import storage_at

_LOOKUP = """
import json, sys
from pathlib import Path
import clew.trace.reader
from clew.storage.checked_files import TraceFiles
from clew.storage.roots import storage_at
from clew.storage.parts import PartFile
root, size, digest = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
row = TraceFiles(storage_at(root)).row_with(PartFile("changes.parquet", 6, size, digest), 40, ["text"])
print(json.dumps([row["text"][0].as_py(), sorted(sys.modules)]))
"""


def written(root: Path, ordinals: list[int]) -> PartFile:
    path = root / "changes.parquet"
    pq.write_table(pa.table({"__ordinal": ordinals, "text": [f"row {each}" for each in ordinals]}), path)
    content = path.read_bytes()
    return PartFile("changes.parquet", len(ordinals), len(content), hashlib.sha256(content).hexdigest())


def test_neither_pandas_nor_a_compiler_is_loaded_to_look_up_a_row(tmp_path: Path) -> None:
    file = written(tmp_path, [10, 20, 30, 40, 50, 60])
    command = [sys.executable, "-c", _LOOKUP, str(tmp_path), str(file.size), file.sha256]
    found, modules = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found == "row 40"
    heavy = {"pandas", "duckdb", "pyspark", "sqlalchemy", "yaml", "clew.definitions", "clew.plan.compiler"}
    assert heavy & set(modules) == set()


def test_an_ordinal_is_found_in_any_order_and_missed_where_it_is_not(tmp_path: Path) -> None:
    ordinals = [50, 10, 60, 20, 40, 30]
    file = written(tmp_path, ordinals)
    files = TraceFiles(storage_at(tmp_path))
    for ordinal in ordinals:
        row = files.row_with(file, ordinal, ["text"])
        assert row is not None
        assert row["text"].to_pylist() == [f"row {ordinal}"]
    assert files.row_with(file, 35, ["text"]) is None
    assert files.row_with(file, 99, ["text"]) is None
