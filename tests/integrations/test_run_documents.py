from itertools import islice

import pytest

from clew.diagnostics import Span, UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.integrations.run_documents import error_text, failure_text, has_failed, passed_on, request_ids

RUN = {"run_id": "r-1", "project": "gl-close", "period": "2026-01", "status": "FAILED", "steps": [], "outputs": []}
ERROR = {"code": "DivisionByZero", "message": "1 / 0", "file": "p.yaml", "line": 3, "column": 5, "hint": "use IF"}


def test_a_task_that_is_repeated_asks_for_the_same_run_first() -> None:
    assert list(islice(request_ids("a"), 3)) == ["a", "a/2", "a/3"]
    assert next(request_ids("a")) == next(request_ids("a"))


@pytest.mark.parametrize(
    ("status", "failed"), [("FAILED", True), ("CANCELLED", True), ("COMPLETED", False), ("PENDING", False)]
)
def test_only_a_run_that_has_ended_without_a_result_has_failed(status: str, failed: bool) -> None:
    assert has_failed({**RUN, "status": status}) is failed


def test_a_failure_is_one_line_with_code_place_and_remedy() -> None:
    told = failure_text({**RUN, "error": ERROR})
    assert told == ("run r-1 of gl-close for 2026-01 is FAILED: DivisionByZero: 1 / 0 (p.yaml:3:5); hint: use IF")
    assert failure_text({**RUN, "status": "CANCELLED", "error": None}).endswith("is CANCELLED")


def test_all_mistakes_are_told() -> None:
    both = UserError(
        WRONG_USAGE.at(Span("a.yaml", 1, 2, 3), problem="one", hint="x"), WRONG_USAGE.anywhere(problem="two", hint="y")
    )
    assert error_text(both) == "WrongUsage: one (a.yaml:1:2); hint: x; WrongUsage: two; hint: y"


def test_what_later_tasks_get_is_small() -> None:
    assert passed_on({**RUN, "rows_loaded": 4}) == {
        "run_id": "r-1",
        "status": "FAILED",
        "project": "gl-close",
        "period": "2026-01",
        "rows_loaded": 4,
        "outputs": [],
    }
