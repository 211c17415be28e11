"""Messages of failures that quote values of rows, for roles that may not see these.

Failures become events, and many people read events. Messages never quote personal or secret values: the engine leaves
them out when it writes the message. Values of public columns are quoted, since they help to find the mistake; roles
that do not see public columns get what the code says instead.
"""

import dataclasses
from collections.abc import Mapping
from typing import TypeVar, cast

from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.engine import (
    DESTINATION_UNAVAILABLE,
    ENGINE_FAILURE,
    JOIN_NOT_UNIQUE,
    OUTPUT_CONFLICT,
    SCHEMA_MISMATCH,
)
from clew.diagnostics.codes.language import VALUE_OUT_OF_RANGE
from clew.diagnostics.codes.runs import CHECK_FAILED, TOTALS_DIFFER
from clew.events.bodies import StepCompleted
from clew.events.snapshot import StepSnapshot
from clew.events.values import CheckResult, Failure
from clew.privacy.policy import PrivacyPolicy

T = TypeVar("T")

QUOTING = frozenset(
    code.name
    for code in (
        DESTINATION_UNAVAILABLE,
        ENGINE_FAILURE,
        JOIN_NOT_UNIQUE,
        OUTPUT_CONFLICT,
        SCHEMA_MISMATCH,
        TOTALS_DIFFER,
        CHECK_FAILED,
        VALUE_OUT_OF_RANGE,
    )
)
"""Codes whose messages may quote values. A code that is not in the catalogue counts as one of them."""

_OF_A_FAILURE = {"code", "message", "category"}


def as_seen(policy: PrivacyPolicy, told: T) -> T:
    """A record of what happened (an event, a snapshot, an outcome) as a role may see it."""
    return told if policy.sees_clearly(None) else without_values(told)


def without_values(told: T) -> T:
    """The same record with failures that quote no values."""
    return cast("T", _without_values(told))


def _without_values(told: object) -> object:
    if isinstance(told, Failure):
        message = _said(told.code, told.message)
        return told if message == told.message else dataclasses.replace(told, message=message, hint=None)
    if isinstance(told, tuple | list):
        return type(told)(_without_values(each) for each in told) if type(told) in {tuple, list} else told
    if isinstance(told, Mapping):
        changed = {key: _without_values(value) for key, value in told.items()}
        if changed.keys() >= _OF_A_FAILURE:
            changed |= {"message": _said(str(changed["code"]), str(changed["message"]))}
        return changed
    if dataclasses.is_dataclass(told) and not isinstance(told, type):
        fields = {each.name: getattr(told, each.name) for each in dataclasses.fields(told) if each.init}
        changed = {name: new for name, old in fields.items() if (new := _without_values(old)) is not old}
        if isinstance(told, CheckResult):
            changed |= {"message": "", "example": None}
        if isinstance(told, StepCompleted | StepSnapshot) and told.amounts:
            changed["amounts"] = {}
        return dataclasses.replace(told, **changed) if changed else told
    return told


def _said(code: str, message: str) -> str:
    known = CATALOGUE.get(code)
    if known is not None and code not in QUOTING:
        return message
    return known.meaning if known is not None else "the message quotes values and is not shown to this role"
