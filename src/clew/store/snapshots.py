"""Saved snapshots in a database."""

import sqlalchemy as sa

from clew.runs.snapshot import RunSnapshot
from clew.store.database import Database
from clew.store.schema import runs, snapshots

_BEHIND = sa.text("projected_seq < last_seq")


class SqlSnapshots:
    """One saved snapshot per run, with its watermark."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, run_id: str) -> RunSnapshot | None:
        """The saved snapshot."""
        with self._database.read() as connection:
            document = connection.scalar(sa.select(snapshots.c.document).where(snapshots.c.run_id == run_id))
        return RunSnapshot.from_json(document) if document is not None else None

    def save(self, snapshot: RunSnapshot) -> None:
        """Keep a snapshot, unless a newer one is there or the run is gone."""
        seq = snapshot.last_event_seq
        watermark = (
            sa.update(runs)
            .where(runs.c.run_id == snapshot.run_id, runs.c.projected_seq < seq)
            .values(projected_seq=seq)
        )
        with self._database.write() as connection:
            # The run's row is locked by this update, so nobody can save an older snapshot in between.
            if connection.execute(watermark).rowcount == 0:
                return
            values = {"last_event_seq": seq, "document": snapshot.to_json()}
            known = sa.update(snapshots).where(snapshots.c.run_id == snapshot.run_id).values(values)
            if connection.execute(known).rowcount == 0:
                connection.execute(sa.insert(snapshots).values(run_id=snapshot.run_id, **values))

    def behind(self, limit: int) -> tuple[str, ...]:
        """Runs with events that their saved snapshot does not know."""
        statement = sa.select(runs.c.run_id).where(_BEHIND).order_by(runs.c.run_id).limit(limit)
        with self._database.read() as connection:
            return tuple(connection.scalars(statement))
