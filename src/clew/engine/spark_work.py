"""Interrupting what Spark does for one piece of work, from any thread.

Without Spark Connect, `interruptTag` reaches nothing from another thread: Spark makes the thread a part of the tag.
Nor do tags of the context reach every job of an adaptive query with a broadcast. Job groups do. Spark Connect has no
job groups, but its tags are the client's and reach all threads.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from pyspark.sql import SparkSession

from clew.engine.spark_internals import is_connected

_log = logging.getLogger(__name__)
_AGAIN_S = 0.1
_GROUP = "spark.jobGroup.id"
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class SparkWork:
    """Work on Spark that any thread can interrupt."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._interrupting: threading.Thread | None = None

    @contextmanager
    def here(self) -> Iterator[None]:
        """What this thread starts inside belongs to the work; at the end, the work is over."""
        try:
            with _named(self._spark, self._name):
                yield
        finally:
            self._is_over.set()
            with self._lock:
                interrupting = self._interrupting
            if interrupting is not None:
                interrupting.join()

    def interrupt(self) -> None:
        """Interrupt the work, and whatever it starts from now on: a job may begin a moment after an interrupt."""
        with self._lock:
            if self._interrupting is None and not self._is_over.is_set():
                self._interrupting = threading.Thread(target=self._interrupt, name=f"stop {self._name}", daemon=True)
                self._interrupting.start()

    def _interrupt(self) -> None:
        while True:
            try:
                _interrupt(self._spark, self._name)
            except Exception as error:  # noqa: BLE001 - a session that is being stopped has ended the work already
                _log.warning("could not interrupt %s: %s", self._name, error)
            if self._is_over.wait(_AGAIN_S):
                return


def for_another_thread(spark: SparkSession, job: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A job that is interrupted together with what this thread does, though another thread does it."""
    names = spark.getTags() if is_connected(spark) else {spark.sparkContext.getLocalProperty(_GROUP)}

    def belonging(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        for name in names:
            if name is not None:
                _name(spark, name)
        return job(*arguments, **named)

    return belonging


@contextmanager
def _named(spark: SparkSession, name: str) -> Iterator[None]:
    if is_connected(spark):
        spark.addTag(name)
        try:
            yield
        finally:
            spark.removeTag(name)
        return
    before = spark.sparkContext.getLocalProperty(_GROUP)
    _name(spark, name)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(_GROUP, before)  # type: ignore[arg-type] # None: there was no group


def _name(spark: SparkSession, name: str) -> None:
    if is_connected(spark):
        spark.addTag(name)
    else:
        spark.sparkContext.setLocalProperty(_GROUP, name)


def _interrupt(spark: SparkSession, name: str) -> None:
    if is_connected(spark):
        spark.interruptTag(name)
    else:
        spark.sparkContext.cancelJobGroup(name)
