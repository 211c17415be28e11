"""`clew test`."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.formatting import counted
from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import bad, good, say, write_file, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT, WRONG_USAGE

_TOLD = frozenset({None, "same", "differs"})

_CUT = "cut"
_WORDS_OF_CUT = 2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.workspace import Workspace
    from clew.scenarios.scenario_results import ScenarioResult
    from clew.scenarios.testing import ScenarioTests, TestedOn, TestReport


@command
@argument(
    "paths",
    metavar="PATH",
    nargs=-1,
    type=Path,
    help="Files or folders with scenarios, or: cut RUN. Default: scenarios/.",
)
@option("--where", metavar="CONDITION", help="For cut: which row of the run.")
@option(
    "--at", metavar="SEQ", type=WholeNumber(min=0), help="For cut: find the row after this step. Default: the last."
)
@option("--group", is_flag=True, help="For cut: a summary row with the rows behind it.")
@option("--mask", is_flag=True, help="For cut: stand-ins for all personal and secret values, also those you may see.")
@option("--output", metavar="FILE", type=Path, help="For cut: write the scenario to a file. Default: print it.")
@option("--quick", is_flag=True, help="Compute the scenarios without Spark, in milliseconds.")
@option("--compare", is_flag=True, help="With --quick: also run them on Spark, and tell where the two differ.")
@option("--junit", metavar="FILE", type=Path, help="Also write the results as JUnit XML.")
@environment_option
@workspace_option
def run_scenarios(
    context: click.Context,
    paths: tuple[Path, ...],
    where: str | None,
    at: int | None,
    group: bool,
    mask: bool,
    output: Path | None,
    quick: bool,
    compare: bool,
    junit: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Run scenarios, which test projects on small inputs.

    All scenarios share one Spark session. They do not touch the data or the runs of the workspace. With --quick, a
    scenario that cannot be computed without Spark is an error that says why.

    `clew test cut RUN --where CONDITION` cuts the smallest scenario out of a run that reproduces the result of one row:
    its input, the rows that were joined, appended or summed up for it, and what has to come out. It needs no Spark.
    """
    session = context.ensure_object(Session)
    if where is not None:
        with session.open(workspace, environment) as opened:
            _cut(session, opened, paths, where, at=at, group=group, mask=mask, output=output)
        return
    _require_none_of_cut(
        paths, {"--at": at is not None, "--group": group, "--mask": mask, "--output": output is not None}
    )
    if compare and not quick:
        raise UserError(WRONG_USAGE.anywhere(problem="--compare is for --quick", hint="add --quick"))
    on: TestedOn = "both" if compare else "quick" if quick else "spark"
    tests = session.open(workspace, environment).scenario_tests([path.absolute() for path in paths], on)
    report = tests.run() if session.wants_json else _run(tests)
    if junit is not None:
        _write_junit(report, junit)
    if session.wants_json:
        write_json(report.to_json())
    elif report.results:
        say(_summary(report))
    else:
        say("no scenarios; define them in scenarios/*.yaml")
    if not report.is_ok:
        raise click.exceptions.Exit(FAILED)


def _cut(
    session: Session,
    opened: "Workspace",
    words: tuple[Path, ...],
    where: str,
    *,
    at: int | None,
    group: bool,
    mask: bool,
    output: Path | None,
) -> None:
    """Cut a scenario and write it or print it."""
    if len(words) != _WORDS_OF_CUT or str(words[0]) != _CUT:
        problem = "--where is for `clew test cut RUN`"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="clew test cut RUN --where CONDITION"))
    cut = opened.get_run(str(words[1])).cut_scenario(where, at=at, group=group, mask=mask)
    if output is not None:
        with suppress(OSError):  # what cannot be written is told below
            output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, cut.text)
    if session.wants_json:
        write_json(cut.to_json())
    elif output is None:
        say(cut.text.rstrip("\n"))
    else:
        rows = ", ".join(f"{counted(count, 'row')} of {dataset}" for dataset, count in cut.rows.items())
        say(f"written to {output}: {rows}")
        if cut.masked:
            say(f"stand-ins for the values of {', '.join(cut.masked)}")


def _require_none_of_cut(words: tuple[Path, ...], given: "Mapping[str, bool]") -> None:
    named = next((name for name, is_given in given.items() if is_given), None)
    is_cut = len(words) == _WORDS_OF_CUT and str(words[0]) == _CUT and not words[0].exists()
    if named is not None or is_cut:
        problem = f"{named} is for `clew test cut RUN --where CONDITION`" if named else "cut needs --where"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="clew test cut RUN --where CONDITION"))


def _run(tests: "ScenarioTests") -> "TestReport":
    """Run the scenarios with a progress line on terminals; show failures as they happen."""
    from clew.cli.views.scenarios import result_lines, scenario_progress

    with scenario_progress(tests.count) as progress:

        def watch(result: "ScenarioResult") -> None:
            for line in result_lines(result, tests.source_of):
                progress.tell(line)
            progress.advance(result.name)

        return tests.run(watch)


def _summary(report: "TestReport") -> str:
    words = [
        good(f"{report.count('pass')} passed") if report.is_ok else f"{report.count('pass')} passed",
        *([bad(f"{report.count('fail')} failed")] if report.count("fail") else []),
        *([bad(counted(report.count("error"), "error"))] if report.count("error") else []),
    ]
    spark = f" after Spark started in {report.spark_seconds:.1f} s" if report.spark_seconds else ""
    told = f"{counted(len(report.results), 'scenario')}: {', '.join(words)} ({report.seconds:.1f} s{spark})"
    return told + _agreed(report)


def _agreed(report: "TestReport") -> str:
    """How far quick and Spark agree, where that was asked."""
    asked = [result.quick for result in report.results if result.quick is not None]
    if not asked:
        return ""
    same, differs = asked.count("same"), asked.count("differs")
    unable = [f"\n  {each.name}: {each.quick}" for each in report.results if each.quick not in _TOLD]
    others = f", {bad(f'{differs} differ')}" if differs else ""
    more = f", {len(unable)} only on Spark" if unable else ""
    return f"\nquick and Spark: {same} the same{others}{more}{''.join(unable)}"


def _write_junit(report: "TestReport", file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(report.to_junit("clew"), encoding="utf-8")
    except OSError as error:
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=f"{file}: {error.strerror or error}")) from error
