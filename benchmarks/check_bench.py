"""What a user waits for: cold commands against a bare import of pydantic, and checking a large workspace.

Run it alone with `python -m benchmarks.check_bench`. Commands are new processes; the sides of a ratio take turns, so
that both see the same machine, and the median of all rounds counts.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import yaml
from benchmarks.figure import Figure

import clew
from clew.sample import write_sample

COLD_ROUNDS = 15
WARM_ROUNDS = 3
OPERATIONS = 1_000
COLUMNS = 200


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        sample, large = Path(folder) / "sample", Path(folder) / "large"
        write_sample(sample)
        write_large(large)
        return [*cold_commands(sample), *large_workspace(large)]


def rounds_of(number: int, *sides: Callable[[], object]) -> list[float]:
    """The median time of each side in seconds."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(number):
        for side, taken in zip(sides, times, strict=True):
            start = perf_counter()
            side()
            taken.append(perf_counter() - start)
    return [median(taken) for taken in times]


def cold_commands(sample: Path) -> list[Figure]:
    def process(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], cwd=sample, stdout=subprocess.DEVNULL, check=True)

    sides = (
        process("-c", "import pydantic"),
        process("-m", "clew.cli", "check"),
        process("-m", "clew.cli", "--help"),
        process("-m", "clew.cli", "plan", "gl-close"),
    )
    for side in sides:
        side()
    pydantic, check, help_, plan = rounds_of(COLD_ROUNDS, *sides)
    return [
        Figure("clew check, cold, on the sample", check * 1e3, "ms"),
        Figure("clew check, cold, to a bare import of pydantic", check / pydantic, "times"),
        Figure("clew plan, cold, to a bare import of pydantic", plan / pydantic, "times"),
        Figure("clew --help, cold, to a bare import of pydantic", help_ / pydantic, "times"),
    ]


def large_workspace(root: Path) -> list[Figure]:
    text = (root / "projects" / "large.yaml").read_text(encoding="utf-8")
    assert clew.open(root).check().is_ok
    check, load = rounds_of(
        WARM_ROUNDS, lambda: clew.open(root).check(), lambda: yaml.load(text, Loader=yaml.CSafeLoader)
    )
    size = f"{OPERATIONS:,} operations on {COLUMNS} columns"
    return [
        Figure(f"check {size}", check * 1e3, "ms"),
        Figure(f"check {size}, to PyYAML reading the same file", check / load, "times"),
    ]


def write_large(root: Path) -> None:
    """A project with many updates, each with a selector and two assignments, on a wide table."""
    columns = "\n".join(f'    - {{name: column_{n}, type: "decimal(18,2)"}}' for n in range(COLUMNS))
    operations = "\n".join(
        f"  - seq: {n}\n"
        f"    name: Step {n}\n"
        f"    type: update\n"
        f"    selector: column_{n % COLUMNS} > {n} AND NOT ISNULL(column_{(n + 1) % COLUMNS})\n"
        f"    arguments:\n"
        f"      assignments:\n"
        f"        - {{column: column_{(n + 2) % COLUMNS}, expression: 'ROUND(column_{(n + 3) % COLUMNS} * 1.19, 2)'}}\n"
        f"        - {{column: column_{(n + 4) % COLUMNS}, expression: 'COALESCE(column_{(n + 5) % COLUMNS}, 0) + {n}'}}"
        for n in range(1, OPERATIONS + 1)
    )
    files = {
        "clew.yaml": "name: large\n",
        "datasources/files.yaml": "{id: files, type: files, options: {root: data}}\n",
        "resolvers/tables.yaml": "id: tables\nis_default: true\nrules: [{name: all, strategy: {type: path,"
        ' datasource_id: files, path: "{table}.csv"}}]\n',
        "datasets/wide.yaml": f"id: wide\nmain_table:\n  name: wide\n  columns:\n{columns}\n",
        "projects/large.yaml": f"id: large\ninput_dataset: wide\noperations:\n{operations}\n",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    for figure in measure():
        print(f"{figure.name:<70} {figure.value:>14,.2f} {figure.unit}")
