"""Results of scenarios as JSON and as JUnit XML."""

from decimal import Decimal
from xml.etree import ElementTree

from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.scenarios.matching import Mismatch
from clew.scenarios.scenario_results import ScenarioResult
from clew.scenarios.testing import TestReport

WRONG = Mismatch(
    "value mismatch", "output 60", {"key": "a", "total": 1}, {"key": "a", "total": Decimal("1.50")}, ("total",)
)
REPORT = TestReport(
    (
        ScenarioResult("good", "scenarios/good.yaml", "pass", 0.5),
        ScenarioResult("bad \x1b <one>", "scenarios/bad.yaml", "fail", 0.25, (WRONG,)),
        ScenarioResult(
            "broken", "scenarios/broken.yaml", "error", 0.0, (), SOURCE_UNAVAILABLE.anywhere(problem="no rows")
        ),
    ),
    seconds=1.0,
    spark_seconds=4.0,
)


def test_json_has_the_status_and_the_mismatches_of_each() -> None:
    document = REPORT.to_json()
    assert (document["passed"], document["failed"], document["errors"]) == (1, 1, 1)
    scenarios = document["scenarios"]
    assert isinstance(scenarios, list)
    assert [each["status"] for each in scenarios] == ["pass", "fail", "error"]
    assert scenarios[1]["mismatches"][0]["actual"] == {"key": "a", "total": "1.50"}
    assert scenarios[2]["error"]["code"] == "SourceUnavailable"
    assert not REPORT.is_ok


def test_junit_tells_failures_from_errors() -> None:
    suite = ElementTree.fromstring(REPORT.to_junit("clew"))
    assert {key: suite.attrib[key] for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    good, bad, broken = suite.findall("testcase")
    assert list(good) == []
    assert bad.attrib["name"] == "bad � <one>"
    failure = bad.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "value mismatch in output 60"
    assert '"total": "1.50"' in (failure.text or "")
    error = broken.find("error")
    assert error is not None
    assert (error.attrib["type"], error.attrib["message"]) == ("SourceUnavailable", "no rows")
