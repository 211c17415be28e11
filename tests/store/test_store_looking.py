"""A look into a state store without opening it for work."""

from pathlib import Path

from clew.runs.registry import DatasetFile, Registration
from clew.store.looking import Recorded, RecordedVersion, look_into_postgresql, look_into_sqlite
from clew.store.migrations import MIGRATIONS, migrate
from clew.store.registry import SqlDatasetRegistry, SqlProjectRegistry
from clew.store.state_store import StoreOptions, open_database
from tests.store.seals import ledger_of


def look(url: str, environment: str) -> Recorded:
    if url.startswith("sqlite"):
        return look_into_sqlite(Path(url.removeprefix("sqlite:///")), environment)
    return look_into_postgresql(url, environment)


def test_what_is_on_record_is_seen_in_either_database(url: str) -> None:
    assert look(url, "dev") == Recorded()
    database = open_database(url, StoreOptions())
    try:
        migrate(database, MIGRATIONS)
        file = DatasetFile("f.parquet", 1, 1, "", "2026-01", "r", 1)
        for run, type_ in (("r", "integer"), ("s", "string")):
            registration = Registration("closed", run, 1, "2026-01", "t", (("id", type_),), (file,))
            SqlDatasetRegistry(database, "dev", ledger_of(database, "dev")).register(registration)
        projects = SqlProjectRegistry(database, "dev", ledger_of(database, "dev"))
        for name in ("close", "report"):
            projects.activate(project=name, digest="d", plan=f"plan of {name}", definition="", actor="tester")
        projects.deactivate("report", "tester")
    finally:
        database.close()
    found = look(url, "dev")
    assert found.versions("closed") == [
        RecordedVersion(2, (("id", "string"),)),
        RecordedVersion(1, (("id", "integer"),)),
    ]
    assert (found.active_plan("close"), found.active_plan("report")) == ("plan of close", None)
    assert found.versions("other") == ()
    assert look(url, "prod") == Recorded()
