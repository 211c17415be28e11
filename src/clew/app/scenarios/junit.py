"""Results of scenarios as JUnit XML, which build servers read."""

import json
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from clew.app.scenarios.running import ScenarioResult
from clew.app.scenarios.testing import TestReport


def junit_xml(report: TestReport, suite: str) -> str:
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
