"""The plan of a run: the values of its parameters and of its period in their places.

Values are part of the expressions of a bound plan, so that Spark, explanations and verification see them without
further ado; each remembers the parameter it comes from.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from clew.diagnostics import ClewError, Diagnostic, UserError, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_PARAMETER
from clew.diagnostics.codes.project import INVALID_PARAMETER, MISSING_PARAMETER
from clew.lang.conversion import given_value
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, value_to_text, walk
from clew.lang.types import Type
from clew.plan.json_form import digest_of
from clew.plan.plan import Plan
from clew.plan.planned_parameters import PREFIX, PlannedParameter, RunPeriod


def bound(plan: Plan, given: Mapping[str, object], period: RunPeriod | None) -> Plan:
    """The plan with the values of a run in place. Raises UserError with everything that is wrong with them."""
    parameters = _given(plan.extensions.parameters, given)
    values = {PREFIX + each.name: each.constant.value for each in parameters}
    values |= period.facts if period is not None else {}
    placed = with_values(replace(plan, extensions=replace(plan.extensions, parameters=parameters)), values)
    return plan if placed == plan else replace(placed, digest=digest_of(placed))


def _given(parameters: tuple[PlannedParameter, ...], given: Mapping[str, object]) -> tuple[PlannedParameter, ...]:
    problems = [
        UNKNOWN_PARAMETER.anywhere(name=name, hint=_near(name, [each.name for each in parameters]))
        for name in given
        if name not in {each.name for each in parameters}
    ]
    found = list[PlannedParameter]()
    for each in parameters:
        value = _text_of(each, given[each.name]) if each.name in given else each.value
        if isinstance(value, Diagnostic):
            problems.append(value)
        elif value is None:
            problems.append(MISSING_PARAMETER.anywhere(name=each.name, hint=f"give --param {each.name}=VALUE"))
        else:
            found.append(replace(each, value=value))
    if problems:
        raise UserError(*problems)
    return tuple(found)


def _near(name: str, names: list[str]) -> str:
    listed = f"the parameters are {', '.join(names)}" if names else "the project has no parameters"
    return did_you_mean(name, names) or listed


def _text_of(parameter: PlannedParameter, value: object) -> str | Diagnostic:
    """A value that was given, as text; what is wrong with it otherwise."""
    try:
        text = value_to_text(given_value(value, parameter.type))
    except (ClewError, ValueError, KeyError, TypeError, ArithmeticError):
        problem = f'"{value}" is not a {parameter.type}'
        return INVALID_PARAMETER.anywhere(name=parameter.name, problem=problem)
    if parameter.allowed and text not in parameter.allowed:
        problem = f'"{text}" is not allowed'
        hint = f"the values are {', '.join(parameter.allowed)}"
        return INVALID_PARAMETER.anywhere(name=parameter.name, problem=problem, hint=hint)
    return text


def with_values(value: Any, values: Mapping[str, Value]) -> Any:  # noqa: ANN401 - any part of a plan
    """A part of a plan with values in the places of parameters; the same object where there are none."""
    match value:
        case Constant() | ColumnValue() | Apply() | Convert():
            return with_parameters(value, values)
        case tuple():
            items = tuple(with_values(item, values) for item in value)
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        case Type():
            return value
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            changed = {name: new for name, old in fields.items() if (new := with_values(old, values)) is not old}
            return replace(value, **changed) if changed else value
        case _:
            return value


def given_values(value: Any) -> dict[str, Value]:  # noqa: ANN401 - any part of a plan
    """What parameters, and functions that ask for the period, stand for in a part of a bound plan."""
    match value:
        case Constant() | ColumnValue() | Apply() | Convert():
            return {
                each.parameter: each.value
                for each in walk(value)
                if isinstance(each, Constant) and each.parameter is not None
            }
        case tuple():
            return {name: given for item in value for name, given in given_values(item).items()}
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type | Type):
            return given_values(tuple(getattr(value, field.name) for field in dataclasses.fields(value)))
        case _:
            return {}


def differently_given(old: Any, new: Any) -> list[str]:  # noqa: ANN401 - any parts of plans
    """What two parts of plans are given with different values, in words."""
    before, after = given_values(old), given_values(new)
    return [
        f"{said(name)} {said_value(before[name])} -> {said_value(value)}"
        for name, value in sorted(after.items())
        if name in before and before[name] != value
    ]


def said(name: str) -> str:
    """What expressions are given under a name, in words."""
    return f"parameter {name.removeprefix(PREFIX)}" if name.startswith(PREFIX) else name


def said_value(value: Value) -> str:
    """A value as people read it."""
    return "NULL" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def with_parameters(expression: Expression, values: Mapping[str, Value]) -> Expression:
    """An expression with values in the places of parameters."""
    match expression:
        case Constant(value, type_, str(parameter)) if parameter in values and values[parameter] != value:
            return Constant(values[parameter], type_, parameter)
        case Apply(function, arguments, type_):
            placed = tuple(with_parameters(argument, values) for argument in arguments)
            is_same = all(new is old for new, old in zip(placed, arguments, strict=True))
            return expression if is_same else Apply(function, placed, type_)
        case Convert(operand, type_):
            inner = with_parameters(operand, values)
            return expression if inner is operand else Convert(inner, type_)
        case _:
            return expression
