"""The tables of TraceLink as queries use them.

Messages have unsigned 64-bit numbers, databases have signed ones. A number is stored as the signed number with the same
bits: numbers up to 2^63 - 1 are unchanged, and none is lost or refused. Trace ids that Clew mints are below 2^63.
Numbers that are compared by size (sequences, times) would be out of order in the upper half; so bounds of windows and
artifacts end at 2^63 - 1, and no window reaches a frame beyond that.
"""

from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import STORE_REFUSED_VALUE
from clew.store.schema import metadata

_SIGN_BIT: Final = 1 << 63
_ALL_BITS: Final = 1 << 64


def signed(number: int) -> int:
    """A number of 64 bits as it is stored."""
    if number < _SIGN_BIT:
        return number
    if number >= _ALL_BITS:
        raise UserError(STORE_REFUSED_VALUE.anywhere(reason=f"{number} has more than 64 bits"))
    return number - _ALL_BITS


def unsigned(stored: int) -> int:
    """A number as it was before it was stored."""
    return stored if stored >= 0 else stored + _ALL_BITS


def signed_row(row: tuple[int, ...]) -> tuple[int, ...]:
    """All numbers of a row as they are stored; nearly always the row itself."""
    return row if max(row) < _SIGN_BIT else tuple(map(signed, row))


def signed_rows(rows: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Rows as they are stored, each once, in the order of their keys.

    Two writers that meet the same rows in the same order wait for each other instead of locking each other out, and an
    index is filled from one end.
    """
    return sorted(map(signed_row, dict.fromkeys(rows)))


node_leases = sa.Table(
    "node_leases",
    metadata,
    sa.Column("node_id", sa.Integer, primary_key=True),
    sa.Column("term", sa.Integer, primary_key=True),
    sa.Column("process_id", sa.BigInteger, nullable=False),
    sa.Column("start_time_ms", sa.BigInteger, nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("granted_at_ms", sa.BigInteger, nullable=False),
    sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    sa.Column("first_ms", sa.BigInteger, nullable=False),
    sa.Column("reserved_until_ms", sa.BigInteger, nullable=False),
    sa.Column("ended_at_ms", sa.BigInteger),
    sa.Column("end_reason", sa.String(16)),
)
"""Every lease ever granted; the one with the largest term of a node id is the current one."""

frames = sa.Table(
    "frames",
    metadata,
    sa.Column("stream_id", sa.BigInteger, primary_key=True),
    sa.Column("epoch", sa.BigInteger, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("stage_id", sa.BigInteger, nullable=False),
    sa.Column("t_ns", sa.BigInteger, nullable=False),
    sa.Column("trace_id", sa.BigInteger, nullable=False),
    sa.Column("status", sa.BigInteger, nullable=False),
)

trace_links = sa.Table(
    "trace_links",
    metadata,
    sa.Column("trace_id", sa.BigInteger, primary_key=True),
    sa.Column("parent_trace_id", sa.BigInteger, primary_key=True),
)

trace_windows = sa.Table(
    "trace_windows",
    metadata,
    sa.Column("trace_id", sa.BigInteger, primary_key=True),
    sa.Column("in_stream_id", sa.BigInteger, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("seq_start", sa.BigInteger),
    sa.Column("seq_end", sa.BigInteger),
    sa.Column("t_start_ns", sa.BigInteger),
    sa.Column("t_end_ns", sa.BigInteger),
)

trace_artifacts = sa.Table(
    "trace_artifacts",
    metadata,
    sa.Column("stream_id", sa.BigInteger, primary_key=True),
    sa.Column("epoch", sa.BigInteger, primary_key=True),
    sa.Column("is_by_seq", sa.Integer, primary_key=True),
    sa.Column("range_start", sa.BigInteger, primary_key=True),
    sa.Column("artifact_id", sa.String(255), primary_key=True),
    sa.Column("range_end", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(255), nullable=False),
    sa.Column("uri", sa.Text, nullable=False),
)
