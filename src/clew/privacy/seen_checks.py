"""The checks of a run and what they found, as one role sees them."""

from collections.abc import Iterable
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from clew.deferred import dataclass
from clew.events.snapshot import RunSnapshot
from clew.events.values import CheckResult
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck

Outcome = Literal["passed", "failed", "warned", "quarantined", "not decided"]
_OUTCOMES: dict[str, Outcome] = {"fail": "failed", "warn": "warned", "quarantine": "quarantined"}


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check of a plan, and what it found."""

    check: PlannedCheck
    step: str
    """The name of the step that it looked after."""
    result: CheckResult | None
    """None where the run did not come to it."""

    @property
    def outcome(self) -> Outcome:
        """What became of it, in a word."""
        if self.result is None:
            return "not decided"
        return "passed" if self.result.passed else _OUTCOMES[self.check.severity]

    @property
    def at(self) -> int:
        """The step whose rows it looked at; for one that quarantines, the step that deleted them."""
        return self.check.quarantined_by or self.check.at

    def to_json(self) -> dict[str, object]:
        """The form of `clew checks --json`."""
        result = self.result
        return {
            "name": self.check.name,
            "kind": self.check.kind,
            "severity": self.check.severity,
            "dataset": self.check.dataset.dataset_id if self.check.dataset is not None else None,
            "at": self.at,
            "step": self.step,
            "requires": self.check.text,
            "description": self.check.description or None,
            "outcome": self.outcome,
            "failed_rows": result.failed_rows if result is not None else None,
            "checked_rows": result.checked_rows if result is not None else None,
            "message": (result.message if result is not None else "") or None,
            "example": result.example if result is not None else None,
        }


@dataclass(frozen=True, slots=True)
class RunChecks:
    """All checks of a run."""

    run_id: str
    outcomes: tuple[CheckOutcome, ...]

    @property
    def passed(self) -> bool:
        """Whether no check that stops a run has failed."""
        return not any(each.outcome == "failed" for each in self.outcomes)

    def named(self, name: str | None) -> tuple[CheckOutcome, ...]:
        """The checks of a name; all where none is given."""
        return tuple(each for each in self.outcomes if name is None or each.check.name == name)

    def to_junit(self, suite: str) -> str:
        """One test suite with a test case for each check. Warnings and quarantined rows pass, with what they say."""
        failed = sum(1 for each in self.outcomes if each.outcome == "failed")
        skipped = sum(1 for each in self.outcomes if each.outcome == "not decided")
        counts = {"tests": str(len(self.outcomes)), "failures": str(failed), "skipped": str(skipped)}
        root = Element("testsuite", {"name": _printable(suite), **counts})
        for each in self.outcomes:
            case = SubElement(root, "testcase", name=_printable(each.check.name), classname=_printable(each.step))
            message = _printable(each.result.message if each.result is not None else "")
            match each.outcome:
                case "failed":
                    SubElement(case, "failure", type=each.check.kind, message=message)
                case "not decided":
                    SubElement(case, "skipped")
                case "warned" | "quarantined":
                    SubElement(case, "system-out").text = f"{each.outcome}: {message}"
                case "passed":
                    pass
        indent(root)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"

    def to_json(self) -> dict[str, object]:
        """The form of `clew checks --json`."""
        return {"run_id": self.run_id, "passed": self.passed, "checks": [each.to_json() for each in self.outcomes]}


def _printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(ch if ch in "\t\n" or ch.isprintable() else "�" for ch in text)


def checks_of_run(run_id: str, plan: Plan, snapshot: RunSnapshot) -> RunChecks:
    """The checks of a plan with what a run recorded about them."""
    found = {(each.name, each.at): each for each in snapshot.checks}
    names = {0: f"Load {plan.input.name}"} | {step.seq: step.name for step in plan.steps}
    return RunChecks(run_id, tuple(_outcomes(plan.checks, found, names)))


def _outcomes(
    checks: Iterable[PlannedCheck], found: dict[tuple[str, int], CheckResult], names: dict[int, str]
) -> Iterable[CheckOutcome]:
    for check in checks:
        at = check.quarantined_by or check.at
        yield CheckOutcome(check, names.get(at, ""), found.get((check.name, at)))
