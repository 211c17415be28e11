"""What the checks of an edited project would say of the rows that it would have made of a run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from clew import budgets
from clew.change.cone import Cone
from clew.change.recomputing import JoinLookup
from clew.deferred import dataclass
from clew.events.values import CheckResult
from clew.explain.pinned import dataset_rows
from clew.lang.evaluation import Row, group_evaluator
from clew.lang.typed import Value, columns_of
from clew.plan.planned_checks import PlannedCheck, SeverityName

_BYTES_PER_ROW = 400


@dataclass(frozen=True, slots=True)
class CheckImpact:
    """A check of the edited project, and what it would find."""

    name: str
    severity: SeverityName
    at: int
    text: str
    passes: bool
    passed: bool | None
    """Whether it passed in the run; None if the run had no such check."""
    failed_rows: int | None = None
    """How many rows would fail; None where it is about all rows together."""

    @property
    def breaks(self) -> bool:
        """Whether it would fail, and did not."""
        return not self.passes and self.passed is not False

    @property
    def sentence(self) -> str:
        """What it would find, in words."""
        rows = "" if self.failed_rows is None else f" for {self.failed_rows:,} rows"
        before = {True: "it passed in the run", False: "it failed in the run, too", None: "the run had no such check"}
        verb = {"fail": "would stop the run", "warn": "would warn", "quarantine": "would fail"}[self.severity]
        return f'the check "{self.name}" {verb}: {self.text}, not true{rows}; {before[self.passed]}'

    def to_json(self) -> dict[str, object]:
        """The form of `clew plan --against --json`."""
        return {
            "name": self.name,
            "severity": self.severity,
            "at": self.at,
            "passes": self.passes,
            "passed": self.passed,
            "failed_rows": self.failed_rows,
        }


def checked_at(
    cone: Cone, checks: Iterable[PlannedCheck], seq: int, before: Mapping[str, CheckResult]
) -> Iterator[CheckImpact]:
    """What checks that look at the rows after a step of the supposed plan would find.

    Rows that a check would delete are among those that go, so that there is nothing to say about it.
    """
    for check in checks:
        if check.at == seq and check.quarantined_by is None:
            known = before.get(check.name)
            passes, rows = _found(cone, check)
            passed = None if known is None else known.passed
            yield CheckImpact(check.name, check.severity, check.at, check.text, passes, passed, rows)


def _found(cone: Cone, check: PlannedCheck) -> tuple[bool, int | None]:
    """Whether a check passes, and how many rows fail where it is about rows."""
    if check.decided is not None:
        return not check.decided, None
    table = cone.trace.plan.input.table
    if check.of_dataset and check.dataset is not None:
        table = check.dataset.table
    if check.total is not None:
        return _adds_up(check, _seen(cone, check, table), cone), None
    failed = _failing(cone, check, table)
    return failed == 0, failed


def _seen(cone: Cone, check: PlannedCheck, table: str, *, failing: bool = False) -> Iterator[Row]:
    """The rows that a check looks at; on request only those that fail by themselves."""
    condition = check.condition(table) if failing else check.is_checked(table)
    if condition is None:
        return
    if check.of_dataset and check.dataset is not None:
        yield from cone.rows_of(check.dataset, condition)
    else:
        yield from cone.rows_now(condition, check.columns(table))


def _failing(cone: Cone, check: PlannedCheck, table: str) -> int:
    if check.failing is not None:
        return sum(1 for _ in _seen(cone, check, table, failing=True))
    if check.join is not None:
        rows = [dict(row.cells) for row in dataset_rows(cone.trace, check.join.dataset, None, check.join.dataset.table)]
        lookup, known = JoinLookup.of(check.join, rows, cone.trace.today), dict[tuple[Value, ...], bool]()
        read = sorted(name for owner, name in columns_of(check.join.on.tree) if owner == table)
        failed = 0
        for row in _seen(cone, check, table):
            key = tuple(row.tables[table][name] for name in read)
            if key not in known:
                known[key] = lookup.matches(row)
            failed += not known[key]
        return failed
    counts = Counter[tuple[Value, ...]]()
    for row in _seen(cone, check, table):
        key = tuple(row.tables[table][name] for name in check.keys)
        if None not in key:
            budgets.hold(_BYTES_PER_ROW)
            counts[key] += 1
    return sum(count for count in counts.values() if count > 1)


def _adds_up(check: PlannedCheck, rows: Iterable[Row], cone: Cone) -> bool:
    """Whether a statement about all rows together is true, or a total is the number that it ties to."""
    assert check.total is not None  # noqa: S101 - asked for these checks only
    held = list[Row]()
    for row in rows:
        budgets.hold(_BYTES_PER_ROW)
        held.append(row)
    total = group_evaluator(check.total.tree, cone.trace.today)(held)
    if check.tie is None:
        return total is True
    if check.tie.dataset is not None:
        held = list(cone.rows_of(check.tie.dataset, None))
    other = group_evaluator(check.tie.value.tree, cone.trace.today)(held)
    if not isinstance(total, int | Decimal | float) or not isinstance(other, int | Decimal | float):
        return False
    return abs(Decimal(total) - Decimal(other)) <= Decimal(check.tie.tolerance)
