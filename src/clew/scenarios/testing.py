"""Runs all scenarios of a workspace, or those of some files: on Spark, without it, or both.

Files that cannot be read count as errors. Results can be written as JUnit XML, which build servers read.
"""

# ruff: noqa: PLC0415 - what runs scenarios on Spark is imported only where they run there

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from clew.deferred import dataclass
from clew.definitions import LoadedWorkspace, Scenario, load_scenarios
from clew.definitions.kinds import FILE_KINDS
from clew.diagnostics import Diagnostic
from clew.scenarios.both import QuickBeside
from clew.scenarios.quick import QuickRunner
from clew.scenarios.scenario_results import ScenarioResult

if TYPE_CHECKING:
    from clew.engine.types import SparkSession

TestedOn = Literal["spark", "quick", "both"]
"""What runs the scenarios. With both, Spark has the word, and quick must agree."""


@dataclass(frozen=True, slots=True)
class TestReport:
    """How all scenarios went."""

    __test__ = False

    results: tuple[ScenarioResult, ...]
    seconds: float
    """Without the start of Spark."""
    spark_seconds: float

    @property
    def is_ok(self) -> bool:
        """Whether all passed."""
        return all(result.status == "pass" for result in self.results)

    def count(self, status: str) -> int:
        """How many ended like this."""
        return sum(result.status == status for result in self.results)

    def to_junit(self, suite: str) -> str:
        """JUnit XML: one test suite with a test case for each scenario."""
        return _junit_xml(self, suite)

    def to_json(self) -> dict[str, object]:
        """The form of `test --json`."""
        return {
            "passed": self.count("pass"),
            "failed": self.count("fail"),
            "errors": self.count("error"),
            "seconds": round(self.seconds, 3),
            "spark_seconds": round(self.spark_seconds, 3),
            "scenarios": [result.to_json() for result in self.results],
        }


class ScenarioTests:
    """The scenarios that a call of `clew test` runs."""

    def __init__(
        self,
        loaded: LoadedWorkspace,
        paths: Sequence[Path],
        spark: "Callable[[], SparkSession]",
        on: TestedOn = "spark",
    ) -> None:
        self._on = on
        self._loaded = load_scenarios(loaded, paths) if paths else loaded
        self._problems = _problems_by_file(self._loaded, only_scenarios=not paths)
        self._session = spark
        self._spark_seconds = 0.0

    @property
    def count(self) -> int:
        """How many results there will be."""
        return len(self._runnable) + len(self._problems)

    @property
    def _runnable(self) -> list[Scenario]:
        return [each for each in self._loaded.workspace.scenarios if each.file not in self._problems]

    def source_of(self, file: str) -> str | None:
        """The text of a file, for excerpts in messages."""
        return self._loaded.source_of(file)

    def run(self, watch: Callable[[ScenarioResult], None] = lambda _result: None) -> TestReport:
        """Run them all, on Spark in one session, and show each result to `watch` as it comes."""
        started = time.perf_counter()
        results = list[ScenarioResult]()
        for result in self._results():
            results.append(result)
            watch(result)
        seconds = time.perf_counter() - started - self._spark_seconds
        return TestReport(tuple(results), seconds, self._spark_seconds)

    def _results(self) -> Iterator[ScenarioResult]:
        for file, problem in self._problems.items():
            names = [each.name for each in self._loaded.workspace.scenarios if each.file == file]
            yield ScenarioResult(names[0] if names else Path(file).stem, file, "error", 0.0, (), problem)
        if not self._runnable:
            return
        workspace = self._loaded.workspace
        if self._on == "quick":
            yield from QuickRunner(workspace).run(self._runnable)
            return
        from clew.scenarios.running import ScenarioRunner

        beside = QuickBeside(workspace) if self._on == "both" else None
        yield from ScenarioRunner(workspace, self._spark, beside).run(self._runnable)

    def _spark(self) -> "SparkSession":
        started = time.perf_counter()
        session = self._session()
        self._spark_seconds += time.perf_counter() - started
        return session


def _problems_by_file(loaded: LoadedWorkspace, *, only_scenarios: bool) -> dict[str, Diagnostic]:
    """The first thing that is wrong with each file of scenarios."""
    folder = FILE_KINDS["scenario"].folder
    found = dict[str, Diagnostic]()
    for diagnostic in loaded.diagnostics:
        file = diagnostic.span.file if diagnostic.span else None
        if file is not None and (not only_scenarios or file.partition("/")[0] == folder):
            found.setdefault(file, diagnostic)
    return found


def _junit_xml(report: TestReport, suite: str) -> str:
    """One test suite with a test case for each scenario."""
    root = Element(
        "testsuite",
        name=_text(suite),
        tests=str(len(report.results)),
        failures=str(report.count("fail")),
        errors=str(report.count("error")),
        time=f"{report.seconds:.3f}",
    )
    for result in report.results:
        _add_case(root, result)
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _add_case(root: Element, result: ScenarioResult) -> None:
    case = SubElement(
        root, "testcase", name=_text(result.name), classname=_text(result.file), time=f"{result.seconds:.3f}"
    )
    if result.error is not None:
        error = SubElement(case, "error", type=result.error.code, message=_text(result.error.message))
        error.text = _text(
            f"{result.error.span}: {result.error.message}" if result.error.span else result.error.message
        )
    elif result.mismatches:
        first = result.mismatches[0]
        failure = SubElement(case, "failure", type=first.kind, message=_text(f"{first.kind} in {first.where}"))
        failure.text = _text(_lines([mismatch.to_json() for mismatch in result.mismatches]))


def _lines(mismatches: Sequence[dict[str, object]]) -> str:
    return "\n".join(json.dumps(mismatch, ensure_ascii=False) for mismatch in mismatches)


def _text(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(ch if ch in "\t\n" or ch.isprintable() else "�" for ch in text)
