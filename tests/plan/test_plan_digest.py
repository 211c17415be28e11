"""The digest: the same wherever and however the same thing is written, another one where it does something else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.definitions import load_workspace
from clew.plan import compile_workspace
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

SAMPLE = Path(__file__).parents[2] / "src" / "clew" / "sample" / "workspace"

OPERATIONS = """
    - seq: 1
      name: convert
      type: update
      selector: region = "N"
      arguments:
        joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
        assignments: [{column: x, expression: amount * 2}]
    - seq: 2
      name: sum
      type: aggregate
      arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(x)}]}
    - seq: 3
      name: write
      type: output
      arguments: {destination: {location: {path: out.csv}}, columns: [region, total]}
"""


def digests_below(root: Path) -> dict[str, str]:
    plans = compile_workspace(load_workspace(root).workspace).plans
    return {name: plan.digest for name, plan in plans.items()}


def test_it_does_not_depend_on_where_the_workspace_stands(tmp_path: Path) -> None:
    elsewhere = tmp_path / "a" / "very" / "different place"
    shutil.copytree(SAMPLE, elsewhere, ignore=shutil.ignore_patterns("data"))
    assert digests_below(elsewhere) == digests_below(SAMPLE)


def test_it_does_not_depend_on_comments_and_line_numbers(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "moved", ignore=shutil.ignore_patterns("data"))
    for path in (tmp_path / "moved").rglob("*.yaml"):
        lines = path.read_text(encoding="utf-8").splitlines()
        spaced = "\n\n".join(line + "  # a comment" if line.endswith("operations:") else line for line in lines)
        path.write_text(f"# moved\n\n\n{spaced}\n", encoding="utf-8")
    assert digests_below(tmp_path / "moved") == digests_below(SAMPLE)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "12345"])
def test_it_does_not_depend_on_the_order_of_sets(seed: str) -> None:
    program = (
        "import sys; from pathlib import Path; from clew.definitions import load_workspace; "
        "from clew.plan import compile_workspace; "
        "print({n: p.digest for n, p in compile_workspace(load_workspace(Path(sys.argv[1])).workspace).plans.items()})"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", program, str(SAMPLE)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(digests_below(SAMPLE))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: convert\n", "name: convert\n      description: because\n"),
        ("amount * 2", '"amount * 2"'),
        ("seq: 1\n      name: convert", "name: convert\n      seq: 1"),
    ],
)
def test_it_does_not_depend_on_how_the_same_is_written(check: Check, before: str, after: str) -> None:
    assert check(OPERATIONS.replace(before, after)).plan.digest == check(OPERATIONS).plan.digest


def test_it_does_not_depend_on_titles_versions_and_the_order_in_the_file(check: Check) -> None:
    first, second = OPERATIONS.split("    - seq: 2")
    turned = f"    - seq: 2{second}{first}"
    plain = check(OPERATIONS).plan
    assert check(turned).plan.digest == plain.digest
    assert check(OPERATIONS, more="name: Another title\nversion: 3\ndescription: why\n").plan.digest == plain.digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("amount * 2", "amount * 3"),
        ("amount * 2", "amount + 2"),
        ("SUM(x)", "AVG(x)"),
        ('region = "N"', 'region = "S"'),
        ("c.id = customer_id", "c.id = order_id"),
        ("dataset_id: customers", "dataset_id: customers, dataset_version: 2"),
        ("seq: 3", "seq: 30"),
        ("name: convert", "name: recompute"),
        ("column: x, expression", "column: amount, expression"),
        ("group_by: [region]", "group_by: [status]"),
        ("columns: [region, total]", "columns: [total, region]"),
        ("path: out.csv", "path: out2.csv"),
        ("columns: [region, total]", "columns: [region, total], include_deleted: true"),
        ("name: sum", "name: sum\n      assign: here"),
        ("type: output", "type: output\n      after_request: [{take: 1}]"),
    ],
)
def test_it_changes_with_whatever_changes_the_result(check: Check, before: str, after: str) -> None:
    assert before in OPERATIONS
    changed = OPERATIONS.replace(before, after).replace(
        "SUM(x)", "SUM(amount)" if "column: amount" in after else "SUM(x)"
    )
    assert check(changed).plan.digest != check(OPERATIONS).plan.digest


def test_it_changes_with_the_type_of_a_column_and_with_the_resolver(check: Check) -> None:
    plain = check(OPERATIONS).plan.digest
    assert check(OPERATIONS, more="resolver_overrides: {orders: archive}\n").plan.digest != plain
    wider = {
        "datasets/orders.yaml": """
            id: orders
            main_table:
              name: orders
              temporal_mode: period
              columns:
                - {name: order_id, type: integer}
                - {name: customer_id, type: integer}
                - {name: region, type: string}
                - {name: status, type: string}
                - {name: amount, type: "decimal(14,2)"}
                - {name: ordered_on, type: date}
        """
    }
    assert check(OPERATIONS, files=wider).plan.digest != plain
