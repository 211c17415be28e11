"""Tasks in a real Airflow. A test puts this file into Airflow's folder of DAGs and runs it with Airflow's interpreter.

TASKS is JSON: a list with the arguments of a ClewRunOperator each. A task with `how: killed` is killed when it has a
run, one with `how: twice` is tried again after its end. The last line of the output says what became of each.
"""

import json
import os
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any

from airflow.providers_manager import ProvidersManager
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException

from clew.integrations.airflow import RUN_ID_KEY, ClewRunLink, ClewRunOperator


class KilledRunOperator(ClewRunOperator):
    """Killed while it waits for its run."""

    def _follow(self, server: Any, run_id: str) -> None:
        self.on_kill()
        super()._follow(server, run_id)


class TwiceRunOperator(ClewRunOperator):
    """Tried again by Airflow, which has not heard of the end of its first try. Returns the runs of both."""

    def execute(self, context: Any) -> dict[str, Any]:
        return {"runs": [self._tried(context), self._tried(context)]}

    def _tried(self, context: Any) -> str:
        with suppress(AirflowException):
            super().execute(context)
        return str(self._run["run_id"]) if self._run else "none"


KINDS = {"once": ClewRunOperator, "killed": KilledRunOperator, "twice": TwiceRunOperator}


def dag_of(number: int, settings: dict[str, Any]) -> DAG:
    """A DAG with one task."""
    kind = KINDS[settings.pop("how", "once")]
    with DAG(f"dag{number}", schedule=None, start_date=datetime(2026, 1, 1)) as dag:  # noqa: DTZ001
        kind(task_id="close", **settings)
    return dag


DAGS = [dag_of(number, settings) for number, settings in enumerate(json.loads(os.environ["TASKS"]))]
globals().update({dag.dag_id: dag for dag in DAGS})


def outcome(dag: DAG) -> dict[str, Any]:
    """Run a DAG as `airflow dags test` does, and look at its task."""
    run = dag.test()
    [ti] = run.get_task_instances()
    keys = {"run_id": RUN_ID_KEY, "returned": "return_value", "link": ClewRunLink().xcom_key}
    return {"state": ti.state, **{name: ti.xcom_pull(task_ids="close", key=key) for name, key in keys.items()}}


if __name__ == "__main__":
    connection = ProvidersManager().hooks.get("clew")
    told = {"tasks": [outcome(dag) for dag in DAGS], "connection": connection.hook_name if connection else None}
    sys.stdout.write("\n" + json.dumps(told) + "\n")
