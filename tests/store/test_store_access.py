"""Tokens, browser sessions and the access log, on either database."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from clew.auth.access_log import AccessRecord, GatheredLog, Subject
from clew.auth.roles import AccessRole, Permission
from clew.auth.tokens import BrowserSession, MintedToken, mint, verified
from clew.diagnostics import ClewError, TransientFailure
from clew.diagnostics.codes.runs import STORE_FULL
from clew.runs.signals import Role
from clew.store.access import SqlAccessLog, SqlBrowserSessions, SqlTokens
from clew.store.database import Database
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.state_store import StoreOptions, open_database
from tests.store.seals import ledger_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url, StoreOptions())
    migrate(opened, MIGRATIONS)
    yield opened
    opened.close()


def minted(name: str = "Ada", environment: str = "dev", now: datetime = NOW) -> MintedToken:
    return mint(
        name=name,
        role=AccessRole.AUDITOR,
        tenant_id="default",
        environment_id=environment,
        created_by="test",
        lifetime=timedelta(days=1),
        now=now,
    )


def test_a_token_comes_back_as_it_was_kept(database: Database) -> None:
    tokens, made = SqlTokens(database, "dev", ledger_of(database, "dev")), minted()
    tokens.add(made.token)
    assert tokens.token(made.token.token_id) == made.token
    assert verified(made.text, tokens, NOW) == made.token
    assert tokens.token("nobody") is None


def test_a_token_is_good_until_it_expires_or_is_revoked(database: Database) -> None:
    tokens, made = SqlTokens(database, "dev", ledger_of(database, "dev")), minted()
    tokens.add(made.token)
    assert verified(made.text, tokens, NOW + timedelta(hours=23, minutes=59)) is not None
    assert verified(made.text, tokens, NOW + timedelta(days=1)) is None
    revoked = tokens.revoke(made.token.token_id, NOW)
    assert revoked is not None
    assert revoked.revoked_at == NOW
    assert verified(made.text, tokens, NOW) is None
    again = tokens.revoke(made.token.token_id, NOW + timedelta(hours=1))
    assert again == revoked
    assert tokens.revoke("nobody", NOW) is None


def test_tokens_of_environments_are_apart(database: Database) -> None:
    dev, prod = (
        SqlTokens(database, "dev", ledger_of(database, "dev")),
        SqlTokens(database, "prod", ledger_of(database, "prod")),
    )
    made = minted(environment="prod")
    prod.add(made.token)
    assert verified(made.text, dev, NOW) is None
    assert dev.tokens() == ()
    assert dev.revoke(made.token.token_id, NOW) is None
    assert verified(made.text, prod, NOW) == made.token


def test_tokens_are_listed_the_newest_first(database: Database) -> None:
    tokens = SqlTokens(database, "dev", ledger_of(database, "dev"))
    for hour in range(3):
        tokens.add(minted(f"n{hour}", now=NOW + timedelta(hours=hour)).token)
    assert [token.name for token in tokens.tokens()] == ["n2", "n1", "n0"]


def test_no_two_tokens_are_alike() -> None:
    made = [minted() for _ in range(100)]
    assert len({each.text for each in made}) == 100
    assert len({each.token.token_id for each in made}) == 100
    assert all(each.text.split("_", 2)[2] not in str(each.token) for each in made)


@pytest.mark.parametrize("spoil", [str.upper, lambda text: text[:-1], lambda text: text + "x", lambda text: text[5:]])
def test_a_text_that_is_not_quite_the_token_is_refused(database: Database, spoil: object) -> None:
    tokens, made = SqlTokens(database, "dev", ledger_of(database, "dev")), minted()
    tokens.add(made.token)
    assert callable(spoil)
    assert verified(spoil(made.text), tokens, NOW) is None


def session(digest: str, expires: datetime) -> BrowserSession:
    return BrowserSession(
        session_digest=digest,
        name="Ada",
        role=AccessRole.OPERATOR,
        tenant_id="default",
        environment_id="dev",
        token_id="t",
        created_at=NOW,
        expires_at=expires,
    )


def test_sessions_are_kept_until_they_end_or_are_long_over(database: Database) -> None:
    sessions = SqlBrowserSessions(database, "dev", ledger_of(database, "dev"))
    first, second = session("a", NOW + timedelta(hours=1)), session("b", NOW + timedelta(hours=1))
    sessions.add(session("old", NOW - timedelta(hours=1)))
    sessions.add(first)
    sessions.add(second)
    assert sessions.session("old") is None
    assert sessions.session("a") == first
    assert SqlBrowserSessions(database, "prod", ledger_of(database, "prod")).session("a") is None
    sessions.end("a")
    assert (sessions.session("a"), sessions.session("b")) == (None, second)


def record(actor: str, subject_id: str, tenant: str = "default") -> AccessRecord:
    return AccessRecord(
        tenant_id=tenant,
        actor=actor,
        role="auditor",
        token_id=None,
        subject=Subject.TRACE,
        subject_id=subject_id,
        detail="row 1",
        read_at=NOW,
    )


def test_the_access_log_is_read_the_newest_first_by_tenant_subject_and_reader(database: Database) -> None:
    log = SqlAccessLog(database, "dev", ledger_of(database, "dev"))
    for actor, subject, tenant in [("a", "1", "t"), ("b", "1", "t"), ("a", "2", "t"), ("a", "1", "u")]:
        log.add(record(actor, subject, tenant))
    assert [(each.actor, each.subject_id) for each in log.records("t")] == [("a", "2"), ("b", "1"), ("a", "1")]
    assert [each.actor for each in log.records("t", subject_id="1")] == ["b", "a"]
    assert [each.subject_id for each in log.records("t", actor="a")] == ["2", "1"]
    newest, *_ = log.records("t", limit=1)
    assert [each.actor for each in log.records("t", before=newest.entry_id)] == ["b", "a"]
    assert SqlAccessLog(database, "prod", ledger_of(database, "prod")).records("t") == ()


def test_many_readers_at_once_are_all_on_record_with_few_writes(database: Database) -> None:
    log, writes = SqlAccessLog(database, "dev", ledger_of(database, "dev")), list[int]()
    together = threading.Barrier(20)

    class Counted(SqlAccessLog):
        def add(self, *records: AccessRecord) -> None:
            writes.append(len(records))
            super().add(*records)

    gathered = GatheredLog(Counted(database, "dev", ledger_of(database)))

    def read(number: int) -> None:
        together.wait()
        for turn in range(5):
            gathered.add(record(f"{number}.{turn}", "1", "t"))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.actor for each in log.records("t", limit=200)} == {f"{n}.{t}" for n in range(20) for t in range(5)}
    assert sum(writes) == 100


def test_whoever_cannot_be_put_on_record_is_told(database: Database) -> None:
    class Broken(SqlAccessLog):
        def add(self, *records: AccessRecord) -> None:
            raise TransientFailure(STORE_FULL.anywhere(reason="no room"))

    gathered = GatheredLog(Broken(database, "dev", ledger_of(database)))
    for _ in range(2):
        with pytest.raises(TransientFailure, match="StoreFull"):
            gathered.add(record("a", "1"))


@pytest.mark.parametrize("statement", ["UPDATE access_log SET actor = 'me'", "DELETE FROM access_log"])
def test_nobody_changes_the_access_log(database: Database, statement: str) -> None:
    log = SqlAccessLog(database, "dev", ledger_of(database, "dev"))
    log.add(record("a", "1", "t"))
    with pytest.raises(ClewError, match="append-only"), database.write() as connection:
        connection.execute(sa.text(statement))
    assert [each.actor for each in log.records("t")] == ["a"]


def test_every_role_may_see_runs_and_an_auditor_changes_nothing() -> None:
    for role in AccessRole:
        assert Permission.READ_RUNS in role.permissions
    changing = {Permission.START_RUNS, Permission.SEND_SIGNALS, Permission.REPLAY_EVENTS}
    assert not changing & AccessRole.AUDITOR.permissions
    assert AccessRole.AUDITOR.signal_role is Role.VIEWER
    assert AccessRole.ADMIN.permissions == set(Permission)
