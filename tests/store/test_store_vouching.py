"""Nothing rests on rows that the ledger does not vouch for, and no change makes good what was edited before it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from clew.auth.roles import AccessRole
from clew.auth.tokens import BrowserSession, mint
from clew.diagnostics import UserError
from clew.runs.registry import DatasetFile, Registration
from clew.store.access import SqlBrowserSessions, SqlTokens
from clew.store.database import Database
from clew.store.ledger import SqlLedgerReader
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.owner import Owner
from clew.store.registry import SqlDatasetRegistry, SqlProjectRegistry
from clew.store.state_store import StoreOptions, open_database
from tests.store.seals import ledger_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
FORGED = "is not what was recorded"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url, StoreOptions())
    migrate(opened, MIGRATIONS)
    yield opened
    opened.close()


def edited(database: Database, *statements: str) -> None:
    with database.write() as connection:
        for statement in statements:
            assert connection.execute(sa.text(statement)).rowcount > 0


def differing(database: Database, table: str) -> set[str]:
    """The rows of a table that are not what the ledger says, as a verification finds them."""
    reader = SqlLedgerReader(database, Owner())
    known = dict[str, object]()
    for entry in reader.entries():
        if entry.content.get("table") == table:
            known[str(entry.content["key"])] = entry.content["digest"]
    actual = reader.row_digests(table)
    kept = {key: digest for key, digest in known.items() if digest is not None}
    return {key for key in kept.keys() | actual.keys() if kept.get(key) != actual.get(key)}


@pytest.fixture
def tokens(database: Database) -> SqlTokens:
    return SqlTokens(database, "dev", ledger_of(database))


@pytest.fixture
def token_id(tokens: SqlTokens) -> str:
    made = mint(
        name="Ada",
        role=AccessRole.VIEWER,
        tenant_id="default",
        environment_id="dev",
        created_by="test",
        lifetime=timedelta(days=1),
        now=NOW,
    )
    tokens.add(made.token)
    return made.token.token_id


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE api_tokens SET role = 'admin'",
        "UPDATE api_tokens SET secret_digest = 'of a secret that the attacker knows'",
        "UPDATE api_tokens SET tenant_id = 'another'",
        "DELETE FROM ledger WHERE seq > 1",
        "UPDATE ledger SET hash = previous_hash WHERE kind = 'token.added'",
    ],
)
def test_a_token_that_was_edited_opens_nothing(database: Database, tokens: SqlTokens, token_id: str, edit: str) -> None:
    assert tokens.token(token_id) is not None
    unguarded(database)
    edited(database, edit)
    with pytest.raises(UserError, match=FORGED):
        tokens.token(token_id)


def unguarded(database: Database) -> None:
    """Without the triggers that keep the ledger from being edited, as whoever owns the database can have it."""
    with database.write() as connection:
        if connection.dialect.name == "sqlite":
            names = connection.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all()
            for name in names:
                connection.execute(sa.text(f"DROP TRIGGER {name}"))
        else:
            found = connection.execute(
                sa.text(
                    "SELECT tgname, tgrelid::regclass::text AS on_table"
                    " FROM pg_trigger JOIN pg_class ON tgrelid = pg_class.oid"
                    " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
                )
            ).all()
            for name, table in found:
                connection.execute(sa.text(f"DROP TRIGGER IF EXISTS {name} ON {table}"))


def test_a_token_that_was_not_written_by_clew_opens_nothing(
    database: Database, tokens: SqlTokens, token_id: str
) -> None:
    edited(
        database,
        "INSERT INTO api_tokens SELECT '000000000000', environment_id, tenant_id, name, 'admin', secret_digest,"
        f" created_at, created_by, expires_at, revoked_at FROM api_tokens WHERE token_id = '{token_id}'",
    )
    with pytest.raises(UserError, match="token 000000000000 is not what was recorded"):
        tokens.token("000000000000")
    assert tokens.token(token_id) is not None
    assert len(tokens.tokens()) == 2  # lists show it, so that it can be found


def test_revoking_a_token_does_not_make_good_that_its_role_was_edited(
    database: Database, tokens: SqlTokens, token_id: str
) -> None:
    edited(database, "UPDATE api_tokens SET role = 'admin'")
    revoked = tokens.revoke(token_id, NOW)
    assert revoked is not None
    assert revoked.revoked_at == NOW
    assert differing(database, "api_tokens") == {f'["{token_id}"]'}


def test_a_token_that_was_unrevoked_by_hand_stays_revoked(database: Database, tokens: SqlTokens, token_id: str) -> None:
    tokens.revoke(token_id, NOW)
    edited(database, "UPDATE api_tokens SET revoked_at = NULL")
    with pytest.raises(UserError, match=FORGED):
        tokens.token(token_id)


def test_a_session_that_was_edited_opens_nothing_and_its_end_does_not_hide_it(database: Database) -> None:
    sessions = SqlBrowserSessions(database, "dev", ledger_of(database))

    def session(digest: str) -> BrowserSession:
        return BrowserSession(
            session_digest=digest,
            name="Ada",
            role=AccessRole.VIEWER,
            tenant_id="default",
            environment_id="dev",
            token_id=None,
            created_at=NOW,
            expires_at=NOW + timedelta(hours=1),
        )

    sessions.add(session("one"))
    sessions.add(session("two"))
    assert sessions.session("one") == session("one")
    edited(database, "UPDATE browser_sessions SET role = 'admin' WHERE session_digest = 'one'")
    with pytest.raises(UserError, match=FORGED):
        sessions.session("one")
    assert sessions.session("two") == session("two")
    sessions.end("one")
    sessions.end("two")
    assert sessions.session("one") is None
    assert differing(database, "browser_sessions") == {'["one"]'}


def registration(run_id: str, path: str) -> Registration:
    file = DatasetFile(path=path, rows=1, size=1, sha256="0" * 64, period=run_id, run_id=run_id, seq=10)
    columns = (("id", "integer"),)
    return Registration("closed", run_id, 10, run_id, "closed", columns, files=(file,))


def test_no_run_reads_or_builds_on_a_version_of_a_dataset_that_was_edited(database: Database) -> None:
    datasets = SqlDatasetRegistry(database, "dev", ledger_of(database))
    datasets.register(registration("one", "a.parquet"))
    made = datasets.register(registration("two", "b.parquet"))
    assert [each.version for each in datasets.versions("closed")] == [2, 1]
    assert {file.path for file in made.files} == {"a.parquet", "b.parquet"}
    of_the_first = "SELECT files FROM dataset_versions AS other WHERE other.version = 1"
    edited(database, f"UPDATE dataset_versions SET files = ({of_the_first}) WHERE version = 2")
    with pytest.raises(UserError, match="dataset version closed 2 is not what was recorded"):
        datasets.versions("closed")
    with pytest.raises(UserError, match=FORGED):
        datasets.register(registration("three", "d.parquet"))
    with pytest.raises(UserError, match=FORGED):
        datasets.forget("closed", 1)
    assert differing(database, "dataset_versions") == {'["closed",2]'}


def test_no_version_of_a_project_that_was_edited_runs_or_is_replaced(database: Database) -> None:
    projects = SqlProjectRegistry(database, "dev", ledger_of(database))
    made = projects.activate(project="close", digest="a", plan="{}", definition="", actor="ada")
    assert projects.active("close") == made
    edited(database, """UPDATE project_versions SET plan = '{"forged": 1}'""")
    with pytest.raises(UserError, match="project version close 1 is not what was recorded"):
        projects.active("close")
    with pytest.raises(UserError, match=FORGED):
        projects.activate(project="close", digest="b", plan="{}", definition="", actor="ada")
    assert differing(database, "project_versions") == {'["close",1]'}
