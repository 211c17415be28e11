"""The sample with data, storage and outputs in an object store."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from clew.sample import write_sample
from clew.storage.object_store import ObjectStorage


def sample_on_a_store(folder: Path, root: ObjectStorage, **settings: Any) -> None:
    """Write the sample so that only definitions and state are on this machine. The rest is below the root."""
    write_sample(folder)
    for path in sorted((folder / "data").rglob("*")):
        if path.is_file():
            root.write_new(f"data/{path.relative_to(folder / 'data').as_posix()}", path.read_bytes())
    shutil.rmtree(folder / "data")
    workspace = yaml.safe_load((folder / "clew.yaml").read_text())
    workspace["environments"] = {
        "dev": {
            "storage_root": f"{root.address}/managed",
            "sandbox_root": f"{root.address}/sandbox",
            "sinks": {"close-review": {"type": "capture_store", "path": f"{root.address}/review", "max_ttl_days": 30}},
            **settings,
        }
    }
    (folder / "clew.yaml").write_text(yaml.safe_dump(workspace))
    for name, place in (("ledger-files", "data"), ("reports", "out")):
        path = folder / "datasources" / f"{name}.yaml"
        definition = yaml.safe_load(path.read_text())
        definition["options"]["root"] = f"{root.address}/{place}"
        path.write_text(yaml.safe_dump(definition))
