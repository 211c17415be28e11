"""The decorator: makes the class with its slots at once, and the methods when they are first needed."""

import dataclasses
import threading
from collections.abc import Callable, Iterable
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

_FIELDS = "__dataclass_fields__"
_PARAMETERS = "__dataclass_params__"
_MATCHED = "__match_args__"
_SIGNATURE = "__signature__"
"""Asked for by `inspect.signature`, which then finds the real `__init__`."""
_OPTIONS = frozenset({"frozen", "slots", "kw_only", "eq"})
_OWN = frozenset({"__init__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__slots__"})
"""Classes that define one of these, or are declared with other options, are made by the standard library at once."""
_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")

_lock = threading.RLock()
"""Held while methods are made: two threads may need them at the same time, and a class needs those of its bases."""


def dataclass(declared: type[T] | None = None, /, **options: bool) -> Any:  # noqa: ANN401 - checkers see another one
    """Like `dataclasses.dataclass`, with the same options."""

    def decorate(cls: type[T]) -> type[T]:
        names = _names(cls) if options.get("slots") and options.keys() <= _OPTIONS else None
        return dataclasses.dataclass(**options)(cls) if names is None else _slotted(cls, names, options)

    return decorate if declared is None else decorate(declared)


def _names(cls: type) -> tuple[str, ...] | None:
    """The fields that a class declares; None if it has something that is left to the standard library."""
    if not _OWN.isdisjoint(cls.__dict__):
        return None
    if any(_FIELDS in base.__dict__ and "__slots__" not in base.__dict__ for base in cls.__mro__[1:-1]):
        return None
    names = list[str]()
    for name, annotation in get_annotations(cls).items():
        if annotation is dataclasses.KW_ONLY or isinstance(annotation, dataclasses.InitVar):
            return None
        if isinstance(annotation, str) and any(word in annotation for word in _SPECIAL):
            return None
        if getattr(annotation, "__origin__", annotation) is not ClassVar:
            names.append(name)
    return tuple(names)


def _slotted(declared: type[T], names: tuple[str, ...], options: dict[str, bool]) -> type[T]:
    """The class with slots, as the standard library makes it, and with stand-ins for its methods."""
    inherited = {slot for base in declared.__mro__[1:-1] for slot in _slots(base)}
    namespace: dict[str, Any] = {name: value for name, value in declared.__dict__.items() if name not in names}
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    if options.get("frozen"):
        namespace["__setattr__"] = _refuse_setting
        namespace["__delattr__"] = _refuse_deleting
        namespace.setdefault("__getstate__", _state)
        namespace.setdefault("__setstate__", _restore)
    made_by: Any = type(declared)
    made: type[T] = made_by(declared.__name__, declared.__bases__, namespace)
    made.__qualname__ = declared.__qualname__
    _Later(made, declared, options).stand_in()
    return made


def _slots(cls: type) -> Iterable[str]:
    slots: str | Iterable[str] = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


class _Later:
    """The methods of one class, not yet made."""

    def __init__(self, cls: type, declared: type, options: dict[str, bool]) -> None:
        self._cls = cls
        self._declared: type | None = declared
        self._is_frozen = options.get("frozen", False)
        self._is_compared = options.get("eq", True)
        self._is_by_name = options.get("kw_only", False)

    def stand_in(self) -> None:
        """Give the class methods that make the real ones and call them."""
        cls: Any = self._cls
        make = self._make

        def __init__(self: object, *values: object, **named: object) -> None:  # noqa: N807
            make()
            cls.__init__(self, *values, **named)

        def __repr__(self: object) -> object:  # noqa: N807
            make()
            return cls.__repr__(self)

        def __eq__(self: object, other: object) -> object:  # noqa: N807
            make()
            return cls.__eq__(self, other)

        def __hash__(self: object) -> object:  # noqa: N807
            make()
            return cls.__hash__(self)

        stand_ins: dict[str, object] = {"__init__": __init__}
        if "__repr__" not in cls.__dict__:
            stand_ins["__repr__"] = __repr__
        if self._is_compared:
            stand_ins["__eq__"] = __eq__
            stand_ins["__hash__"] = __hash__ if self._is_frozen else None
        stand_ins |= {name: _Asked(name, cls, make) for name in (_FIELDS, _PARAMETERS, _MATCHED, _SIGNATURE)}
        for name, value in stand_ins.items():
            setattr(cls, name, value)

    def _make(self) -> None:
        """Let the standard library find the fields of the class as it was declared, and make methods for them."""
        with _lock:
            declared, cls = self._declared, self._cls
            if declared is None:
                return
            declared.__doc__ = declared.__doc__ or cls.__name__  # or it is made up, from a signature
            bases = [base for base in declared.__mro__[1:] if hasattr(base, _FIELDS)]
            is_frozen = any(getattr(base, _PARAMETERS).frozen for base in bases)
            found: Any = dataclasses.dataclass(
                init=False, repr=False, eq=False, kw_only=self._is_by_name, frozen=is_frozen
            )(declared)
            parameters = getattr(found, _PARAMETERS)
            parameters.init, parameters.repr = True, True
            parameters.eq, parameters.frozen = self._is_compared, self._is_frozen
            fields = dataclasses.fields(found)
            methods: dict[str, object] = {_PARAMETERS: parameters, _MATCHED: getattr(found, _MATCHED)}
            if "__repr__" not in declared.__dict__:
                methods["__repr__"] = _representing(fields)
            if self._is_compared:
                methods["__eq__"] = _comparing(fields)
                methods["__hash__"] = _hashing(fields) if self._is_frozen else None
            methods[_FIELDS] = getattr(found, _FIELDS)
            methods["__init__"] = _initialising(cls, fields, self._is_frozen)
            for name, value in methods.items():
                setattr(cls, name, value)
            delattr(cls, _SIGNATURE)
            self._declared = None


