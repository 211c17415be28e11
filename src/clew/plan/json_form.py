"""Plans as JSON and back, and the digest of what decides their results.

The form follows the dataclasses: a record is an object with its fields as keys, a tuple is a list, a type is its name,
an expression is the nested lists of `clew.lang.typed`. Records of a closed union carry a field with one literal value
(`type`, `task`), which tells the reader which one it is.
"""

import dataclasses
import hashlib
import json
import types
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from clew.diagnostics import UserError
from clew.diagnostics.codes.project import UNREADABLE_PLAN
from clew.lang import typed
from clew.lang.types import Type, parse_type
from clew.plan.plan import PLAN_FORMAT, Plan


def plan_to_json(plan: Plan) -> dict[str, object]:
    """The plan as plain data for `json.dumps`."""
    data = to_plain(plan)
    assert isinstance(data, dict)  # noqa: S101 - a record is an object
    return data


def breakpoints_to_json(plan: Plan) -> dict[str, object]:
    """The breakpoints of a plan: the form of `clew plan --breakpoints --json`."""
    names = {step.seq: step.name for step in plan.steps}
    points = [
        {"name": point.name, "label": point.label, "path": point.path, "seq": point.seq, "step": names[point.seq]}
        for point in plan.breakpoints
    ]
    return {"project": plan.name, "breakpoints": points}


def plan_from_json(data: object) -> Plan:
    """The plan that `plan_to_json` wrote. Raises UserError where it is from a newer Clew, or no plan."""
    written = data.get("format") if isinstance(data, dict) else None
    if isinstance(written, int) and written > PLAN_FORMAT:
        problem = f"it has format {written}, this Clew reads up to {PLAN_FORMAT}"
        raise UserError(UNREADABLE_PLAN.anywhere(problem=problem))
    try:
        plan = _reader(Plan)(data)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise UserError(UNREADABLE_PLAN.anywhere(problem=f"{type(error).__name__}: {error}")) from None
    assert isinstance(plan, Plan)  # noqa: S101 - a reader gives what it was made for
    return plan


def to_plain(value: object, leave_out: frozenset[str] = frozenset()) -> object:
    """Any value of a plan as plain data, records without the fields to leave out."""
    match value:
        case None | str() | int():
            return value
        case tuple():
            return [to_plain(item, leave_out) for item in value]
        case Type():
            return str(value)
        case typed.Constant() | typed.ColumnValue() | typed.Apply() | typed.Convert():
            return typed.to_json(value)
        case _:
            declared: type = type(value)
            names = _field_names(declared)
            return {
                name: to_plain(getattr(value, name), leave_out)
                for name in names
                if name not in leave_out and (name not in _ONLY_WHERE_GIVEN or getattr(value, name))
            }


@cache
def _field_names(record: type) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(record):
        raise TypeError(f"a plan cannot hold a {record.__name__}")
    return tuple(field.name for field in dataclasses.fields(record))


_ONLY_WHERE_GIVEN = frozenset(
    {"controls", "parameters", "resolvers", "keeping", "group_condition", "checks", "reason", "windows", "all_days"}
    | {"sorted_by", "partition_by", "file_per", "drops"}
)
"""Fields that are left out where they are empty, so that plans without them keep their digest."""

_LATER_FIELDS = frozenset({"row_names", "labels_privacy"}) | _ONLY_WHERE_GIVEN
"""Those that stored plans of an older Clew lack; they have a default."""

_Reader = Callable[[object], object]


@cache
def _reader(hint: Any) -> _Reader:  # noqa: ANN401 - a type hint can be anything
    """What reads values of a type, worked out once for each type, since plans have them by the thousand."""
    if hint is Type:
        return lambda data: parse_type(_checked(data, str))
    if hint == typed.Expression:
        return typed.from_json
    origin = get_origin(hint)
    if origin is Literal:
        return partial(_read_literal, get_args(hint))
    if origin is tuple:
        return _tuple_reader(get_args(hint))
    if origin in {Union, types.UnionType}:
        return _union_reader(get_args(hint))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return partial(_read_record, hint, {name: _reader(each) for name, each in get_type_hints(hint).items()})
    return lambda data: _checked(data, hint)


def _read_literal(values: tuple[object, ...], data: object) -> object:
    if data not in values:
        raise ValueError(f"{data!r} is not one of {values}")
    return data


def _tuple_reader(arguments: tuple[Any, ...]) -> _Reader:
    readers = [_reader(argument) for argument in arguments if argument is not Ellipsis]
    if Ellipsis in arguments:
        return lambda data: tuple(readers[0](item) for item in _checked(data, list))
    return lambda data: tuple(read(item) for read, item in zip(readers, _checked(data, list), strict=True))


def _union_reader(alternatives: tuple[Any, ...]) -> _Reader:
    real = [alternative for alternative in alternatives if alternative is not type(None)]
    if len(real) == 1:
        read = _reader(real[0])
        return lambda data: None if data is None else read(data)
    tagged = {_tag(alternative): _reader(alternative) for alternative in real}
    return partial(_read_tagged, tagged)


def _read_tagged(tagged: Mapping[tuple[str, object], _Reader], data: object) -> object:
    for (name, value), read in tagged.items():
        if isinstance(data, dict) and data.get(name) == value:
            return read(data)
    raise ValueError(f"none of the alternatives fits {str(data)[:80]}")


def _read_record(declared: type, readers: Mapping[str, _Reader], data: object) -> object:
    written: dict[str, object] = _checked(data, dict)
    unknown = written.keys() - readers.keys()
    if unknown:
        raise ValueError(f"{declared.__name__} has no {', '.join(sorted(unknown))}")
    needed = [name for name in readers if name in written or name not in _LATER_FIELDS]
    return declared(**{name: readers[name](written[name]) for name in needed})


def _tag(declared: type) -> tuple[str, object]:
    """The field of a record that can have one value only, and that value."""
    hints = get_type_hints(declared)
    [tag] = [
        (name, get_args(hint)[0])
        for name, hint in hints.items()
        if get_origin(hint) is Literal and len(get_args(hint)) == 1
    ]
    return tag


def _checked(data: object, expected: type) -> Any:  # noqa: ANN401 - checked right here
    if not isinstance(data, expected) or (isinstance(data, bool) and expected is int):
        raise TypeError(f"expected {expected.__name__}, found {str(data)[:80]!r}")
    return data


_DOES_NOT_COUNT = frozenset(
    {"place", "description", "title", "project_version", "digest", "lineage", "reads", "row_names"}
)
"""What may change without another result (where things stand, what people say about them, how often they changed),
and what follows from the rest."""


_COUNTS_IF_SET = "labels_privacy"
"""Who sees labels depends on it. Plans that do not restrict them have the digests that they had before it existed."""


def _counted(plain: object) -> object:
    if isinstance(plain, dict):
        return {name: _counted(each) for name, each in plain.items() if name != _COUNTS_IF_SET or each is not None}
    return [_counted(each) for each in plain] if isinstance(plain, list) else plain


def digest_of(value: object) -> str:
    """SHA-256, in hex, over the canonical JSON of records of a plan."""
    plain = _counted(to_plain(value, leave_out=_DOES_NOT_COUNT))
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
