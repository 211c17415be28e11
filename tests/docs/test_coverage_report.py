"""`make coverage`: what it prints about what was measured."""

from typing import Any

from tools.coverage_report import by_package, package_of, table


def file(lines: int, lines_taken: int, branches: int, branches_taken: int) -> dict[str, Any]:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": lines_taken,
            "num_branches": branches,
            "covered_branches": branches_taken,
        }
    }


MEASURED = {
    "files": {
        "src/clew/lang/parser.py": file(100, 90, 40, 30),
        "src/clew/lang/functions/text.py": file(100, 100, 10, 10),
        "src/clew/gc/garbage.py": file(50, 25, 20, 5),
        "/elsewhere/clew/src/clew/deferred.py": file(10, 10, 0, 0),
    }
}


def test_files_are_summed_by_package_and_those_that_were_tested_least_come_first() -> None:
    assert list(table(by_package(MEASURED))) == [
        "package          lines    taken  branches    taken",
        "gc                  50    50.0%        20    25.0%",
        "lang               200    95.0%        50    80.0%",
        "clew                10   100.0%         0   100.0%",
        "all                260    86.5%        70    64.3%",
    ]


def test_modules_of_clew_itself_are_a_package_wherever_the_code_lies() -> None:
    assert package_of("/clew/clew/src/clew/deferred.py") == "clew"
    assert package_of("src/clew/engine/sql/text.py") == "engine"
