"""Where projects stand: the runs that matter of all those of an environment, in a fixed number of statements.

However many runs there are, the database ranks them, and only two of each project and period leave it at most.
"""

from collections.abc import Collection, Mapping, Sequence

from clew.deferred import dataclass
from clew.events.bodies import AlertRaised
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.runs.request import RunRecord
from clew.store.reading import RUN_FIELDS, SqlRow, SqlSource, document, record_of

_RANKED = """
SELECT run_id,
  COUNT(*) OVER (PARTITION BY project_id, period) AS tries,
  SUM(CASE WHEN status = :completed THEN 1 ELSE 0 END) OVER (PARTITION BY project_id, period) AS completions,
  ROW_NUMBER() OVER (PARTITION BY project_id, period ORDER BY created_at DESC, run_id DESC) AS newest,
  ROW_NUMBER() OVER (
    PARTITION BY project_id, period
    ORDER BY CASE WHEN status = :completed THEN 0 ELSE 1 END, CASE WHEN project_version = :draft THEN 1 ELSE 0 END,
      completed_at DESC, run_id DESC
  ) AS counting
FROM runs WHERE environment_id = :environment AND tenant_id = :tenant
"""
_FIELDS = ", ".join(f"runs.{name}" for name in RUN_FIELDS)
_STANDING = f"""
SELECT {_FIELDS}, ranked.tries, ranked.completions, ranked.newest, ranked.counting
FROM runs JOIN ({_RANKED}) ranked ON ranked.run_id = runs.run_id
WHERE ranked.newest = 1 OR (ranked.counting = 1 AND runs.status = :completed)
ORDER BY runs.project_id, runs.period
"""  # noqa: S608 - our own names
_NEWEST_VERSIONS = """
SELECT dataset, version, files FROM dataset_versions known
WHERE environment_id = :environment AND version = (
  SELECT MAX(version) FROM dataset_versions other
  WHERE other.environment_id = known.environment_id AND other.dataset = known.dataset
)
"""


@dataclass(frozen=True, slots=True)
class StandingRuns:
    """The runs of a project for a period that matter."""

    newest: RunRecord
    counts: RunRecord | None
    """The completed run that completed last, one of a version before one of a draft; None if none has completed."""
    tries: int
    """How many runs there are."""
    completions: int
    """How many of them have completed."""


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """What is in the newest version of a dataset: files by path and digest, and the runs that wrote them."""

    version: int
    files: Mapping[str, tuple[str, str]]
    """The digest and the period of each file by its path. A version of a table has none."""
    authors: frozenset[str]
    """The runs whose rows are in it."""


class SqlStanding:
    """Reads where the projects of an environment stand."""

    def __init__(self, source: SqlSource, environment: str) -> None:
        self._source = source
        self._environment = environment

    def runs(self, tenant: str, draft: str) -> Mapping[tuple[str, str], StandingRuns]:
        """The runs that matter, by project and period."""
        asked = {
            "environment": self._environment,
            "tenant": tenant,
            "completed": RunStatus.COMPLETED.value,
            "draft": draft,
        }
        newest, counting = dict[tuple[str, str], RunRecord](), dict[tuple[str, str], RunRecord]()
        numbers = dict[tuple[str, str], tuple[int, int]]()
        for row in self._source.rows(_STANDING, asked):
            record = record_of(row)
            key = (record.request.project_id, record.request.period)
            if row["newest"] == 1:
                newest[key] = record
            if row["counting"] == 1 and record.status is RunStatus.COMPLETED:
                counting[key] = record
            numbers[key] = (int(row["tries"]), int(row["completions"]))
        return {key: StandingRuns(run, counting.get(key), *numbers[key]) for key, run in newest.items()}

    def snapshots(self, runs: Collection[str]) -> Mapping[str, RunSnapshot]:
        """The saved snapshots of runs, by id; those that none was saved for are missing."""
        statement = "SELECT run_id, document FROM snapshots WHERE run_id IN"
        return {
            row["run_id"]: RunSnapshot.from_json(document(row["document"])) for row in self._of_runs(statement, runs)
        }

    def alerts(self, runs: Collection[str]) -> Mapping[str, frozenset[str]]:
        """The kinds of alerts that were raised for runs, by id."""
        kinds = dict[str, set[str]]()
        statement = f"SELECT run_id, event_data FROM run_events WHERE event_type = '{AlertRaised.NAME}' AND run_id IN"  # noqa: S608 - our own names
        for row in self._of_runs(statement, runs):
            kinds.setdefault(row["run_id"], set()).add(str(document(row["event_data"]).get("alert")))
        return {run_id: frozenset(found) for run_id, found in kinds.items()}

    def newest_versions(self) -> Mapping[str, NewestVersion]:
        """The newest version of every registered dataset."""
        found = dict[str, NewestVersion]()
        for row in self._source.rows(_NEWEST_VERSIONS, {"environment": self._environment}):
            entries: list[dict[str, object]] = document(row["files"])
            files = [each for each in entries if "path" in each]
            tables = [table for each in entries if isinstance(table := each.get("table"), dict)]
            found[row["dataset"]] = NewestVersion(
                int(row["version"]),
                {str(each["path"]): (str(each["sha256"]), str(each["period"])) for each in files},
                frozenset(
                    [
                        *(str(each["run_id"]) for each in files),
                        *(str(author["run_id"]) for each in tables for author in each["authors"]),
                    ]
                ),
            )
        return found

    def _of_runs(self, statement: str, runs: Collection[str]) -> Sequence[SqlRow]:
        if not runs:
            return []
        named = {f"run{number}": run for number, run in enumerate(runs)}
        return self._source.rows(f"{statement} ({', '.join(f':{name}' for name in named)})", named)
