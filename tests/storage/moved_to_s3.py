"""A shop whose runs lie in a bucket: they ran without Spark on this machine, and their files were moved."""

import json
import shutil
from typing import Any

from clew.storage.object_store import ObjectStorage
from tests.engine.engine_workspaces import Shop
from tests.storage.s3_server import S3Server


def settings_on_s3(root: ObjectStorage, endpoint: str) -> dict[str, Any]:
    """The settings of an environment with its storage there. The variable LEDGER_KEYS has the credentials."""
    access = {"endpoint": endpoint, "region": "us-east-1", "credential_ref": "secret://env/LEDGER_KEYS"}
    return {"storage_root": root.address, "object_store": access}


def moved_to_s3(shop: Shop, s3: S3Server, endpoint: str | None = None) -> ObjectStorage:
    """Move what a shop keeps to a bucket, which it reaches through an endpoint from then on."""
    root = s3.storage()
    for path in shop.storage.rglob("*"):
        if path.is_file():
            root.write_new(path.relative_to(shop.storage).as_posix(), path.read_bytes())
    shutil.rmtree(shop.storage)
    settings = json.loads((shop.root / "clew.yaml").read_text())
    settings["environments"]["dev"] |= settings_on_s3(root, endpoint or s3.endpoint)
    shop.write({"clew.yaml": settings})
    return root
