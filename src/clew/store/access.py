"""Tokens, browser sessions and the access log in a database."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clew.auth.access_log import AccessRecord, Subject
from clew.auth.roles import AccessRole
from clew.auth.tokens import ApiToken, BrowserSession
from clew.events.ledger import EntryKind
from clew.store.database import Database, PlainSteps
from clew.store.ledger import READS, SESSIONS, TOKENS, Ledger
from clew.store.read_records import add_reads
from clew.store.schema import access_log, api_tokens, browser_sessions


class SqlTokens:
    """The tokens of one environment."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger) -> None:
        self._database = database
        self._environment = environment_id
        self._ledger = ledger

    def add(self, token: ApiToken) -> None:
        """Store a token."""
        with self._database.write() as connection:
            connection.execute(
                sa.insert(api_tokens).values(
                    token_id=token.token_id,
                    environment_id=self._environment,
                    tenant_id=token.tenant_id,
                    name=token.name,
                    role=token.role.value,
                    secret_digest=token.secret_digest,
                    created_at=token.created_at,
                    created_by=token.created_by,
                    expires_at=token.expires_at,
                )
            )
            self._ledger.add_rows(connection, EntryKind.TOKEN_ADDED, TOKENS, api_tokens.c.token_id == token.token_id)

    def token(self, token_id: str) -> ApiToken | None:
        """A token by its id. UserError ForgedRecord if it is not what the ledger vouches for."""
        with self._database.read() as connection:
            found = connection.execute(self._select().where(api_tokens.c.token_id == token_id)).mappings()
            rows = self._ledger.require_vouched(connection, TOKENS, found)
        return _token(rows[0]) if rows else None

    def tokens(self) -> tuple[ApiToken, ...]:
        """All tokens, the newest first."""
        statement = self._select().order_by(api_tokens.c.created_at.desc(), api_tokens.c.token_id)
        with self._database.read() as connection:
            return tuple(map(_token, connection.execute(statement).mappings()))

    def revoke(self, token_id: str, now: datetime) -> ApiToken | None:
        """Revoke a token."""
        statement = (
            sa.update(api_tokens)
            .where(api_tokens.c.environment_id == self._environment, api_tokens.c.token_id == token_id)
            .where(api_tokens.c.revoked_at.is_(None))
            .values(revoked_at=now)
        )
        with self._database.write() as connection:
            this = api_tokens.c.token_id == token_id
            with self._ledger.changing(connection, EntryKind.TOKEN_REVOKED, TOKENS, this):
                connection.execute(statement)
            row = connection.execute(self._select().where(this)).mappings().one_or_none()
        return _token(row) if row is not None else None

    def _select(self) -> sa.Select[Any]:
        return sa.select(api_tokens).where(api_tokens.c.environment_id == self._environment)


class SqlBrowserSessions:
    """The browser sessions of one environment."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger) -> None:
        self._database = database
        self._environment = environment_id
        self._ledger = ledger

    def add(self, session: BrowserSession) -> None:
        """Store a session, and delete expired ones."""
        with self._database.write() as connection:
            expired = browser_sessions.c.expires_at < session.created_at
            self._ledger.remove_rows(connection, EntryKind.SESSION_ENDED, SESSIONS, expired)
            connection.execute(
                sa.insert(browser_sessions).values(
                    session_digest=session.session_digest,
                    environment_id=self._environment,
                    tenant_id=session.tenant_id,
                    name=session.name,
                    role=session.role.value,
                    token_id=session.token_id,
                    created_at=session.created_at,
                    expires_at=session.expires_at,
                )
            )
            self._ledger.add_rows(connection, EntryKind.SESSION_STARTED, SESSIONS, self._is(session.session_digest))

    def session(self, session_digest: str) -> BrowserSession | None:
        """A session by the digest of its cookie. UserError ForgedRecord if the ledger does not vouch for it."""
        statement = sa.select(browser_sessions).where(self._is(session_digest))
        with self._database.read() as connection:
            found = connection.execute(statement).mappings()
            rows = self._ledger.require_vouched(connection, SESSIONS, found)
        return _session(rows[0]) if rows else None

    def sessions(self) -> tuple[BrowserSession, ...]:
        """All sessions that have not been ended, the newest first."""
        columns = browser_sessions.c
        mine = sa.select(browser_sessions).where(columns.environment_id == self._environment)
        with self._database.read() as connection:
            found = connection.execute(mine.order_by(columns.created_at.desc(), columns.session_digest))
            return tuple(map(_session, found.mappings()))

    def end(self, session_digest: str) -> None:
        """Delete a session."""
        with self._database.write() as connection:
            self._ledger.remove_rows(connection, EntryKind.SESSION_ENDED, SESSIONS, self._is(session_digest))

    def _is(self, session_digest: str) -> sa.ColumnElement[bool]:
        mine = browser_sessions.c.environment_id == self._environment
        return sa.and_(mine, browser_sessions.c.session_digest == session_digest)


class SqlAccessLog:
    """Who has read what in one environment."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger) -> None:
        self._database = database
        self._environment = environment_id
        self._ledger = ledger

    def add(self, *records: AccessRecord) -> None:
        """Store all records or none."""
        with self._database.write() as connection:
            notes = add_reads(PlainSteps(connection, self._database), self._environment, records)
            self._ledger.add(connection, *notes)

    def records(
        self,
        tenant_id: str,
        *,
        subject_id: str | None = None,
        actor: str | None = None,
        subject: Subject | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AccessRecord, ...]:
        """Records of a tenant, the newest first. UserError ForgedRecord if the ledger does not vouch for one."""
        columns = access_log.c
        conditions = [columns.environment_id == self._environment, columns.tenant_id == tenant_id]
        if subject_id is not None:
            conditions.append(columns.subject_id == subject_id)
        if actor is not None:
            conditions.append(columns.actor == actor)
        if subject is not None:
            conditions.append(columns.subject == subject.value)
        if before is not None:
            conditions.append(columns.entry_id < before)
        statement = sa.select(access_log).where(*conditions).order_by(columns.entry_id.desc()).limit(limit)
        with self._database.read() as connection:
            found = connection.execute(statement).mappings()
            return tuple(map(_record, self._ledger.require_vouched(connection, READS, found)))


def _token(row: sa.RowMapping) -> ApiToken:
    return ApiToken(
        token_id=row["token_id"],
        name=row["name"],
        role=AccessRole(row["role"]),
        tenant_id=row["tenant_id"],
        environment_id=row["environment_id"],
        secret_digest=row["secret_digest"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )


def _session(row: sa.RowMapping) -> BrowserSession:
    return BrowserSession(
        session_digest=row["session_digest"],
        name=row["name"],
        role=AccessRole(row["role"]),
        tenant_id=row["tenant_id"],
        environment_id=row["environment_id"],
        token_id=row["token_id"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )


def _record(row: sa.RowMapping) -> AccessRecord:
    return AccessRecord(
        tenant_id=row["tenant_id"],
        actor=row["actor"],
        role=row["role"],
        token_id=row["token_id"],
        subject=Subject(row["subject"]),
        subject_id=row["subject_id"],
        detail=row["detail"],
        read_at=row["read_at"],
        entry_id=row["entry_id"],
    )
