"""The checks of a dataset, decided on its data for a period without running a project."""

from collections.abc import Mapping
from dataclasses import replace

from clew.api.dry_run import trial
from clew.api.run_parameters import plan_for_run
from clew.api.workspace_files import WorkspaceFiles
from clew.deferred import dataclass
from clew.definitions import project_from_data
from clew.engine.executor import datasets_of
from clew.engine.trial_checks import PinnedForTrial, checked_as_loaded, places_of
from clew.plan import Plan
from clew.privacy.seen_checks import CheckOutcome, RunChecks
from clew.runs.clock import utc_now
from clew.runs.named_periods import period_of
from clew.storage.committed import sources_of
from clew.storage.parts import Part
from clew.storage.quarantine import EMPTIED


@dataclass(frozen=True, slots=True)
class DataCheck:
    """What the checks of a dataset found in its data for a period."""

    dataset: str
    period: str
    rows: int
    """How many rows a run would load."""
    source: str
    quarantined: int
    """Rows that loading leaves out because they are not as the dataset says."""
    values_emptied: int
    """Values that loading takes for NULL because they are not as the dataset says."""
    outcomes: tuple[CheckOutcome, ...]
    places: Mapping[str, str]
    """Where the first row that fails was read, by the name of the check, where everyone may know."""

    @property
    def passed(self) -> bool:
        """Whether a run that loads the dataset would get past its checks."""
        return self._checks.passed

    def to_junit(self) -> str:
        """One test suite with a test case for each check."""
        return self._checks.to_junit(f"{self.dataset} {self.period}")

    def to_json(self) -> dict[str, object]:
        """The form of `clew check-data --json`."""
        return {
            "dataset": self.dataset,
            "period": self.period,
            "passed": self.passed,
            "rows": self.rows,
            "source": self.source,
            "quarantined": self.quarantined,
            "values_emptied": self.values_emptied,
            "checks": [
                {**each.to_json(), "example": None, "place": self.places.get(each.check.name)} for each in self.outcomes
            ],
        }

    @property
    def _checks(self) -> RunChecks:
        return RunChecks("", self.outcomes)


def check_data(files: WorkspaceFiles, dataset: str, period: str) -> DataCheck:
    """Read a dataset as a run for the period does, decide its checks, and keep nothing.

    Checks that quarantine look at all rows, as the others do. UserError if the data cannot be loaded.
    """
    run_period = period_of(files.loaded.workspace, period)
    plan = plan_for_run(_plan(files, dataset), files, period, files.run_environment.settings.parameters, {})
    with trial(files) as trying:
        inputs = trying.inputs(plan, run_period)
        parts, beside = dict[str, Part](), list[Part]()
        for use in datasets_of(plan):
            drafted = inputs.pin(use, 0)
            parts[use.key] = drafted.part
            if use.key == plan.input.key:
                beside += [each.part for each in drafted.beside]
        pinned = PinnedForTrial(trying.executors.spark(), trying.run_id, parts, trying.stored_at)
        results = checked_as_loaded(plan, run_period.identifier, pinned, utc_now().date())
        sources = places_of((each.example for each in results if each.example is not None), plan, pinned)
    read = parts[plan.input.key]
    by_name = {each.name: each for each in results}
    emptied = (read.details or {}).get(EMPTIED)
    return DataCheck(
        dataset=plan.input.dataset_id,
        period=run_period.identifier,
        rows=read.counted,
        source=sources_of(read),
        quarantined=sum(each.counted for each in beside if each.kind == "quarantine"),
        values_emptied=emptied if isinstance(emptied, int) else 0,
        outcomes=tuple(CheckOutcome(each, f"Load {plan.input.name}", by_name.get(each.name)) for each in plan.checks),
        places={
            each.name: f"{place.file}{place.numbered}"
            for each in results
            if each.example is not None and (place := sources.get(each.example)) is not None and place.file is not None
        },
    )


def _plan(files: WorkspaceFiles, dataset: str) -> Plan:
    """A plan that loads a dataset and does nothing else, with the checks of the dataset."""
    project = project_from_data({"input_dataset": dataset, "operations": []}, "check-data")
    plan = files.plan_of(project)
    checks = tuple(
        replace(each, quarantined_by=None) for each in plan.checks if each.dataset is not None and not each.of_dataset
    )
    return replace(plan, steps=(), extensions=replace(plan.extensions, checks=checks))
