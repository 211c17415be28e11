"""Datasets become contracts of the Open Data Contract Standard and contracts datasets, with their checks."""

from pathlib import Path
from typing import Any

import pytest

from clew.definitions import Dataset
from clew.definitions.contract_export import contract_of, contract_text
from clew.definitions.contract_import import ImportedDataset, imported_datasets
from clew.definitions.nodes import SourceText
from clew.definitions.shapes import Record
from clew.definitions.yaml_nodes import read_yaml
from clew.definitions.yaml_scalars import value_of
from clew.diagnostics import UserError

CLAIMS = """
id: claims
name: insurance claims
description: "Claims: one row each, \\"as reported\\"."
version: 3
resolver_id: deliveries
natural_key: [policy, claim_id]
may_be_empty: true
main_table:
  name: claims
  temporal_mode: period
  columns:
    - {name: claim_id, type: integer, nullable: false}
    - {name: policy, type: string, description: "P- and a number"}
    - {name: holder, type: string, privacy: personal}
    - {name: pin, type: string, privacy: secret}
    - {name: paid, type: "decimal(12,2)"}
    - {name: weight, type: double}
    - {name: reported, type: date}
    - {name: open, type: boolean}
    - {name: seen, type: timestamp}
checks:
  - not_null: [policy, holder]
  - {name: number, not_null: [claim_id, paid], severity: warn}
  - {unique: claim_id, description: Numbers are given once.}
  - unique: [policy, claim_id]
  - {in_set: {column: policy, values: [P-1, "no"]}, severity: quarantine}
  - {in_set: {column: paid, values: [1.50, 2]}, where: open}
  - pattern: {column: policy, matches: "^P-[0-9]+\\\\.$"}
  - range: {column: reported, min: 2020-01-31}
  - expression: paid >= 0 OR open
  - total: COUNT_ALL() >= 10
  - {total: SUM(paid) > 0, severity: warn}
  - total: {expression: SUM(paid), equals: SUM(balance), of: ledger, tolerance: 0.01}
  - freshness: {column: reported, days: 5, before: period_end}
  - join_must_match: {alias: p, dataset_id: policies, on: p.id = policy}
  - schema: {columns: {policy: string}}
"""


def read(text: str) -> Dataset:
    tree = read_yaml(SourceText("claims.yaml", text))
    assert tree.root is not None
    return Record(Dataset).read(tree.root)


def one(text: str) -> ImportedDataset:
    [found] = imported_datasets(text, "contract.odcs.yaml")
    return found


def essence(dataset: Dataset) -> Any:
    """What a dataset says, without where and in which order its checks are written."""
    table = dataset.main_table
    columns = [(each.name, each.type, each.nullable, each.privacy, each.description) for each in table.columns]
    checks = sorted((each.label, each.severity, each.description, repr(value_of(each.node))) for each in dataset.checks)
    about = (dataset.id, dataset.name, dataset.description, dataset.version, dataset.status, dataset.resolver_id)
    return about, dataset.natural_key, dataset.may_be_empty, table.name, table.temporal_mode, columns, checks


def test_a_dataset_that_is_exported_and_imported_is_the_same() -> None:
    claims = read(CLAIMS.replace("not_null: [policy, holder]", "not_null: policy"))
    again = one(contract_text(claims))
    assert again.notes == ()
    assert essence(read(again.text))[:-1] == essence(claims)[:-1]
    before = {each.label: (each.kind, each.severity, each.description) for each in claims.checks}
    after = {each.label: (each.kind, each.severity, each.description) for each in read(again.text).checks}
    assert after == before
    assert contract_of(read(again.text)) == contract_of(claims)


def test_a_contract_has_columns_keys_classes_and_metrics_of_the_standard() -> None:
    contract: Any = contract_of(read(CLAIMS))
    assert (contract["apiVersion"], contract["kind"], contract["version"]) == ("v3.1.0", "DataContract", "3.0.0")
    [table] = contract["schema"]
    columns = {each["name"]: each for each in table["properties"]}
    assert {name: each["logicalType"] for name, each in columns.items()} == {
        "claim_id": "integer",
        "policy": "string",
        "holder": "string",
        "pin": "string",
        "paid": "number",
        "weight": "number",
        "reported": "date",
        "open": "boolean",
        "seen": "timestamp",
    }
    assert (columns["claim_id"]["primaryKeyPosition"], columns["policy"]["primaryKeyPosition"]) == (2, 1)
    assert (columns["holder"]["classification"], columns["claim_id"]["required"]) == ("personal", True)
    rules = [(each["metric"], each["severity"]) for each in columns["policy"]["quality"]]
    assert rules == [("nullValues", "error"), ("invalidValues", "error"), ("invalidValues", "error")]
    [count] = [each for each in table["quality"] if each.get("metric") == "rowCount"]
    assert count["mustBeGreaterOrEqualTo"] == 10
    custom = [each["implementation"] for each in table["quality"] if each.get("engine") == "clew"]
    assert {next(iter(set(each) - {"severity", "where"})) for each in custom} == {
        *("not_null", "in_set", "range", "expression", "total", "freshness", "join_must_match", "schema")
    }


