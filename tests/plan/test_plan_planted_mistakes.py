"""A copy of the sample with a mistake of every kind: one check finds them all, each at its place, and nothing else."""

import shutil
from pathlib import Path

from tests.plan.plan_workspaces import TinyWorkspace

SAMPLE = Path(__file__).parents[2] / "src" / "clew" / "sample" / "workspace"

MISTAKES = [
    # A function with too few arguments.
    (
        "projects/gl-close.yaml",
        'STARTSWITH(transactions.cost_center, "P")',
        "«STARTSWITH»(transactions.cost_center)",
        "WrongArgumentCount",
    ),
    # An unclosed text.
    (
        "projects/gl-close.yaml",
        """row_kind, expression: '"line"'}""",
        """row_kind, expression: '«"»line'}""",
        "SyntaxError",
    ),
    # A seq that is not positive.
    ("projects/gl-close.yaml", "- seq: 20\n", "- seq: «0»\n", "InvalidValue"),
    # A column that a later operation adds.
    (
        "projects/gl-close.yaml",
        """category, expression: '"projects"'""",
        "category, expression: «line_count»",
        "UnknownColumn",
    ),
    # A selector that nobody defines.
    ("projects/gl-close.yaml", '"{{test_entries}}"', '"«{{test_entry}}»"', "UnknownSelector"),
    # Two operations with one seq.
    ("projects/gl-close.yaml", "- seq: 35\n", "- seq: «30»\n", "DuplicateSeq"),
    # An aggregate function in a selector.
    ("projects/gl-close.yaml", 'selector: "{{lines}}"', "selector: «SUM»(amount_usd) > 0", "AggregateNotAllowed"),
    # A label with two colons.
    ("projects/gl-close.yaml", "assign: after_totals", "assign: «after::totals»", "InvalidLabel"),
    # A parenthesis that is not closed.
    (
        "projects/group-report.yaml",
        '"ROUND((actual_usd - budget_usd) / budget_usd * 100, 1)"',
        '"ROUND«(»(actual_usd - budget_usd) / budget_usd * 100, 1"',
        "SyntaxError",
    ),
    # A number compared with a text.
    ("projects/group-report.yaml", 'fx.rate_type = "closing"', '«fx.rate = "closing"»', "TypeMismatch"),
    # An alias of another operation.
    (
        "projects/group-report.yaml",
        "ROUND(variance_usd * fx.rate",
        "ROUND(variance_usd * «centers».rate",
        "UnknownTable",
    ),
    # A function that almost exists.
    ("fragments/fx-to-usd.yaml", "ROUND(amount_local", "«ROUNT»(amount_local", "UnknownFunction"),
    # A day that no calendar has.
    ("resolvers/journal-files.yaml", '>= DATE("2026-03-01")', '>= «DATE("2026-02-30")»', "ValueOutOfRange"),
]


def test_mistakes_of_every_kind_are_all_found_in_one_run(tmp_path: Path) -> None:
    workspace = TinyWorkspace(tmp_path / "ledger")
    shutil.copytree(SAMPLE, workspace.root, ignore=shutil.ignore_patterns("data"))
    texts = {file: (SAMPLE / file).read_text(encoding="utf-8") for file, *_ in MISTAKES}
    for file, right, wrong, _ in MISTAKES:
        assert texts[file].count(right) == 1, right
        texts[file] = texts[file].replace(right, wrong)
    workspace.write(texts)
    found = workspace.check()
    order = ["fragments", "projects/gl-close", "projects/group-report", "resolvers"]
    expected = [code for part in order for file, _, _, code in MISTAKES if file.startswith(part)]
    found.reports(*expected)
    assert found.plans == {}
