"""A dataset as a contract of the Open Data Contract Standard, version 3.1.

Checks that the standard has a metric for become such rules. All others go along as rules of the engine `clew`, written
as in the file of the dataset, so that importing the contract gives the same checks.
"""

import re
from collections.abc import Iterator, Mapping

from clew.definitions.checks import Check, InSet, NotNull, PatternCheck, Severity, Total, Unique
from clew.definitions.dataset import ColumnDefinition, Dataset, Status, TemporalMode
from clew.definitions.expression_text import ExpressionText
from clew.definitions.scenario_text import yaml_text
from clew.definitions.yaml_scalars import value_of
from clew.lang.types import Kind

API_VERSION = "v3.1.0"
ENGINE = "clew"
"""The name of the engine of rules that only Clew understands."""
TEMPORAL_MODE, MAY_BE_EMPTY, RESOLVER, SEVERITY = "temporalMode", "mayBeEmpty", "resolverId", "severity"
"""Custom properties that importing reads again."""

_STATUS = {Status.DRAFT: "draft", Status.ACTIVE: "active", Status.INACTIVE: "retired"}
_SEVERITY = {Severity.FAIL: "error", Severity.WARN: "warning", Severity.QUARANTINE: "error"}
_LOGICAL = {Kind.DECIMAL: "number", Kind.DOUBLE: "number"}
"""Others are called alike."""
_ROW_COUNT = re.compile(r"\s*COUNT_ALL\(\s*\)\s*(>=|<=|<>|>|<|=)\s*(\d{1,15})\s*", re.IGNORECASE)
_OPERATORS = {
    "=": "mustBe",
    "<>": "mustNotBe",
    ">": "mustBeGreaterThan",
    ">=": "mustBeGreaterOrEqualTo",
    "<": "mustBeLessThan",
    "<=": "mustBeLessOrEqualTo",
}

Rule = dict[str, object]


def contract_text(dataset: Dataset) -> str:
    """The contract of a dataset as a YAML file."""
    return yaml_text([], contract_of(dataset))


def contract_of(dataset: Dataset) -> dict[str, object]:
    """The contract of a dataset."""
    table = dataset.main_table
    of_columns = dict[str, list[Rule]]()
    of_table = list[Rule]()
    for check in dataset.checks:
        for column, rule in _rules(check):
            (of_table if column is None else of_columns.setdefault(column, [])).append(rule)
    custom = {
        TEMPORAL_MODE: table.temporal_mode.value if table.temporal_mode is not TemporalMode.NONE else None,
        MAY_BE_EMPTY: True if dataset.may_be_empty else None,
        RESOLVER: dataset.resolver_id,
    }
    schema = {
        "name": table.name,
        "businessName": dataset.name if dataset.name != table.name else None,
        "logicalType": "object",
        "physicalType": "table",
        "description": dataset.description or None,
        "properties": [_property(column, dataset, of_columns.get(column.name, [])) for column in table.columns],
        "quality": of_table or None,
        "customProperties": _custom(custom) or None,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": dataset.id,
        "name": dataset.name,
        "version": f"{dataset.version}.0.0",
        "status": _STATUS[dataset.status],
        "description": {"purpose": dataset.description} if dataset.description else None,
        "schema": [schema],
    }


def _custom(values: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"property": f"{ENGINE}.{name}", "value": value} for name, value in values.items() if value is not None]


def _property(column: ColumnDefinition, dataset: Dataset, rules: list[Rule]) -> dict[str, object]:
    keys = [name.casefold() for name in dataset.natural_key]
    is_key = column.name.casefold() in keys
    return {
        "name": column.name,
        "logicalType": _LOGICAL.get(column.type.kind, column.type.kind.value),
        "physicalType": str(column.type),
        "description": column.description or None,
        "required": None if column.nullable else True,
        "primaryKey": True if is_key else None,
        "primaryKeyPosition": keys.index(column.name.casefold()) + 1 if is_key else None,
        "classification": None if column.privacy is None else column.privacy.value,
        "quality": rules or None,
    }


def _rules(check: Check) -> Iterator[tuple[str | None, Rule]]:
    """The rules that stand for a check, each with the column that it belongs to."""
    metrics = list(_metrics(check)) if check.where is None else []
    if not metrics:
        written = {key: value for key, value in _written(check).items() if key not in {"name", "description", "at"}}
        yield None, {**_named(check), "type": "custom", "engine": ENGINE, "implementation": written}
    for column, metric in metrics:
        quarantines = check.severity is Severity.QUARANTINE
        custom = {"customProperties": _custom({SEVERITY: check.severity.value})} if quarantines else {}
        yield column, {**_named(check), **metric, "severity": _SEVERITY[check.severity], **custom}


def _written(check: Check) -> Mapping[str, object]:
    value = value_of(check.node)
    assert isinstance(value, Mapping)  # noqa: S101 - a check is a mapping
    return value


def _named(check: Check) -> Rule:
    return {"name": check.name or None, "description": check.description or None}


def _metrics(check: Check) -> Iterator[tuple[str | None, Rule]]:
    """The metrics of the standard that say what a check says. None where there are none."""
    match check:
        case NotNull() if len(check.columns) == 1 or not check.name:
            for column in check.columns:
                yield column, {"metric": "nullValues", "mustBe": 0}
        case Unique() if len(check.columns) == 1:
            yield check.columns[0], {"metric": "duplicateValues", "mustBe": 0}
        case Unique():
            yield None, {"metric": "duplicateValues", "mustBe": 0, "arguments": {"properties": list(check.columns)}}
        case InSet():
            arguments: Rule = {"validValues": list(check.in_set.values)}
            yield check.in_set.column, {"metric": "invalidValues", "mustBe": 0, "arguments": arguments}
        case PatternCheck():
            arguments = {"pattern": check.pattern.matches}
            yield check.pattern.column, {"metric": "invalidValues", "mustBe": 0, "arguments": arguments}
        case Total(total=ExpressionText() as text):
            found = _ROW_COUNT.fullmatch(text.value)
            if found is not None:
                yield None, {"metric": "rowCount", _OPERATORS[found[1]]: int(found[2])}
        case _:
            return
