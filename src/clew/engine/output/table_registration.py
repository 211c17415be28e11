"""The version of a table that an output has committed, as a dataset registers it without a copy of its rows."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from clew.diagnostics import UserError
from clew.engine.loading.sources import TablePolicy
from clew.engine.loading.table_files import (
    MOST_FILES,
    FoundTable,
    constant_of,
    deleted_positions,
    facts_of_files,
    is_read_alike,
)
from clew.engine.loading.table_inputs import is_short_lived
from clew.lang.types import Kind, Type
from clew.plan.resolution import ResolvedSource
from clew.runs.registry import RegisteredTable, TableAuthor
from clew.storage.tables.table_snapshot import (
    ROW_ID_COLUMNS,
    TableProblem,
    TableSnapshot,
    TableWriter,
    UnsupportedTable,
)
from clew.storage.tables.table_versions import LocatedTable, committed_by

_AT_ONCE = 8
"""Files whose digests are worked out at the same time."""


def registered_table(
    table: LocatedTable,
    author: TableAuthor,
    columns: Sequence[tuple[str, Type]],
    policy: TablePolicy,
    known: Mapping[str, str],
    *,
    is_whole: bool,
) -> RegisteredTable | None:
    """The version of a table that an output has committed; None where its rows have to be copied instead.

    That is so where its own files do not say what a copy would: the types of the columns differ, there are too many
    files, or only the connector of the format can read them. `known` are digests of files of earlier versions.
    """
    try:
        committed = committed_by(table, TableWriter(author.run_id, author.seq))
        if committed is None:
            return None
        snapshot = committed.snapshot
        source = ResolvedSource("", "path", table.shown, "", author.period, holds_one_period=False, format=table.format)
        found = FoundTable(source, table.place, snapshot, f"{table.shown} {snapshot.shown}")
        if not _serves(snapshot, columns) or (policy.copies_short_lived and is_short_lived(found, policy)):
            return None
        facts = facts_of_files(found, snapshot.files)
        rows = sum(
            each.rows - len(deleted_positions(found, file, each.rows))
            for file, each in zip(snapshot.files, facts, strict=True)
        )
        digests = _digests(found, known)
    except (UnsupportedTable, TableProblem, UserError, OSError):
        return None
    return RegisteredTable(
        address=table.place.address,
        shown=table.shown,
        format=snapshot.format,
        table_id=snapshot.table_id,
        version=snapshot.version,
        digest=snapshot.digest,
        metadata=committed.metadata,
        rows=rows,
        size=sum(file.size for file in snapshot.files),
        period=author.period,
        run_id=author.run_id,
        seq=author.seq,
        is_whole=is_whole,
        authors=(author,),
        digests=digests,
        store=table.place.root.reach,
    )


def _digests(table: FoundTable, known: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The digests of the files of a table. A file never changes, so each is read for one version only."""

    def digest(address: str) -> tuple[str, str]:
        root, key = table.place.opened(address)
        return address, known.get(address) or root.sha256(key)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digests") as threads:
        return tuple(threads.map(digest, (file.address for file in table.snapshot.files)))


def _serves(snapshot: TableSnapshot, columns: Sequence[tuple[str, Type]]) -> bool:
    known = {column.name: column for column in snapshot.columns}
    if ROW_ID_COLUMNS[snapshot.format] not in known or len(snapshot.files) > MOST_FILES:
        return False
    for name, type_ in columns:
        column = known.get(name)
        if column is None or not is_read_alike(column.type, type_):
            return False
        if type_.kind is Kind.TIMESTAMP and any(constant_of(file, column)[0] for file in snapshot.files):
            return False
    return True
