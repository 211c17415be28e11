"""Definitions as text: YAML that people read, written without losing anything of a value."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})

Block = Mapping[str, object]


def scenario_text(head: Sequence[str], content: Block) -> str:
    """A file of a scenario: lines of comment, then its keys in their order. Rows take one line each."""
    lines = [*(f"# {_printable(line)}" for line in head), *_lines(content, "")]
    return "\n".join(lines) + "\n"


def yaml_text(head: Sequence[str], content: Block) -> str:
    """A file of other definitions, in the same form. Keys whose value is None are left out."""
    return scenario_text(head, _without_nothing(content))


def _without_nothing(content: Block) -> Block:
    return {key: _thinned(value) for key, value in content.items() if value is not None}


def _thinned(value: object) -> object:
    match value:
        case Mapping():
            return _without_nothing(value)
        case list() | tuple():
            return [_thinned(item) for item in value]
        case _:
            return value


def _lines(content: Block, indent: str) -> Iterable[str]:
    for key, value in content.items():
        name = f"{indent}{_key(key)}:"
        if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            yield name
            for item in value:
                yield from _item(item, indent)
        elif isinstance(value, Mapping) and any(isinstance(inner, list | tuple | Mapping) for inner in value.values()):
            yield name
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{name} {_flow(value)}"


def _item(item: Block, indent: str) -> Iterable[str]:
    if any(isinstance(value, list | tuple) for value in item.values()):
        first, *others = _lines(item, f"{indent}    ")
        yield f"{indent}  - {first.lstrip()}"
        yield from others
    else:
        yield f"{indent}  - {_flow(item)}"


def _flow(value: object) -> str:
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_key(str(key))}: {_flow(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(_flow(item) for item in value) + "]"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case float():
            return _double(value)
        case datetime():
            return _quoted(value.isoformat(sep=" "))
        case int() | date():
            return str(value)
        case _:
            return _quoted(str(value))


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"


def _key(text: str) -> str:
    return text if _PLAIN_KEY.fullmatch(text) and text.lower() not in _WORDS else _quoted(text)


def _quoted(text: str) -> str:
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter.isprintable():
        return json.dumps(letter, ensure_ascii=False)[1:-1]
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
