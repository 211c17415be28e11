"""Version 1: runs, their events, snapshots, the outbox, and the guards that keep events as they are."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types

_PARTITIONS = 8


class Version1:
    """The first schema."""

    version: ClassVar[int] = 1

    def sqlite(self) -> Sequence[str]:
        """Tables, indexes and triggers of SQLite."""
        return (*_tables(SQLITE_TYPES, partitioning=""), *_INDEXES, *_SQLITE_GUARDS)

    def postgresql(self) -> Sequence[str]:
        """Tables, partitions, indexes and triggers of PostgreSQL."""
        tables = _tables(POSTGRESQL_TYPES, partitioning=" PARTITION BY HASH (run_id)")
        return (*tables, *_partitions(), *_INDEXES, *_postgresql_guards())


def _tables(types: Types, *, partitioning: str) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE runs (
            run_id VARCHAR(255) NOT NULL PRIMARY KEY,
            tenant_id VARCHAR(255) NOT NULL,
            project_id VARCHAR(255) NOT NULL,
            environment_id VARCHAR(255) NOT NULL,
            plan_id VARCHAR(255) NOT NULL,
            plan_version VARCHAR(255) NOT NULL,
            plan_digest VARCHAR(255),
            request_id VARCHAR(255) NOT NULL,
            request_key VARCHAR(64) NOT NULL,
            period VARCHAR(255) NOT NULL,
            project_version VARCHAR(255),
            requested_by VARCHAR(255),
            retry_of VARCHAR(255),
            parameters {types.json} NOT NULL,
            created_at {types.moment} NOT NULL,
            not_before {types.moment} NOT NULL,
            status VARCHAR(16) NOT NULL,
            approval_pending INTEGER NOT NULL,
            wants_worker INTEGER NOT NULL,
            started_at {types.moment},
            completed_at {types.moment},
            last_seq BIGINT NOT NULL,
            last_signal_seq BIGINT NOT NULL,
            seen_signal_seq BIGINT NOT NULL,
            projected_seq BIGINT NOT NULL,
            token BIGINT NOT NULL,
            lease_owner VARCHAR(255),
            lease_expires_at {types.moment},
            slot VARCHAR(64) NOT NULL,
            slot_held VARCHAR(64),
            UNIQUE (request_key),
            UNIQUE (slot_held),
            UNIQUE (tenant_id, project_id, environment_id, plan_id, plan_version, request_id)
        )
        """,
        f"""
        CREATE TABLE run_events (
            run_id VARCHAR(255) NOT NULL,
            run_seq BIGINT NOT NULL,
            event_id VARCHAR(36) NOT NULL,
            step_id VARCHAR(600) NOT NULL,
            logical_attempt_id BIGINT NOT NULL,
            engine_attempt_id BIGINT,
            event_type VARCHAR(64) NOT NULL,
            event_version INTEGER NOT NULL,
            event_data {types.json} NOT NULL,
            idempotency_key VARCHAR(64) NOT NULL,
            emitted_at {types.moment} NOT NULL,
            persisted_at {types.moment} NOT NULL,
            adapter_version VARCHAR(40) NOT NULL,
            engine_run_ref {types.json},
            caused_by_signal_id VARCHAR(255),
            parent_event_id VARCHAR(36),
            PRIMARY KEY (run_id, run_seq),
            UNIQUE (run_id, idempotency_key),
            UNIQUE (run_id, event_id)
        ){partitioning}
        """,
        f"""
        CREATE TABLE snapshots (
            run_id VARCHAR(255) NOT NULL PRIMARY KEY,
            last_event_seq BIGINT NOT NULL,
            document {types.json} NOT NULL
        )
        """,
        f"""
        CREATE TABLE outbox (
            entry_id {types.entry_id},
            run_id VARCHAR(255) NOT NULL,
            run_seq BIGINT NOT NULL,
            sink VARCHAR(255) NOT NULL,
            attempts INTEGER NOT NULL,
            due_at {types.moment} NOT NULL,
            error TEXT,
            dead_since {types.moment}
        )
        """,
        f"""
        CREATE TABLE run_deletions (
            run_id VARCHAR(255) NOT NULL PRIMARY KEY,
            deleted_at {types.moment} NOT NULL,
            deleted_by VARCHAR(255) NOT NULL,
            reason TEXT NOT NULL,
            last_seq BIGINT NOT NULL
        )
        """,
    )


