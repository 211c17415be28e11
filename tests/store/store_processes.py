"""What other processes do to a store in tests."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier

from clew.events import AlertRaised, NewEvent
from clew.store import StoreOptions, open_run_stores
from tests.runs.runs_histories import START
from tests.store.seals import the_key


def fork_context() -> ForkServerContext:
    """Processes that start quickly, from a server that has everything imported and no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["clew.store", "clew.runs.worker", "runs_histories", "store_processes"])
    return context


def run_all(context: ForkServerContext, target: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    processes = [context.Process(target=target, args=one) for one in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0, process.exitcode


def alert(writer: int, number: int) -> NewEvent:
    body = AlertRaised("TEST", "P2", f"{writer}:{number}")
    return NewEvent(body, START, step_id=f"ALERT:{writer}", logical_attempt_id=number)


def append_many(url: str, run_ids: list[str], writer: int, count: int, barrier: Barrier) -> None:
    with open_run_stores(url, StoreOptions(busy_timeout_s=60, key=the_key)) as stores:
        barrier.wait(60)
        for number in range(count):
            for run_id in run_ids:
                batch = [alert(writer, 2 * number), alert(writer, 2 * number + 1)]
                stores.writer.append(run_id, batch)
