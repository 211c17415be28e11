"""A run that Dagster has started through Pipes: `python -m clew.integrations.dagster gl-close --period 2026-01`.

It tells Dagster what happens, and which assets it has materialized: with the rows, the run and a digest of each, and
with a check of everything that the run has left, if that is asked for. Dagster itself need not be installed beside
Clew: `dagster-pipes` is enough, which depends on nothing.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence

from dagster_pipes import PipesContext, PipesEnvVarParamsLoader, open_dagster_pipes, to_asset_key_path

from clew.api.run import Run
from clew.api.workspace import Workspace, open_workspace
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.diagnostics.codes.runs import RUN_HELD
from clew.events.artifacts import OUTPUT_KIND
from clew.events.envelope import StoredEvent
from clew.events.sentences import sentence
from clew.events.snapshot import RunStatus
from clew.integrations.run_documents import error_text, failure_text, passed_on, request_ids
from clew.plan import Plan

CHECK = "clew_verify"
"""The name of the check for which `--verify` reports a result."""
_DONE, _FAILED, _WRONG = 0, 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """Run a project as the arguments say. Returns 0 if it completed, as `clew run` does."""
    asked = _arguments().parse_args(words)
    if not PipesEnvVarParamsLoader().is_dagster_pipes_process():  # type: ignore[no-untyped-call]
        sys.stderr.write("this is started by Dagster Pipes; `clew run` runs a project by hand\n")
        return _WRONG
    # Whatever ends a step of Dagster, the run is cancelled cleanly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with open_dagster_pipes() as pipes:
        try:
            return _run(pipes, asked)
        except ClewError as error:
            pipes.log.error(error_text(error))  # noqa: TRY400 - a mistake of a user needs no traceback
            return _FAILED


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m clew.integrations.dagster", allow_abbrev=False)
    parser.add_argument("project", help="the id or name of a project")
    parser.add_argument("--period", help="a period of a calendar; by default the partition of the step")
    parser.add_argument("-w", "--workspace", default=".", help="the workspace folder")
    parser.add_argument("--env", help="the environment; by default the one that clew.yaml sets")
    parser.add_argument("--capture", action="append", default=[], help="a breakpoint to capture: NAME[=MODE]")
    parser.add_argument("--verify", action="store_true", help=f"report the check {CHECK} for every asset")
    return parser


def _run(pipes: PipesContext, asked: argparse.Namespace) -> int:
    keys = tuple(pipes.asset_keys) if pipes.is_asset_step else ()
    chosen = pipes.extras.get("assets", {})
    with open_workspace(asked.workspace, asked.env) as workspace:
        assets_of(workspace.plan(asked.project), keys, chosen)
        run = _requested(pipes, workspace, asked, asked.period or _partition(pipes))
        pipes.log.info("run %s of %s for %s", run.id, run.project, run.period)
        _drive(pipes, run)
        run.take_captures()
        run = run.refreshed()
        document = run.to_json()
        pipes.report_custom_message(passed_on(document))
        if run.view.snapshot.status is not RunStatus.COMPLETED:
            pipes.log.error(failure_text(document))
            return _FAILED
        assets = assets_of(run.plan, keys, chosen) if run.plan is not None else {}
        _report(pipes, run, assets)
        if asked.verify:
            _verify(pipes, run, assets)
        return _DONE


def _partition(pipes: PipesContext) -> str:
    if not pipes.is_partition_step:
        hint = "give --period, or a partition to the asset"
        raise UserError(WRONG_USAGE.anywhere(problem="there is no period", hint=hint))
    first, last = pipes.partition_key_range["start"], pipes.partition_key_range["end"]
    if first != last:
        problem = f"a run is for one period, and Dagster asks for the partitions {first} to {last} at once"
        hint = "give the asset BackfillPolicy.multi_run()"
        raise UserError(WRONG_USAGE.anywhere(problem=problem, hint=hint))
    return str(first)


def _requested(pipes: PipesContext, workspace: Workspace, asked: argparse.Namespace, period: str) -> Run:
    """The run for this step of Dagster's run: the one that an attempt before it has left, unless that failed."""
    for request_id in request_ids(f"dagster/{pipes.run_id}/{asked.project}/{period}"):
        run = workspace.submit(asked.project, period, request_id=request_id, captures=asked.capture).refreshed()
        if run.view.snapshot.status not in {RunStatus.FAILED, RunStatus.CANCELLED}:
            break
    return run


def _drive(pipes: PipesContext, run: Run) -> None:
    def tell(event: StoredEvent) -> None:
        pipes.log.info("%s %s %s", event.body.NAME, event.step_id, sentence(event.body))

    if run.view.snapshot.status.is_terminal:
        return
    done = run.drive(watch=tell, on_interrupt=lambda: pipes.log.warning("cancelling the run"))
    if done.status is None:
        raise UserError(RUN_HELD.anywhere(run_id=run.id))


def assets_of(plan: Plan, keys: Sequence[str], chosen: Mapping[str, str]) -> dict[int, str]:
    """Which asset each output step materializes: the one that was chosen for it, else the one with its name.

    The name is that of the dataset that it registers or of the step, with `_` for what Dagster does not allow.
    """
    found = dict[int, str]()
    called = {step.seq: {step.name, step.registers or step.name} for step in plan.outputs}
    for key in keys:
        steps = [seq for seq, names in called.items() if _is_for(names, key, chosen)]
        if not steps and len(keys) == len(called) == 1:
            steps = list(called)
        if len(steps) != 1:
            names = ", ".join(sorted({step.registers or step.name for step in plan.outputs})) or "none"
            problem = f'the asset "{key}" is {"several outputs" if steps else "no output"} of {plan.name}'
            hint = f'its outputs are {names}; choose with extras={{"assets": {{"OUTPUT": "{key}"}}}}'
            raise UserError(WRONG_USAGE.anywhere(problem=problem, hint=hint))
        found[steps[0]] = key
    return found


def _is_for(names: set[str], key: str, chosen: Mapping[str, str]) -> bool:
    if key in chosen.values():
        return any(chosen.get(name) == key for name in names)
    return to_asset_key_path(key)[-1] in {_as_dagsters(name) for name in names}


def _as_dagsters(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def _report(pipes: PipesContext, run: Run, assets: Mapping[int, str]) -> None:
    digests = {
        step.seq: artifact.sha256 for step in run.steps for artifact in step.artifacts if artifact.kind == OUTPUT_KIND
    }
    about = {
        "clew/run_id": run.id,
        "clew/project": run.project,
        "clew/project_version": run.record.request.project_version or "",
        "clew/period": run.period,
    }
    for output in run.outputs:
        seq = int(str(output["seq"]))
        if seq not in assets:
            continue
        written = {f"clew/{name}": str(value) for name, value in output.items() if name not in {"seq", "rows"}}
        pipes.report_asset_materialization(
            asset_key=assets[seq],
            data_version=digests.get(seq),
            metadata={"dagster/row_count": {"type": "int", "raw_value": int(str(output["rows"]))}, **about, **written},
        )


def _verify(pipes: PipesContext, run: Run, assets: Mapping[int, str]) -> None:
    """Everything that the run has recorded and written, once more, for each of its assets."""
    found = run.verification()
    problems = "; ".join(finding.problem for finding in found.findings[:5])
    for key in assets.values():
        pipes.report_asset_check(
            asset_key=key,
            check_name=CHECK,
            passed=found.is_intact,
            metadata={"findings": len(found.findings), "problems": problems or "none", **dict(found.checked)},
        )


if __name__ == "__main__":
    sys.exit(main())
