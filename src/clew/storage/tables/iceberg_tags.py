"""Tags on snapshots of Iceberg tables in folders, set and removed as the format specifies: without a JVM or a catalog.

A tag keeps a snapshot from being expired. Setting one is a commit: new metadata under the next number, which the file
system gives to one writer only. Tables whose current metadata only a catalog knows are left alone.
"""

import gzip
import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from clew.storage.tables.iceberg import current_metadata, numbered_metadata
from clew.storage.tables.table_places import TablePlace, is_remote
from clew.storage.tables.table_snapshot import TableProblem

TABLE_TAGS = "table_tags"
"""The detail of a pinned input that says which tags it holds."""
_HINT = "version-hint.text"
_MOST_ATTEMPTS = 20
_MOST_PREVIOUS = 100
_PREVIOUS_MAX = "write.metadata.previous-versions-max"
_DAY_MS = 24 * 60 * 60 * 1000

_Json = dict[str, Any]
_Change = Callable[[_Json], bool]
"""Changes the references of a table; False where there is nothing to change."""


def tag_of(run_id: str, snapshot_id: int) -> str:
    """The name of the tag by which a run holds a snapshot."""
    return f"clew-{run_id}-{snapshot_id}"


def tags_text(tags: Sequence[tuple[str, str]]) -> str | None:
    """Folders of tables with the tags in them, as the description of a pinned input keeps them."""
    return json.dumps(tags) if tags else None


def held_tags(details: Mapping[str, str | int | None] | None) -> list[tuple[str, str]]:
    """Folders of tables with the tags that a pinned input holds in them."""
    text = (details or {}).get(TABLE_TAGS)
    return [(str(folder), str(tag)) for folder, tag in json.loads(text)] if isinstance(text, str) else []


def tag_snapshot(place: TablePlace, snapshot_id: int, tag: str, days: int | None) -> None:
    """Let a tag hold a snapshot, for so many days or until it is removed. TableProblem or OSError where it cannot."""

    def change(metadata: _Json) -> bool:
        if all(each["snapshot-id"] != snapshot_id for each in metadata.get("snapshots", ())):
            raise TableProblem(f"snapshot {snapshot_id} has expired")
        held: _Json = {"snapshot-id": snapshot_id, "type": "tag"}
        if days is not None:
            held["max-ref-age-ms"] = days * _DAY_MS
        refs: _Json = metadata.setdefault("refs", {})
        if refs.get(tag) == held:
            return False
        refs[tag] = held
        return True

    _commit(place, change)


def remove_tag(place: TablePlace, tag: str) -> None:
    """Remove a tag. Nothing happens where it is gone; TableProblem or OSError where it cannot be removed."""
    _commit(place, lambda metadata: metadata.get("refs", {}).pop(tag, None) is not None)


def _commit(place: TablePlace, change: _Change) -> None:
    """Write metadata under the next number, again after every writer that was faster."""
    if is_remote(place.address):
        raise TableProblem("it is in an object store, where no number is given to one writer only")
    for _ in range(_MOST_ATTEMPTS):
        base = Path(current_metadata(place))
        number = numbered_metadata(base.name)
        if number is None:
            raise TableProblem("its current metadata is known to a catalog only")
        content = base.read_bytes()
        is_packed = content[:2] == b"\x1f\x8b"
        metadata: _Json = json.loads(gzip.decompress(content) if is_packed else content)
        if not change(metadata):
            return
        _log(metadata, base.name)
        text = json.dumps(metadata).encode()
        if _written(base, number, gzip.compress(text) if is_packed else text):
            return
    raise TableProblem("others kept committing to it")


def _log(metadata: _Json, name: str) -> None:
    """Note the metadata that this replaces, as every commit does."""
    kept = int(metadata.get("properties", {}).get(_PREVIOUS_MAX, _MOST_PREVIOUS))
    previous = f"{str(metadata['location']).rstrip('/')}/metadata/{name}"
    entries = [*metadata.get("metadata-log", ())]
    entries.append({"timestamp-ms": metadata["last-updated-ms"], "metadata-file": previous})
    metadata["metadata-log"] = entries[-kept:]
    metadata["last-updated-ms"] = max(int(time.time() * 1000), metadata["last-updated-ms"])


def _written(base: Path, number: int, content: bytes) -> bool:
    """Whether the next number was ours. The file appears whole, or not at all."""
    waiting = base.with_name(f"{uuid.uuid4()}.metadata.json")
    target = base.with_name(base.name.replace(f"v{number}", f"v{number + 1}", 1))
    try:
        with waiting.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(waiting, target)
    except FileExistsError:
        return False
    finally:
        waiting.unlink(missing_ok=True)
    # The hint only spares readers a search, so losing it does no harm.
    with suppress(OSError):
        hint = waiting.with_name(f"{uuid.uuid4()}-{_HINT}")
        hint.write_text(str(number + 1), encoding="ascii")
        hint.replace(base.with_name(_HINT))
    return True
