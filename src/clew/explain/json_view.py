"""Explanations as JSON: the tree as it is, with the kind of each cause by name."""

import dataclasses
import re
from collections.abc import Mapping

from clew.explain.tree import Explanation
from clew.explain.why_not import WhyNot
from clew.trace.json_values import json_value

_NAMES = frozenset(
    {
        *("Explanation", "StepRef", "Source", "Recomputed", "Parents"),
        *("WhyNot", "NeverLoaded", "RuleOutcome", "Elsewhere"),
    }
)
"""Records that stand in one role only and need no kind."""


def as_json(answer: Explanation | WhyNot) -> dict[str, object]:
    """An answer as plain data for `json.dumps`."""
    data = _plain(answer)
    assert isinstance(data, dict)  # noqa: S101 - a record is an object
    return data


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        kind = {} if name in _NAMES else {"kind": _snake(name)}
        return kind | {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return json_value(value)  # type: ignore[arg-type]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
