"""Plans as JSON and back.

The form follows the dataclasses: a record is an object with the fields as keys, a tuple a list, a type its name, an
expression the nested lists of `clew.lang.typed`. Records of a closed union carry a field with one literal value
(`type`, `task`), by which the reader tells them apart.
"""

import dataclasses
import types
from functools import cache
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


def plan_from_json(data: object) -> Plan:
    """The plan that `plan_to_json` wrote. Raises UserError where it is from a newer Clew, or no plan."""
    written = data.get("format") if isinstance(data, dict) else None
    if isinstance(written, int) and written > PLAN_FORMAT:
        problem = f"it has format {written}, this Clew reads up to {PLAN_FORMAT}"
        raise UserError(UNREADABLE_PLAN.anywhere(problem=problem))
    try:
        plan = _read(data, Plan)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise UserError(UNREADABLE_PLAN.anywhere(problem=f"{type(error).__name__}: {error}")) from None
    assert isinstance(plan, Plan)  # noqa: S101 - _read gives what it was asked for
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
            return {name: to_plain(getattr(value, name), leave_out) for name in names if name not in leave_out}


@cache
def _field_names(record: type) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(record):
        raise TypeError(f"a plan cannot hold a {record.__name__}")
    return tuple(field.name for field in dataclasses.fields(record))


def _read(data: object, hint: Any) -> object:  # noqa: ANN401 - a type hint can be anything
    if hint is Type:
        return parse_type(_checked(data, str))
    if hint == typed.Expression:
        return typed.from_json(data)
    origin = get_origin(hint)
    if origin is Literal:
        if data not in get_args(hint):
            raise ValueError(f"{data!r} is not one of {get_args(hint)}")
        return data
    if origin is tuple:
        return _read_tuple(_checked(data, list), get_args(hint))
    if origin in {Union, types.UnionType}:
        return _read_union(data, get_args(hint))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _read_record(_checked(data, dict), hint)
    return _checked(data, hint)


def _read_tuple(items: list[object], arguments: tuple[Any, ...]) -> tuple[object, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(item, arguments[0]) for item in items)
    return tuple(_read(item, argument) for item, argument in zip(items, arguments, strict=True))


def _read_union(data: object, alternatives: tuple[Any, ...]) -> object:
    if data is None and type(None) in alternatives:
        return None
    real = [alternative for alternative in alternatives if alternative is not type(None)]
    if len(real) == 1:
        return _read(data, real[0])
    if isinstance(data, dict):
        for alternative in real:
            tag = _tag(alternative)
            if tag is not None and data.get(tag[0]) == tag[1]:
                return _read(data, alternative)
    raise ValueError(f"none of the alternatives fits {str(data)[:80]}")


def _read_record(data: dict[str, object], declared: type) -> object:
    hints = _hints(declared)
    unknown = data.keys() - hints.keys()
    if unknown:
        raise ValueError(f"{declared.__name__} has no {', '.join(sorted(unknown))}")
    return declared(**{name: _read(data[name], hint) for name, hint in hints.items()})


@cache
def _hints(declared: type) -> dict[str, Any]:
    return get_type_hints(declared)


@cache
def _tag(declared: type) -> tuple[str, object] | None:
    """The field of a record that can have one value only, and that value."""
    for name, hint in _hints(declared).items():
        if get_origin(hint) is Literal and len(get_args(hint)) == 1:
            return name, get_args(hint)[0]
    return None


def _checked(data: object, expected: type) -> Any:  # noqa: ANN401 - checked right here
    if not isinstance(data, expected) or (isinstance(data, bool) and expected is int):
        raise TypeError(f"expected {expected.__name__}, found {str(data)[:80]!r}")
    return data
