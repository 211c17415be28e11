"""The tables as queries use them, with column types that mean the same in every database.

The steps that create them are in `migrations`.
"""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from clew.events.codec import iso, moment_of


class Moment(TypeDecorator[datetime]):
    """A moment in UTC with microseconds. SQLite has no such type: there it is text that sorts like the moments."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of the database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:  # noqa: ANN401
        """On the way in."""
        if value is None or dialect.name == "postgresql":
            return value
        return iso(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ANN401
        """On the way out."""
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else moment_of(value)


JsonText = sa.JSON(none_as_null=True)
"""JSON kept as the text that was given. PostgreSQL's `jsonb` would rewrite numbers and refuse some strings, and an
event must come back exactly as it was hashed."""


metadata = sa.MetaData()

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", sa.String(255), primary_key=True),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("environment_id", sa.String(255), nullable=False),
    sa.Column("plan_id", sa.String(255), nullable=False),
    sa.Column("plan_version", sa.String(255), nullable=False),
    sa.Column("plan_digest", sa.String(255)),
    sa.Column("request_id", sa.String(255), nullable=False),
    sa.Column("request_key", sa.String(64), nullable=False, unique=True),
    sa.Column("period", sa.String(255), nullable=False),
    sa.Column("project_version", sa.String(255)),
    sa.Column("requested_by", sa.String(255)),
    sa.Column("retry_of", sa.String(255)),
    sa.Column("parameters", JsonText, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("not_before", Moment, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("approval_pending", sa.Integer, nullable=False),
    sa.Column("wants_worker", sa.Integer, nullable=False),
    sa.Column("started_at", Moment),
    sa.Column("completed_at", Moment),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("last_signal_seq", sa.BigInteger, nullable=False),
    sa.Column("seen_signal_seq", sa.BigInteger, nullable=False),
    sa.Column("projected_seq", sa.BigInteger, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("lease_owner", sa.String(255)),
    sa.Column("lease_expires_at", Moment),
    sa.Column("slot", sa.String(64), nullable=False),
    sa.Column("slot_held", sa.String(64), unique=True),
    sa.Column("last_hash", sa.String(64)),
    sa.UniqueConstraint("tenant_id", "project_id", "environment_id", "plan_id", "plan_version", "request_id"),
)
"""One row per run: what was asked for, and the head that changes in the same transaction as the events.

`token` is the fencing token, `slot` the digest of project and period, `slot_held` the same while the run occupies it:
that the column is unique is what keeps two runs of one project and period apart.
"""

run_events = sa.Table(
    "run_events",
    metadata,
    sa.Column("run_id", sa.String(255), primary_key=True),
    sa.Column("run_seq", sa.BigInteger, primary_key=True),
    sa.Column("event_id", sa.String(36), nullable=False),
    sa.Column("step_id", sa.String(600), nullable=False),
    sa.Column("logical_attempt_id", sa.BigInteger, nullable=False),
    sa.Column("engine_attempt_id", sa.BigInteger),
    sa.Column("event_type", sa.String(64), nullable=False),
    sa.Column("event_version", sa.Integer, nullable=False),
    sa.Column("event_data", JsonText, nullable=False),
    sa.Column("idempotency_key", sa.String(64), nullable=False),
    sa.Column("emitted_at", Moment, nullable=False),
    sa.Column("persisted_at", Moment, nullable=False),
    sa.Column("adapter_version", sa.String(40), nullable=False),
    sa.Column("engine_run_ref", JsonText),
    sa.Column("caused_by_signal_id", sa.String(255)),
    sa.Column("parent_event_id", sa.String(36)),
    sa.Column("previous_hash", sa.String(64)),
    sa.Column("hash", sa.String(64)),
    sa.UniqueConstraint("run_id", "idempotency_key"),
    sa.UniqueConstraint("run_id", "event_id"),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("run_id", sa.String(255), primary_key=True),
    sa.Column("last_event_seq", sa.BigInteger, nullable=False),
    sa.Column("document", JsonText, nullable=False),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("entry_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("run_id", sa.String(255), nullable=False),
    sa.Column("run_seq", sa.BigInteger, nullable=False),
    sa.Column("sink", sa.String(255), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("dead_since", Moment),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("environment_id", sa.String(255), nullable=False),
)
"""Each entry has the environment of its run, so that no other environment sends it, however their buses are called."""

run_deletions = sa.Table(
    "run_deletions",
    metadata,
    sa.Column("run_id", sa.String(255), primary_key=True),
    sa.Column("deleted_at", Moment, nullable=False),
    sa.Column("deleted_by", sa.String(255), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
)
"""The record that a run existed. A row here also permits deleting the run's events."""

