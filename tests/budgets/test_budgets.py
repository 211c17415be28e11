"""What a question may cost, and how it is stopped."""

import subprocess
import sys
import threading

import duckdb
import pytest

from clew import budgets
from clew.budgets import Allowance, QuestionLimits, QuestionStopped, asking, under
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.questions import CALLER_GONE
from clew.lang.functions.declaration import Signature
from clew.lang.functions.patterns import PATTERNS
from clew.lang.functions.text import TEXT
from clew.lang.types import STRING
from clew.trace.sql import Sql
from clew.trace.trace_database import answered, connected

ENDLESS = "SELECT sum(a.i * b.i) FROM range(1000000000) a(i), range(1000000) b(i)"


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_question_ends_at_its_deadline_and_says_so() -> None:
    clock = Clock()
    budget = Allowance(QuestionLimits(deadline_s=30), monotonic=clock)
    clock.now = 30.0
    with under(budget):
        budgets.check()
    clock.now = 30.1
    with pytest.raises(UserError) as raised, under(budget):
        budgets.check()
    assert raised.value.code == "QuestionTooLong"
    assert "30 seconds" in raised.value.diagnostic.message
    assert raised.value.diagnostic.hint is not None
    assert "deadline_seconds" in raised.value.diagnostic.hint


def test_memory_that_was_given_back_can_be_used_again_and_the_rest_is_refused() -> None:
    budget = Allowance(QuestionLimits(memory_bytes=10_000_000))
    with under(budget):
        for _ in range(5):
            with budgets.holding(9_000_000):
                pass
        budgets.hold(9_000_000)
    with pytest.raises(UserError) as raised, under(budget):
        budgets.hold(2_000_000)
    assert raised.value.code == "QuestionTooLarge"
    assert "10 MB" in raised.value.diagnostic.message


def test_code_that_handles_errors_and_goes_on_does_not_go_on_with_a_stopped_question() -> None:
    budget, passed = Allowance(QuestionLimits()), list[str]()

    def handle_errors_and_go_on() -> None:
        try:
            budgets.check()
        except ClewError:
            passed.append("handled")
        passed.append("went on")

    budget.stop(UserError(CALLER_GONE.anywhere()))
    with pytest.raises(UserError) as raised, under(budget):
        handle_errors_and_go_on()
    assert raised.value.code == "CallerGone"
    assert passed == []


def test_a_question_inside_another_has_the_budget_of_the_outer_one() -> None:
    with asking(QuestionLimits(memory_bytes=1_000_000)):
        outer = budgets.current()
        with asking(QuestionLimits(memory_bytes=9_000_000)):
            assert budgets.current() is outer
    assert budgets.current() is None


def test_outside_of_questions_nothing_is_counted() -> None:
    budgets.check()
    budgets.hold(10**15)
    with asking(None):
        budgets.hold(10**15)


@pytest.mark.parametrize("before", [True, False], ids=["before it began", "while it runs"])
def test_a_query_of_the_database_ends_when_its_question_is_stopped(*, before: bool) -> None:
    budget, errors, begun = Allowance(QuestionLimits(deadline_s=3600)), list[ClewError](), threading.Event()

    def ask() -> None:
        try:
            with under(budget), connected(budget.limits) as connection:
                begun.set()
                answered(connection, Sql(ENDLESS))
        except ClewError as error:
            errors.append(error)

    if before:
        budget.stop(UserError(CALLER_GONE.anywhere()))
    asking_thread = threading.Thread(target=ask, daemon=True)
    asking_thread.start()
    assert begun.wait(60)
    budget.stop(UserError(CALLER_GONE.anywhere()))
    asking_thread.join(60)
    assert not asking_thread.is_alive()
    assert [error.code for error in errors] == ["CallerGone"]


def test_the_database_may_not_take_more_memory_than_the_question() -> None:
    limits = QuestionLimits(memory_bytes=50_000_000, spill_bytes=0)
    with pytest.raises(UserError) as raised, asking(limits), connected(limits) as connection:
        answered(connection, Sql("SELECT list(i::VARCHAR || repeat('x', 100)) FROM range(5000000) t(i)"))
    assert raised.value.code == "QuestionTooLarge"


def test_an_answer_is_refused_before_all_of_it_is_there() -> None:
    limits = QuestionLimits(memory_bytes=20_000_000)
    with connected(QuestionLimits()) as connection:
        with pytest.raises(UserError) as raised, asking(limits):
            answered(connection, Sql("SELECT i FROM range(1000000000) t(i)"))
        assert raised.value.code == "QuestionTooLarge"
        with asking(limits):
            assert answered(connection, Sql("SELECT 7 AS i"))["i"].to_pylist() == [7]


def test_errors_of_the_database_stay_what_they_are() -> None:
    limits = QuestionLimits()
    with asking(limits), connected(limits) as connection, pytest.raises(duckdb.Error):
        answered(connection, Sql("SELECT nothing FROM nowhere"))


INTERRUPTED = f"""
import os, signal
from clew.budgets import QuestionLimits, asking, interruptibly
from clew.trace.trace_database import connected

with asking(QuestionLimits(deadline_s=3600)), connected(None) as connection:
    def work():
        os.kill(os.getpid(), signal.SIGINT)
        return connection.sql("{ENDLESS}").fetchall()
    try:
        interruptibly(work, connection.interrupt)
    except KeyboardInterrupt:
        print("interrupted", connection.sql("SELECT 7").fetchall())
"""


def test_ctrl_c_ends_a_query_of_the_database_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted [(7,)]\n", done.stderr


def test_a_stopped_question_is_no_error_that_readers_handle() -> None:
    assert not issubclass(QuestionStopped, ClewError)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("REPLACE", ("x" * 4_000, "x", "y" * 100)), ("REGEX_REPLACE", ("x" * 4_000, "x", "y" * 100))],
)
def test_long_texts_that_functions_make_count(name: str, arguments: tuple[str, ...]) -> None:
    [function] = [each for each in (*TEXT, *PATTERNS) if each.name == name]
    make = function.bind(Signature((STRING, STRING, STRING), STRING))
    assert len(str(make(*arguments))) == 400_000
    with under(Allowance(QuestionLimits(memory_bytes=100_000))), pytest.raises(QuestionStopped):
        make(*arguments)
