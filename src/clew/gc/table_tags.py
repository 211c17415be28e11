"""Removes the tags by which a run has held snapshots of Iceberg tables, when the run is deleted."""

# ruff: noqa: PLC0415 - few runs have tags, and what reads Iceberg's metadata is slow to import

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.runs import TABLE_TAG_STAYS
from clew.storage.layout import PART_FILE, parts_folder
from clew.storage.local import LocalStorage
from clew.storage.parts import Part, part_from_json
from clew.storage.root import StorageRoot
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import TableProblem


def release_tables(root: StorageRoot, run_id: str, needed: Collection[tuple[str, str]] = ()) -> Iterator[Diagnostic]:
    """Remove the tags of a run, and say which could not be removed. A table that is gone has none.

    Those that another run needs stay: it has taken over what they hold.
    """
    from clew.storage.tables.iceberg_tags import held_tags, remove_tag

    held = {each for part in _inputs(root, run_id) for each in held_tags(part.details)} - set(needed)
    for address, tag in sorted(held):
        if not Path(address).is_dir():
            continue
        try:
            remove_tag(TablePlace(LocalStorage(Path(address)), address), tag)
        except (TableProblem, OSError, ValueError, KeyError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
            yield TABLE_TAG_STAYS.anywhere(table=address, tag=tag, problem=reason)


def _inputs(root: StorageRoot, run_id: str) -> Iterator[Part]:
    for file in root.files(parts_folder(run_id, "input")):
        if file.name == PART_FILE:
            try:
                yield part_from_json(json.loads(root.read_bytes(file.key)), file.key)
            except (UserError, ValueError, OSError):
                continue