step_attempts = sa.Table(
    "step_attempts",
    metadata,
    sa.Column("run_id", sa.String(255), primary_key=True),
    sa.Column("step_id", sa.String(255), primary_key=True),
    sa.Column("logical_attempt_id", sa.BigInteger, primary_key=True),
    sa.Column("engine_attempt_id", sa.BigInteger, nullable=False),
)

dataset_versions = sa.Table(
    "dataset_versions",
    metadata,
    sa.Column("environment_id", sa.String(255), primary_key=True),
    sa.Column("dataset", sa.String(255), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("table_name", sa.String(255), nullable=False),
    sa.Column("columns", JsonText, nullable=False),
    sa.Column("files", JsonText, nullable=False),
    sa.Column("run_id", sa.String(255), nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("environment_id", "dataset", "run_id", "seq"),
)

project_versions = sa.Table(
    "project_versions",
    metadata,
    sa.Column("environment_id", sa.String(255), primary_key=True),
    sa.Column("project", sa.String(255), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("activated_at", Moment, nullable=False),
    sa.Column("activated_by", sa.String(255), nullable=False),
    sa.Column("deactivated_at", Moment),
    sa.Column("deactivated_by", sa.String(255)),
)

api_tokens = sa.Table(
    "api_tokens",
    metadata,
    sa.Column("token_id", sa.String(64), primary_key=True),
    sa.Column("environment_id", sa.String(255), nullable=False),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("secret_digest", sa.String(64), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
    sa.Column("revoked_at", Moment),
)

browser_sessions = sa.Table(
    "browser_sessions",
    metadata,
    sa.Column("session_digest", sa.String(64), primary_key=True),
    sa.Column("environment_id", sa.String(255), nullable=False),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("token_id", sa.String(64)),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
)

access_log = sa.Table(
    "access_log",
    metadata,
    sa.Column("entry_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("environment_id", sa.String(255), nullable=False),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("actor", sa.String(255), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("token_id", sa.String(64)),
    sa.Column("subject", sa.String(32), nullable=False),
    sa.Column("subject_id", sa.String(255), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("read_at", Moment, nullable=False),
)

ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("tenant_id", sa.String(255), primary_key=True),
    sa.Column("environment_id", sa.String(255), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("subject_id", sa.String(255), nullable=False),
    sa.Column("content", JsonText, nullable=False),
    sa.Column("recorded_at", Moment, nullable=False),
    sa.Column("key_id", sa.String(16), nullable=False),
    sa.Column("previous_hash", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)
"""What happened in an environment, each entry sealed with a key that is not in the database."""

captures = sa.Table(
    "captures",
    metadata,
    sa.Column("capture_id", sa.String(64), primary_key=True),
    sa.Column("environment_id", sa.String(255), nullable=False),
    sa.Column("tenant_id", sa.String(255), nullable=False),
    sa.Column("run_id", sa.String(255), nullable=False),
    sa.Column("slot", sa.String(255), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("request_id", sa.String(255), nullable=False),
    sa.Column("breakpoint", sa.String(1000), nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("request", JsonText, nullable=False),
    sa.Column("ticket", JsonText),
    sa.Column("result", JsonText),
    sa.Column("reserved_bytes", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due_at", Moment, nullable=False),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("lease_owner", sa.String(255)),
    sa.Column("lease_expires_at", Moment),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("started_at", Moment),
    sa.Column("completed_at", Moment),
    sa.Column("expires_at", Moment),
    sa.UniqueConstraint("run_id", "slot"),
)
"""Captures and postlude jobs. `slot` is what a run asked for once: the same slot of a run is never done twice."""

trace_blocks = sa.Table(
    "trace_blocks",
    metadata,
    sa.Column("node_id", sa.Integer, primary_key=True),
    sa.Column("first_tick", sa.BigInteger, primary_key=True),
    sa.Column("id_count", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.String(255), nullable=False),
    sa.Column("operation_seq", sa.Integer, nullable=False),
    sa.Column("stream_id", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("first_seq", sa.BigInteger, nullable=False),
    sa.Column("t_ns", sa.BigInteger, nullable=False),
)
"""Which trace ids the rows of a run have. The other tables of TraceLink are in `clew.store.tracelink.trace_tables`."""
