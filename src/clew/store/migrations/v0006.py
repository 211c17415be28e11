"""Version 6: TraceLink: node ids, blocks of trace ids, frames, links, windows and artifacts."""

from collections.abc import Sequence
from typing import ClassVar


class Version6:
    """Adds six tables.

    In SQLite the ones with a key of numbers are stored in the order of the key and need no second index for it.
    """

    version: ClassVar[int] = 6

    def sqlite(self) -> Sequence[str]:
        """The tables for SQLite."""
        return (*_tables(storage=" WITHOUT ROWID"), *_INDEXES)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return (*_tables(storage=""), *_INDEXES)


def _tables(*, storage: str) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE node_leases (
            node_id INTEGER NOT NULL,
            term INTEGER NOT NULL,
            process_id BIGINT NOT NULL,
            start_time_ms BIGINT NOT NULL,
            host VARCHAR(255) NOT NULL,
            granted_at_ms BIGINT NOT NULL,
            expires_at_ms BIGINT NOT NULL,
            first_ms BIGINT NOT NULL,
            reserved_until_ms BIGINT NOT NULL,
            ended_at_ms BIGINT,
            end_reason VARCHAR(16),
            PRIMARY KEY (node_id, term)
        ){storage}
        """,
        f"""
        CREATE TABLE trace_blocks (
            node_id INTEGER NOT NULL,
            first_tick BIGINT NOT NULL,
            id_count BIGINT NOT NULL,
            run_id VARCHAR(255) NOT NULL,
            operation_seq INTEGER NOT NULL,
            stream_id BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            first_seq BIGINT NOT NULL,
            t_ns BIGINT NOT NULL,
            PRIMARY KEY (node_id, first_tick)
        ){storage}
        """,
        f"""
        CREATE TABLE frames (
            stream_id BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            seq BIGINT NOT NULL,
            stage_id BIGINT NOT NULL,
            t_ns BIGINT NOT NULL,
            trace_id BIGINT NOT NULL,
            status BIGINT NOT NULL,
            PRIMARY KEY (stream_id, epoch, seq)
        ){storage}
        """,
        f"""
        CREATE TABLE trace_links (
            trace_id BIGINT NOT NULL,
            parent_trace_id BIGINT NOT NULL,
            PRIMARY KEY (trace_id, parent_trace_id)
        ){storage}
        """,
        f"""
        CREATE TABLE trace_windows (
            trace_id BIGINT NOT NULL,
            in_stream_id BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            seq_start BIGINT,
            seq_end BIGINT,
            t_start_ns BIGINT,
            t_end_ns BIGINT,
            PRIMARY KEY (trace_id, in_stream_id)
        ){storage}
        """,
        f"""
        CREATE TABLE trace_artifacts (
            stream_id BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            is_by_seq INTEGER NOT NULL,
            range_start BIGINT NOT NULL,
            artifact_id VARCHAR(255) NOT NULL,
            range_end BIGINT NOT NULL,
            kind VARCHAR(255) NOT NULL,
            uri TEXT NOT NULL,
            PRIMARY KEY (stream_id, epoch, is_by_seq, range_start, artifact_id)
        ){storage}
        """,
    )


_INDEXES = (
    "CREATE INDEX frames_trace_idx ON frames (trace_id)",
    "CREATE INDEX frames_time_idx ON frames (stream_id, epoch, t_ns, seq)",
    "CREATE INDEX trace_links_parent_idx ON trace_links (parent_trace_id)",
    "CREATE INDEX trace_windows_stream_idx ON trace_windows (in_stream_id, epoch)",
    "CREATE INDEX trace_blocks_run_idx ON trace_blocks (run_id)",
)
