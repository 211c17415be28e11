"""What all tests share: reproducible property tests, and golden files that change only on purpose."""

import gc
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tools import jvm_archive
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.diagnostics.doors import watched
from tests.storage.s3_fixtures import proxy, s3
from tests.tiers import FEW_EXAMPLES, GUARD, SPARK, Guard, add_markers, is_for_connect

__all__ = ["proxy", "s3"]
"""Fixtures that tests of several packages share."""

settings.register_profile(
    "clew",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("clew"), max_examples=FEW_EXAMPLES)
settings.load_profile("clew")

os.environ.setdefault("JAVA_TOOL_OPTIONS", jvm_archive.options(jvm_archive.archive()))
"""Every JVM of a test starts fast and does little."""

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")))
)
"""Processes that tests start find the modules of the tests."""

os.environ["CLEW_CACHE_MB"] = "0"
"""Nothing is kept in the folder of whoever runs the tests, and requests can be counted. Tests of copies set it."""

GOLDEN = Path(__file__).parent / "golden"


_LEFT_OPEN_BY_PYSPARK = pytest.mark.filterwarnings(
    r"ignore:unclosed <socket\.socket .*laddr=\('127\.0\.0\.1', \d+\), raddr=\('127\.0\.0\.1', \d+\)>:ResourceWarning"
)
"""`collect` of PySpark 4.0 and 4.1 does not close the socket on which rows come from the JVM."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files with what the tests see")
    parser.addoption(
        "--spark-connect",
        action="store_true",
        help="run the tests that share a Spark session, and no others, on a Spark Connect server",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[GUARD] = guard = Guard()
    config.add_cleanup(guard.close)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    add_markers(items)
    if config.getoption("--spark-connect"):
        chosen = [item for item in items if is_for_connect(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker(SPARK):
            item.add_marker(_LEFT_OPEN_BY_PYSPARK)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with item.config.stash[GUARD].around(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    finally:
        item.config.stash[GUARD].complain()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        with watched(item.nodeid):
            yield
    finally:
        item.config.stash[GUARD].complain()


_LONG = (
    "engine/test_engine_masters.py",
    "engine/test_engine_s3.py",
    "engine/test_captures.py",
    "engine/test_engine_zombies.py",
    "engine/test_engine_s3_zombies.py",
    "engine/test_engine_s3_faults.py",
    "engine/test_engine_connectors.py",
    "engine/test_engine_crashes.py",
    "docs/test_demo.py",
    "privacy/test_canaries.py",
    "docs/test_packages.py",
    "engine/test_engine_disks.py",
    "engine/test_run_commands.py",
    "engine/test_server_on_spark.py",
    "engine/test_table_outputs.py",
    "engine/test_table_inputs.py",
    "engine/test_submitting.py",
    "engine/",
)
"""Files that take long, the longest first; then the others of tests/engine, which need a Spark session."""


def _turn(item: pytest.Item) -> int:
    path = item.nodeid.removeprefix("tests/")
    return next((turn for turn, start in enumerate(_LONG) if path.startswith(start)), len(_LONG))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What PySpark leaves open is collected with the last of the tests that use it, and is no fault of others."""
    if item.get_closest_marker(SPARK) and (nextitem is None or not nextitem.get_closest_marker(SPARK)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


class _FilesInTurn(LoadScopeScheduling):
    """A file of tests goes to whichever worker is free, so that what its tests share is set up once.

    Files come in the order in which their tests were collected, the long ones first: none is left for the end, when
    one worker would go on alone.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    config.option.loadscopereorder = False
    return _FilesInTurn(config, log)


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where texts go in a test, nothing says how wide it is, whatever the one says that the tests were started from."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of a name under tests/golden/, or rewrites the file with --update-golden."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(name: str, actual: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8", newline="\n")
        assert path.is_file(), f"tests/golden/{name} does not exist; write it with: make golden"
        assert actual == path.read_bytes().decode(), f"differs from tests/golden/{name}; if it should: make golden"

    return compare
