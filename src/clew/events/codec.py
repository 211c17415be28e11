"""Frozen dataclasses to JSON values and back, driven by their annotations.

Stored names are the field names of the classes, so renaming a field is a new version of its event and an upcaster.
A field that is absent in the data takes its default.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_Decoder = Callable[[Any], Any]


def canonical_json(value: object) -> str:
    """The one text of a JSON value: the same value always gives the same text, so that it can be hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def encode(value: Any) -> Any:  # noqa: ANN401 -- JSON values have no narrower type
    """A value as JSON knows it. Moments are written in UTC with microseconds."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be stored")


def decode(cls: type[T], data: object) -> T:
    """The value of a class that `encode` gave."""
    annotation: Any = cls
    return cast(T, _decoder(annotation)(data))


def iso(moment: datetime) -> str:
    """A moment as text that sorts like the moments do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: str) -> datetime:
    """The moment of a text that `iso` gave."""
    return datetime.fromisoformat(text)


def _same(data: Any) -> Any:  # noqa: ANN401
    return data


@cache
def _decoder(annotation: Any) -> _Decoder:  # noqa: ANN401
    """How to read what an annotation promises. Worked out once per annotation: histories are long."""
    origin = get_origin(annotation)
    if origin in {Union, UnionType}:
        return _optional(next(arg for arg in get_args(annotation) if arg is not NoneType))
    if origin is tuple:
        return _tuple(get_args(annotation))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(annotation)[1])
    if is_dataclass(annotation):
        return _dataclass(cast(type, annotation))
    if annotation is datetime:
        return moment_of
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return annotation
    return _same


def _optional(inner: Any) -> _Decoder:  # noqa: ANN401
    read = _decoder(inner)
    return lambda data: None if data is None else read(data)


def _tuple(arguments: tuple[Any, ...]) -> _Decoder:
    read = _decoder(arguments[0])
    return lambda data: tuple([read(item) for item in data])


def _mapping(value_type: Any) -> _Decoder:  # noqa: ANN401
    read = _decoder(value_type)
    if read is _same:
        return dict
    return lambda data: {key: read(item) for key, item in data.items()}


def _dataclass(cls: type) -> _Decoder:
    hints = get_type_hints(cls)
    readers = {field.name: _decoder(hints[field.name]) for field in fields(cls)}
    required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}

    def read(data: Any) -> Any:  # noqa: ANN401
        missing = required - data.keys()
        if missing:
            raise ValueError(f"{cls.__name__} lacks {', '.join(sorted(missing))}")
        return cls(**{name: reader(data[name]) for name, reader in readers.items() if name in data})

    return read