FOREIGN = """
apiVersion: v3.0.2
kind: DataContract
id: 53581432-6c55-4ba2-a65f-72344a91553a
version: 2.1.0
status: active
servers: [{server: lake, type: s3}]
team: []
schema:
  - name: Air Quality
    properties:
      - {name: station, logicalType: string, physicalType: varchar(18), required: true, unique: true,
         logicalTypeOptions: {minLength: 2, maxLength: 18, pattern: "^S"}}
      - name: value
        logicalType: number
        physicalType: NUMERIC(9, 3)
        classification: restricted
        logicalTypeOptions: {minimum: 0, exclusiveMaximum: 100, multipleOf: 0.5}
        quality:
          - {metric: nullValues, mustBeLessThan: 1, unit: percent, severity: warning}
          - {metric: duplicateValues, mustBeLessThan: 10}
      - name: unit
        logicalType: string
        quality:
          - {metric: invalidValues, arguments: {validValues: [pounds, kg, null]}, mustBeLessOrEqualTo: 5}
          - {metric: missingValues, arguments: {missingValues: [null, "", n/a]}, mustBe: 0, name: given}
          - {metric: invalidValues, arguments: {pattern: "^[a-z]+$"}, mustBe: 0}
          - {type: text, description: units are right}
          - {type: custom, engine: soda, implementation: "type: x"}
      - {name: day, logicalType: date, logicalTypeOptions: {minimum: "2020-01-01"}}
      - {name: level, logicalType: integer, enum: [{value: 1}, {value: 2, label: two}]}
      - {name: ratio, logicalType: number}
      - {name: share, logicalType: number, physicalType: DOUBLE PRECISION}
      - {name: tags, logicalType: array}
    quality:
      - {metric: rowCount, mustBeBetween: [100, 120]}
      - {metric: duplicateValues, mustBe: 0, arguments: {properties: [station, day]}}
      - {type: sql, query: SELECT 1, mustBe: 1, name: by hand}
"""


def test_a_contract_of_another_tool_becomes_a_dataset_with_checks_and_notes() -> None:
    found = one(FOREIGN)
    dataset = read(found.text)
    assert (dataset.id, dataset.version, dataset.main_table.name) == (
        "53581432-6c55-4ba2-a65f-72344a91553a",
        2,
        "Air_Quality",
    )
    assert {each.name: (str(each.type), each.nullable) for each in dataset.main_table.columns} == {
        "station": ("string", False),
        "value": ("decimal(9,3)", True),
        "unit": ("string", True),
        "day": ("date", True),
        "level": ("integer", True),
        "ratio": ("decimal(38,18)", True),
        "share": ("double", True),
    }
    assert str(dataset.main_table.columns[1].privacy) == "secret"
    assert [(each.label, str(each.severity)) for each in dataset.checks] == [
        ("unique station", "fail"),
        ("expression LEN(`station`) >= 2", "fail"),
        ("expression LEN(`station`) <= 18", "fail"),
        ("pattern station", "fail"),
        ("total COUNT_IF(`value` IS NULL) * 100 / COUNT_ALL() < 1", "warn"),
        ("total (COUNT(`value`) - COUNT_DISTINCT(`value`)) < 10", "fail"),
        ("range value", "fail"),
        ("expression `value` < 100", "fail"),
        ("expression MOD(`value`, 0.5) = 0", "fail"),
        ('total COUNT_IF(NOT (`unit` IN ("pounds", "kg"))) <= 5', "fail"),
        ("given", "fail"),
        ("pattern unit", "fail"),
        ("range day", "fail"),
        ("in_set level", "fail"),
        ("total (COUNT_ALL() BETWEEN 100 AND 120)", "fail"),
        ("unique station, day", "fail"),
    ]
    given = next(each for each in dataset.checks if each.label == "given")
    assert given.node is not None
    written: Any = value_of(given.node)
    assert written["expression"] == 'NOT COALESCE(`unit` IS NULL OR `unit` IN ("", "n/a"), FALSE)'
    assert found.notes == (
        "not used by datasets: servers",
        'the property "tags" is left out: Clew has no columns of type array',
        'the rule "units are right" of unit is left out: it is in words',
        "a rule of unit is left out: it is for soda",
        'the rule "by hand" is left out: it is in SQL',
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id: claims", "not a contract of the Open Data Contract Standard"),
        ("{kind: DataContract, apiVersion: v2.2.2}", "contracts of version v2.2.2 are not read"),
        ("{kind: DataContract, apiVersion: v3.1.0, id: x}", "has no schema"),
        ("{kind: DataContract, apiVersion: v3.1.0, id: x, schema: [{name: x}]}", "columns"),
        ("{kind: [DataContract", "YAML|bracket|closed"),
        (
            "{kind: DataContract, apiVersion: v3.1.0, id: x, schema: [{name: x, properties: [{name: _row_id}]}]}",
            "columns",
        ),
        (
            "{kind: DataContract, apiVersion: v3.1.0, schema: [{properties: [{name: _row_id, physicalType: date}]}]}",
            "_row_id",
        ),
    ],
)
def test_what_is_no_contract_or_makes_no_dataset_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        imported_datasets(text, "contract.odcs.yaml")


def test_commands_write_contracts_and_datasets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from clew.cli.main import run as command
    from clew.sample import write_sample

    root = tmp_path / "ledger"
    write_sample(root)
    contract = tmp_path / "rates.odcs.yaml"
    assert command(["contract", "export", "fx-rates", "--out", str(contract), "-w", str(root)]) == 0
    assert contract.read_text(encoding="utf-8").startswith('apiVersion: "v3.1.0"\nkind: "DataContract"\n')
    assert command(["contract", "import", str(contract), "-w", str(root)]) != 0
    assert "--replace" in capsys.readouterr().err
    assert command(["contract", "import", str(contract), "--replace", "-w", str(root)]) == 0
    assert "datasets/fx-rates.yaml written" in capsys.readouterr().out
    assert command(["check", "-w", str(root)]) == 0
    assert command(["contract", "expor", "fx-rates", "-w", str(root)]) == 2
    assert 'did you mean "export"' in capsys.readouterr().err
    assert command(["contract", "export", "fx", "-w", str(root)]) != 0
    assert "UnknownDataset" in capsys.readouterr().err