_INDEXES = (
    "CREATE INDEX ix_runs_newest ON runs (created_at, run_id)",
    "CREATE INDEX ix_runs_project ON runs (project_id, period)",
    "CREATE INDEX ix_runs_status ON runs (environment_id, status)",
    "CREATE INDEX ix_runs_waiting ON runs (environment_id, created_at, run_id) WHERE wants_worker = 1",
    "CREATE INDEX ix_runs_behind ON runs (run_id) WHERE projected_seq < last_seq",
    "CREATE INDEX ix_run_events_type ON run_events (event_type, persisted_at)",
    "CREATE INDEX ix_outbox_due ON outbox (sink, due_at, entry_id) WHERE dead_since IS NULL",
    "CREATE INDEX ix_outbox_run ON outbox (run_id)",
)


def _partitions() -> tuple[str, ...]:
    return tuple(
        f"CREATE TABLE run_events_p{n} PARTITION OF run_events FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {n})"
        for n in range(_PARTITIONS)
    )


_SQLITE_GUARDS = (
    """
    CREATE TRIGGER run_events_never_change BEFORE UPDATE ON run_events
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
    """
    CREATE TRIGGER run_events_leave_with_their_run BEFORE DELETE ON run_events
    WHEN NOT EXISTS (SELECT 1 FROM run_deletions WHERE run_deletions.run_id = OLD.run_id)
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
    # REPLACE deletes without firing delete triggers, so it has to be stopped on the way in.
    """
    CREATE TRIGGER run_events_are_never_replaced BEFORE INSERT ON run_events
    WHEN EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_id = NEW.run_id
                 AND (e.run_seq = NEW.run_seq OR e.idempotency_key = NEW.idempotency_key))
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
    """
    CREATE TRIGGER run_deletions_never_change BEFORE UPDATE ON run_deletions
    BEGIN SELECT RAISE(ABORT, 'deletions are append-only'); END
    """,
    """
    CREATE TRIGGER run_deletions_stay BEFORE DELETE ON run_deletions
    BEGIN SELECT RAISE(ABORT, 'deletions are append-only'); END
    """,
)


def _postgresql_guards() -> tuple[str, ...]:
    refuse_events = """
        CREATE FUNCTION run_events_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                IF EXISTS (SELECT 1 FROM run_deletions WHERE run_deletions.run_id = OLD.run_id) THEN
                    RETURN OLD;
                END IF;
            END IF;
            RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation';
        END $$
    """
    refuse_deletions = """
        CREATE FUNCTION run_deletions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'deletions are append-only' USING ERRCODE = 'restrict_violation';
        END $$
    """
    emptied = ("run_events", *(f"run_events_p{n}" for n in range(_PARTITIONS)))
    return (
        refuse_events,
        refuse_deletions,
        _trigger("run_events", "BEFORE UPDATE OR DELETE", "FOR EACH ROW", "run_events_guard"),
        *(_trigger(table, "BEFORE TRUNCATE", "FOR EACH STATEMENT", "run_events_guard") for table in emptied),
        _trigger("run_deletions", "BEFORE UPDATE OR DELETE", "FOR EACH ROW", "run_deletions_guard"),
        _trigger("run_deletions", "BEFORE TRUNCATE", "FOR EACH STATEMENT", "run_deletions_guard"),
    )


def _trigger(table: str, when: str, how: str, function: str) -> str:
    name = f"{table}_{when.rsplit(maxsplit=1)[-1].lower()}_guard"
    return f"CREATE TRIGGER {name} {when} ON {table} {how} EXECUTE FUNCTION {function}()"
