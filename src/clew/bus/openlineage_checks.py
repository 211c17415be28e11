"""What checks found, in OpenLineage's facets: tests of the run, and assertions about the datasets that it has loaded.

Facets name columns and count rows. They never have values, so that they say the same to every receiver.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from openlineage.client.facet_v2 import data_quality_assertions_dataset, test_run

from clew.deferred import dataclass
from clew.events.values import CheckResult
from clew.lang.typed import columns_of
from clew.plan import Plan
from clew.plan.planned_checks import PlannedCheck


@dataclass(frozen=True, slots=True)
class ToldChecks:
    """The checks of a plan with what a run has found until an event."""

    plan: Plan
    results: Sequence[CheckResult]
    producer: str

    def tests(self) -> test_run.TestRunFacet | None:
        """All checks of the run; those that it did not come to are skipped. None where it has no checks."""
        tests = [
            test_run.TestExecution(
                name=check.name,
                status="skip" if result is None else "pass" if result.passed else "fail",
                severity=_severity(check),
                type=check.kind,
                description=check.description or None,
                expected=_expected(result),
                actual=_actual(result),
                content=_expression(check),
                contentType="expression" if _expression(check) is not None else None,
                params={"requires": check.text, "step": check.quarantined_by or check.at},
            )
            for check, result in self._decided()
        ]
        return test_run.TestRunFacet(tests=tests, producer=self.producer) if tests else None

    def assertions(self) -> Mapping[str, data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet]:
        """Checks of rows as they were loaded, by the dataset that they are about."""
        found = defaultdict[str, list[data_quality_assertions_dataset.Assertion]](list)
        for check, result in self._decided():
            if result is not None and check.at == 0:
                about = check.dataset or self.plan.input
                found[about.dataset_id].append(
                    data_quality_assertions_dataset.Assertion(
                        assertion=check.kind,
                        success=result.passed,
                        column=_column(check, about.table),
                        severity=_severity(check),
                        name=check.name,
                        description=check.description or None,
                        expected=_expected(result),
                        actual=_actual(result),
                        content=_expression(check),
                        contentType="expression" if _expression(check) is not None else None,
                    )
                )
        return {
            dataset: data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
                assertions=assertions, producer=self.producer
            )
            for dataset, assertions in found.items()
        }

    def _decided(self) -> Iterator[tuple[PlannedCheck, CheckResult | None]]:
        found = {(each.name, each.at): each for each in self.results}
        for check in self.plan.checks:
            yield check, found.get((check.name, check.quarantined_by or check.at))


def _severity(check: PlannedCheck) -> str:
    """OpenLineage knows those that block the pipeline, and those that warn. Quarantine does not block it."""
    return "error" if check.severity == "fail" else "warn"


def _expected(result: CheckResult | None) -> str | None:
    return None if result is None or result.failed_rows is None else "0"


def _actual(result: CheckResult | None) -> str | None:
    """How many rows fail."""
    return None if result is None or result.failed_rows is None else str(result.failed_rows)


def _expression(check: PlannedCheck) -> str | None:
    """The expression of the kinds that have one."""
    if check.kind == "total" and check.total is not None and check.tie is None:
        return check.total.text
    return check.text if check.kind == "expression" else None


def _column(check: PlannedCheck, table: str) -> str | None:
    """The column that a check is about; None where there are several."""
    trees = [each.tree for each in (check.failing, check.total) if each is not None]
    names = {name for tree in trees for owner, name in columns_of(tree) if owner == table} | set(check.keys)
    return next(iter(names)) if len(names) == 1 else None
