"""What compiling costs: 1,000 operations over 200 columns, against loading the same files and against 100 operations.

Run it alone with `python -m benchmarks.plan_bench`. Each figure is the best of several rounds.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.figure import Figure

from clew.definitions import load_workspace
from clew.plan import compile_workspace, plan_from_json, plan_to_json

COLUMNS = 200
ROUNDS = 5


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large", Path(folder) / "small"
        write_workspace(large, operations=1000)
        write_workspace(small, operations=100)
        load = seconds(lambda: load_workspace(large))
        workspace, little = load_workspace(large).workspace, load_workspace(small).workspace
        compile_large = seconds(lambda: compile_workspace(workspace))
        compile_small = seconds(lambda: compile_workspace(little))
        plan = compile_workspace(workspace).plans["large"]
    text = json.dumps(plan_to_json(plan))
    return [
        Figure("compile 1,000 operations over 200 columns", compile_large, "s"),
        Figure("compile against load of the YAML", compile_large / load, "times"),
        Figure("1,000 operations against ten times 100", compile_large / (10 * compile_small), "times", at_most=3),
        Figure("plan to JSON text", seconds(lambda: json.dumps(plan_to_json(plan))), "s"),
        Figure("plan from JSON text", seconds(lambda: plan_from_json(json.loads(text))), "s"),
    ]


def seconds(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        action()
        best = min(best, perf_counter() - start)
    return best


def write_workspace(root: Path, operations: int) -> None:
    """A project whose operations add a column each, and look at those that operations before have added."""
    columns = "".join(f'    - {{name: c{n}, type: "decimal(18,2)"}}\n' for n in range(COLUMNS))
    files = {
        "clew.yaml": "name: large\n",
        "datasources/files.yaml": "{id: files, type: files, options: {root: data}}\n",
        "resolvers/all.yaml": (
            "{id: all, is_default: true, rules: [{name: all, strategy: "
            "{type: path, datasource_id: files, path: '{table}.csv', format: csv}}]}\n"
        ),
        "datasets/wide.yaml": f"id: wide\nmain_table:\n  name: wide\n  columns:\n{columns}",
        "projects/large.yaml": "id: large\ninput_dataset: wide\nselectors: {positive: c0 > 0 AND c1 > 0}\noperations:\n"
        + "".join(_operations(operations)),
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _operations(number: int) -> Iterator[str]:
    for seq in range(1, number + 1):
        before = f"c{seq % COLUMNS}" if seq == 1 else f"n{seq - 1}"
        value = f"ROUND({before} * 0.5 + wide.c{seq % COLUMNS}, 2)"
        yield f"  - seq: {seq}\n    name: step {seq}\n"
        if seq % 10 == 0:
            yield "    type: aggregate\n    arguments:\n      group_by: [c3]\n      aggregations:\n"
            yield f"        - {{column: n{seq}, expression: SUM({before})}}\n"
        else:
            yield '    type: update\n    selector: "{{positive}}"\n    arguments:\n      assignments:\n'
            yield f'        - {{column: n{seq}, expression: "{value}"}}\n'


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.name:<50} {figure.value:8.3f} {figure.unit}")
