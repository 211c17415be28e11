"""Work that ends only if it is interrupted, for tests that must end in any case."""

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

_Result = TypeVar("_Result")


def ended(work: Callable[[], _Result], *, or_else: Callable[[], object], within_s: float = 90) -> _Result:
    """The result of work that another thread does. If it has not ended by then, the test fails: `or_else` ends it."""
    results, errors = list[_Result](), list[BaseException]()

    def do() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised where the test waits
            errors.append(error)

    thread = threading.Thread(target=do, name="endless", daemon=True)
    thread.start()
    thread.join(within_s)
    if thread.is_alive():
        or_else()
        pytest.fail("nothing has interrupted it")
    if errors:
        raise errors[0]
    return results[0]
