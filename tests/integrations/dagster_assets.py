"""Assets of a real Dagster that Clew materializes. A test runs this file with Dagster's interpreter.

COMMAND is the interpreter of Clew, LEDGER a workspace with the sample. The last line says what Dagster has recorded.
"""

import json
import os
import sys
from typing import Any

import dagster as dg

COMMAND = [os.environ["COMMAND"], "-m", "clew.integrations.dagster", "gl-close", "-w", os.environ["LEDGER"]]
MONTHS = dg.StaticPartitionsDefinition(["2026-01", "1999-01"])


@dg.multi_asset(
    specs=[dg.AssetSpec(["ledger", "gl_closed"]), dg.AssetSpec(["ledger", "review"])],
    partitions_def=MONTHS,
    check_specs=[dg.AssetCheckSpec("clew_verify", asset=["ledger", name]) for name in ("gl_closed", "review")],
)
def closed(context: dg.AssetExecutionContext, pipes: dg.PipesSubprocessClient):  # type: ignore[no-untyped-def] # noqa: ANN201
    """The close of a month, and what it leaves for review."""
    extras = {"assets": {"Write review file": "ledger/review"}}
    return pipes.run(command=[*COMMAND, "--verify"], context=context, extras=extras).get_results()


@dg.asset
def nowhere(context: dg.AssetExecutionContext, pipes: dg.PipesSubprocessClient) -> Any:
    """An asset that no output of the project has the name of."""
    return pipes.run(command=[*COMMAND, "--period", "2026-01"], context=context).get_results()


def told(asset: Any, partition: str | None) -> dict[str, Any]:
    """What Dagster knows after it has run an asset."""
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [asset],
            partition_key=partition,
            instance=instance,
            resources={"pipes": dg.PipesSubprocessClient()},
            raise_on_error=False,
        )
        made = [event.materialization for event in done.get_asset_materialization_events()]
        return {
            "success": done.success,
            "materialized": {
                "/".join(each.asset_key.path): {name: value.value for name, value in each.metadata.items()}
                | {"data_version": (each.tags or {}).get("dagster/data_version")}
                for each in made
            },
            "checks": {
                "/".join(check.asset_key.path): [check.check_name, check.passed]
                for check in done.get_asset_check_evaluations()
            },
            "log": [entry.user_message for entry in instance.all_logs(done.run_id)],
        }


if __name__ == "__main__":
    found = [told(closed, "2026-01"), told(closed, "1999-01"), told(nowhere, None)]
    sys.stdout.write("\n" + json.dumps(found) + "\n")
