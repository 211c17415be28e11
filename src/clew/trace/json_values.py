"""Values as JSON has them, without losing what they are: decimals as text, days and times in ISO form."""

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from clew.lang.typed import Value

JsonValue = str | int | float | bool | None


def json_value(value: Value) -> JsonValue:
    """A value for `json.dumps`. Doubles that JSON has no number for are texts."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def json_state(state: Mapping[str, Value] | None) -> dict[str, JsonValue] | None:
    """The values of a row."""
    return None if state is None else {name: json_value(value) for name, value in state.items()}
