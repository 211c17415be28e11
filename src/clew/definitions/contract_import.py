"""Contracts of the Open Data Contract Standard as datasets: each object of the schema becomes one.

What a dataset does not say (servers, prices, people, agreements about service) is left out, with a note.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions.contract_export import ENGINE, MAY_BE_EMPTY, RESOLVER, TEMPORAL_MODE
from clew.definitions.contract_rules import Block, RuleReading, quoted, texts
from clew.definitions.data_nodes import node_of
from clew.definitions.dataset import Dataset
from clew.definitions.nodes import SourceText
from clew.definitions.scenario_text import yaml_text
from clew.definitions.shapes import Record, problems_in
from clew.definitions.yaml_nodes import read_yaml
from clew.definitions.yaml_scalars import value_of
from clew.diagnostics import UserError, raise_if_any
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.types import DOUBLE, PLAIN_DECIMAL, Type, parse_type

_SUPPORTED = re.compile(r"v3\.\d+\.\d+")
_UNUSED = ("servers", "team", "price", "roles", "slaProperties", "support")
_STATUS = {"draft": "draft", "proposed": "draft", "active": "active", "deprecated": "active", "retired": "inactive"}
_CLASSES = {
    **dict.fromkeys(("personal", "pii", "sensitive"), "personal"),
    **dict.fromkeys(("secret", "confidential", "restricted"), "secret"),
}
_DECIMALS = re.compile(r"(?:decimal|numeric|number)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_DOUBLES = re.compile(r"double(?: precision)?|float\d*|real|f32|f64")
_LOGICAL = {"string", "integer", "boolean", "date", "timestamp"}
_VERSION = re.compile(r"v?(\d+)\b")


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """A dataset of a contract, as the text of its file."""

    id: str
    text: str
    notes: tuple[str, ...]
    """What the contract says and the dataset does not."""


def imported_datasets(text: str, file: str) -> list[ImportedDataset]:
    """The datasets of a contract. UserError if it cannot be read, or if one of them would be wrong."""
    contract = _contract(text, file)
    objects = [each for each in texts(contract.get("schema")) if isinstance(each, Mapping)]
    if not objects:
        raise _refused(text, file, "the contract has no schema", "add a schema with a name and properties")
    unused = [name for name in _UNUSED if contract.get(name)]
    notes = [f"not used by datasets: {', '.join(unused)}"] if unused else []
    return [_dataset(each, contract, Path(file).name, notes, alone=len(objects) == 1) for each in objects]


def _contract(text: str, file: str) -> Block:
    tree = read_yaml(SourceText(file, text))
    raise_if_any(tree.diagnostics)
    contract = value_of(tree.root) if tree.root is not None else None
    if not isinstance(contract, Mapping) or contract.get("kind") != "DataContract":
        hint = "it begins with `kind: DataContract` and `apiVersion: v3.1.0`"
        raise _refused(text, file, "this is not a contract of the Open Data Contract Standard", hint)
    version = str(contract.get("apiVersion"))
    if not _SUPPORTED.fullmatch(version):
        problem = f"contracts of version {version} are not read"
        raise _refused(text, file, problem, "versions 3.0.0 and later are: convert it first")
    return contract


def _refused(text: str, file: str, problem: str, hint: str) -> UserError:
    return UserError(INVALID_VALUE.at(SourceText(file, text).span(0, 1), problem=problem, hint=hint))


def _dataset(table: Block, contract: Block, file: str, notes: list[str], *, alone: bool) -> ImportedDataset:
    name = str(table.get("name") or contract.get("name") or contract.get("id") or "dataset")
    id_ = _slug(str(contract.get("id")) if alone and _is_slug(contract.get("id")) else name)
    columns, types = list[Block](), dict[str, Type]()
    found = list(notes)
    properties = [each for each in texts(table.get("properties")) if isinstance(each, Mapping)]
    for each in properties:
        column = str(each.get("name"))
        type_ = _type(each)
        if type_ is None:
            kind = each.get("logicalType") or each.get("physicalType")
            found.append(f'the property "{column}" is left out: Clew has no columns of type {kind}')
            continue
        types[column] = type_
        columns.append(_column(each, column, type_))
    rules = RuleReading(types)
    checks = [check for each in properties for check in _checks_of(each, rules)]
    checks += rules.checks(table.get("quality"), None)
    custom = _custom(table)
    about = contract.get("description")
    purpose = about.get("purpose") if isinstance(about, Mapping) else None
    content: dict[str, object] = {
        "id": id_,
        "name": str((contract.get("name") if alone else table.get("businessName")) or id_),
        "description": str(table.get("description") or purpose or "") or None,
        "version": _whole_version(contract.get("version")),
        "status": _STATUS.get(str(contract.get("status")), "active"),
        "resolver_id": custom.get(RESOLVER),
        "natural_key": _key(properties, types) or None,
        "may_be_empty": custom.get(MAY_BE_EMPTY),
        "main_table": {"name": _slug(name), "temporal_mode": custom.get(TEMPORAL_MODE), "columns": columns},
        "checks": checks or None,
    }
    dataset = Record(Dataset).read(node_of(_without_nothing(content), file))
    raise_if_any(problems_in(dataset))
    return ImportedDataset(id_, yaml_text([f"Imported from {file}."], content), (*found, *rules.notes))


def _column(written: Block, name: str, type_: Type) -> Block:
    described = written.get("description")
    return {
        "name": name,
        "type": str(type_),
        "nullable": False if written.get("required") is True else None,
        "privacy": _CLASSES.get(str(written.get("classification") or "").lower()),
        "description": str(described) if described else None,
    }


def _checks_of(written: Block, rules: RuleReading) -> Iterator[Block]:
    """The checks of a column: its rules, and what its options require."""
    column = str(written.get("name"))
    if column not in rules.types:
        return
    yield from rules.checks(written.get("quality"), column)
    if written.get("unique") is True:
        yield {"unique": column}
    allowed = [each["value"] for each in texts(written.get("enum")) if isinstance(each, Mapping) and "value" in each]
    if allowed:
        yield {"in_set": {"column": column, "values": allowed}}
    options = written.get("logicalTypeOptions")
    if isinstance(options, Mapping):
        yield from _options(options, column, rules)


def _options(options: Block, column: str, rules: RuleReading) -> Iterator[Block]:
    name = quoted(column)
    if "minimum" in options or "maximum" in options:
        bounds = {short: options.get(key) for short, key in (("min", "minimum"), ("max", "maximum"))}
        yield {"range": {"column": column, **bounds}}
    for key, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if options.get(key) is not None:
            yield {"expression": f"{name} {sign} {rules.literal(options[key], column)}"}
    for key, sign in (("minLength", ">="), ("maxLength", "<=")):
        if isinstance(options.get(key), int):
            yield {"expression": f"LEN({name}) {sign} {options[key]}"}
    if options.get("multipleOf") is not None:
        yield {"expression": f"MOD({name}, {rules.literal(options['multipleOf'], column)}) = 0"}
    if isinstance(options.get("pattern"), str):
        yield {"pattern": {"column": column, "matches": options["pattern"]}}


def _type(written: Block) -> Type | None:
    """The type of a column: that of its database where we have it, else that of the standard; None for others."""
    physical = str(written.get("physicalType") or "").strip().lower()
    logical = written.get("logicalType")
    if logical not in {None, "number", *_LOGICAL}:
        return None
    own = _named_type(physical)
    if own is not None and _fits(own, logical):
        return own
    sized = _DECIMALS.fullmatch(physical)
    if logical in {None, "number"} and sized is not None:
        return _named_type(f"decimal({sized[1]},{sized[2] or 0})")
    if logical == "number":
        return DOUBLE if _DOUBLES.fullmatch(physical) else PLAIN_DECIMAL
    return _named_type(str(logical)) if logical is not None else None


def _named_type(name: str) -> Type | None:
    try:
        return parse_type(name)
    except ValueError:
        return None


def _fits(type_: Type, logical: object) -> bool:
    is_number = type_.kind in {PLAIN_DECIMAL.kind, DOUBLE.kind}
    return logical is None or logical == type_.kind.value or (is_number and logical == "number")


def _key(properties: list[Block], types: Mapping[str, Type]) -> list[str]:
    keys = [each for each in properties if each.get("primaryKey") is True and str(each.get("name")) in types]
    positions = {str(each["name"]): each.get("primaryKeyPosition") for each in keys}
    return sorted(positions, key=lambda name: place if isinstance(place := positions[name], int) and place > 0 else 999)


def _custom(table: Block) -> Block:
    properties = [each for each in texts(table.get("customProperties")) if isinstance(each, Mapping)]
    prefix = f"{ENGINE}."
    return {str(each.get("property")).removeprefix(prefix): each.get("value") for each in properties}


def _whole_version(version: object) -> int:
    """The first number of a version; a dataset counts in whole numbers from 1."""
    found = _VERSION.match(str(version))
    return max(1, int(found[1])) if found is not None else 1


def _is_slug(text: object) -> bool:
    return isinstance(text, str) and bool(re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text))


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("_.-") or "dataset"


def _without_nothing(value: object) -> object:
    match value:
        case Mapping():
            return {key: _without_nothing(item) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [_without_nothing(item) for item in value]
        case _:
            return value