class _Asked:
    """An attribute of the class that is made with its methods."""

    __slots__ = ("_cls", "_make", "_name")

    def __init__(self, name: str, cls: type, make: Callable[[], None]) -> None:
        self._name = name
        self._cls = cls
        self._make = make

    def __get__(self, _instance: object, _owner: type) -> object:
        self._make()
        if self._name == _SIGNATURE:
            raise AttributeError(self._name)
        return getattr(self._cls, self._name)


_Fields = tuple[dataclasses.Field[Any], ...]


def _initialising(cls: type, fields: _Fields, is_frozen: bool) -> object:
    """An `__init__` that sets all fields: the one method that must be compiled, for its arguments."""
    known: dict[str, object] = {"_set": object.__setattr__, "_missing": dataclasses.MISSING}
    by_place, by_name, lines = list[str](), list[str](), list[str]()
    for each in fields:
        name, value = each.name, each.name
        has_factory = each.default_factory is not dataclasses.MISSING
        known[f"_default_{name}"] = each.default_factory if has_factory else each.default
        if each.init:
            is_optional = has_factory or each.default is not dataclasses.MISSING
            default = "=_missing" if has_factory else f"=_default_{name}" if is_optional else ""
            (by_name if each.kw_only else by_place).append(name + default)
            if has_factory:
                value = f"_default_{name}() if {name} is _missing else {name}"
        elif has_factory:
            value = f"_default_{name}()"
        elif each.default is not dataclasses.MISSING:
            value = f"_default_{name}"
        else:
            continue
        lines.append(f"_set(_self, {name!r}, {value})" if is_frozen else f"_self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("_self.__post_init__()")
    taken = ", ".join(["_self", *by_place, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({taken}):\n  " + "\n  ".join(lines or ["pass"]), known)  # noqa: S102 - as dataclasses does
    made: Any = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    made.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    return made


def _comparing(fields: _Fields) -> object:
    values = _values(each.name for each in fields if each.compare)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashing(fields: _Fields) -> object:
    values = _values(each.name for each in fields if (each.compare if each.hash is None else each.hash))

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _representing(fields: _Fields) -> object:
    names = [each.name for each in fields if each.repr]

    def __repr__(self: object) -> str:  # noqa: N807
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return recursive_repr()(__repr__)


def _values(names: Iterable[str]) -> Callable[[object], tuple[object, ...]]:
    """What takes the values of fields from an object, as a tuple: equality of tuples begins with identity."""
    match tuple(names):
        case ():
            return lambda _: ()
        case (name,):
            return lambda each: (getattr(each, name),)
        case several:
            return attrgetter(*several)


def _refuse_setting(self: object, name: str, value: object) -> None:
    if _is_field(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deleting(self: object, name: str) -> None:
    if _is_field(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_field(of: Any, name: str) -> bool:  # noqa: ANN401 - any object with slots
    """Whether an attribute is frozen. A class that adds its own to a frozen one may set those."""
    return _FIELDS in type(of).__dict__ or name in getattr(type(of), _FIELDS)


def _state(self: Any) -> list[object]:  # noqa: ANN401 - any object with fields
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:  # noqa: ANN401 - any object with fields
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
