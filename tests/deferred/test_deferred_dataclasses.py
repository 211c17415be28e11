"""A deferred dataclass is the one that the standard library would have made, and costs nothing until it is used."""

import copy
import dataclasses
import inspect
import pickle
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.deferred import dataclass

T = TypeVar("T")


def declared(*, frozen: bool, kw_only: bool, eq: bool, parts: list[tuple[str, object]]) -> tuple[Any, Any]:
    """The same declaration, made by the standard library and deferred."""

    def body() -> dict[str, object]:
        namespace: dict[str, object] = {"__annotations__": {name: object for name, _ in parts}, "__doc__": "A class."}
        given_ = {name: default for name, default in parts if default is not None}
        return (
            namespace
            | {"KIND": "kind"}
            | {n: copy.copy(d) if isinstance(d, dataclasses.Field) else d for n, d in given_.items()}
        )

    standard: Any = dataclasses.dataclass
    making: Any = dataclass
    options = {"frozen": frozen, "kw_only": kw_only, "eq": eq, "slots": True}
    return standard(**options)(type("Row", (), body())), making(**options)(type("Row", (), body()))


def defaults() -> st.SearchStrategy[object]:
    return st.one_of(
        st.integers(0, 3),
        st.builds(lambda: field(default_factory=list)),
        st.builds(lambda: field(default=1, repr=False)),
        st.builds(lambda: field(default=2, compare=False)),
        st.builds(lambda: field(default=3, init=False)),
        st.builds(lambda: field(default_factory=dict, init=False)),
        st.builds(lambda: field(default=4, kw_only=True)),
        st.builds(lambda: field(default=5, hash=False)),
    )


def outcome(call: Callable[..., object], *values: object, **named: object) -> Any:
    try:
        return call(*values, **named)
    except (TypeError, AttributeError) as error:
        return type(error), re.sub(r"_?self", "self", str(error))


@given(data=st.data(), frozen=st.booleans(), kw_only=st.booleans(), eq=st.booleans())
def test_it_is_the_class_that_the_standard_library_makes(
    data: st.DataObject, frozen: bool, kw_only: bool, eq: bool
) -> None:
    required = data.draw(st.integers(0, 2))
    optional = data.draw(st.lists(defaults(), max_size=3))
    parts: list[tuple[str, object]] = [(f"r{n}", None) for n in range(required)]
    parts += [(f"o{n}", default) for n, default in enumerate(optional)]
    theirs, ours = declared(frozen=frozen, kw_only=kw_only, eq=eq, parts=parts)
    places = data.draw(st.lists(st.integers(0, 2), max_size=4))
    named = data.draw(st.dictionaries(st.sampled_from([name for name, _ in parts] + ["unknown"]), st.integers(0, 2)))
    made = [outcome(cls, *places, **named) for cls in (theirs, ours)]
    if isinstance(made[0], tuple):
        assert made[1] == made[0]
        return
    left, right = made
    others = [replace(each) if all(f.init for f in fields(each)) else copy.copy(each) for each in made]
    assert repr(right) == repr(left)
    assert (right == others[1]) == (left == others[0])
    assert (right == left) is False
    seen = [outcome(lambda each: hash(each) == hash(copy.copy(each)), each) for each in made]
    assert seen[0] == seen[1]
    for name in [*(name for name, _ in parts), "other"]:
        for change, values in ((setattr, (name, 7)), (delattr, (name,))):
            kinds = [isinstance(outcome(change, each, *values), tuple) for each in made]
            assert kinds[0] == kinds[1]
    assert theirs.__slots__ == ours.__slots__
    assert theirs.__match_args__ == ours.__match_args__
    described = [[(f.name, f.init, f.repr, f.compare, f.kw_only) for f in fields(cls)] for cls in (theirs, ours)]
    assert described[0] == described[1]
    assert [p.kind for p in inspect.signature(ours).parameters.values()] == [
        p.kind for p in inspect.signature(theirs).parameters.values()
    ]


@dataclass(frozen=True, slots=True)
class Point:
    """A class of this module, for pickle."""

    x: int
    y: int = 2
    KIND: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@dataclass(frozen=True, slots=True)
class Place(Point):
    """With a base that has fields."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Unused:
    """Never made by another test."""

    x: int


def is_made(cls: type) -> bool:
    return isinstance(cls.__dict__["__dataclass_fields__"], dict)


def test_nothing_is_made_before_it_is_used() -> None:
    assert not is_made(Unused)
    Unused(1)
    assert is_made(Unused)


@pytest.mark.parametrize(
    "use",
    [
        is_dataclass,
        fields,
        inspect.signature,
        lambda cls: cls.__match_args__,
        lambda cls: object.__new__(cls) == 1,
        lambda cls: outcome(hash, object.__new__(cls)),
        lambda cls: outcome(repr, object.__new__(cls)),
        lambda cls: outcome(setattr, object.__new__(cls), "x", 1),
    ],
)
def test_every_way_to_use_a_class_makes_it(use: Callable[[type], object]) -> None:
    @dataclass(frozen=True, slots=True)
    class Row:
        x: int

    use(Row)
    assert Row(1) == Row(1)
    assert repr(Row(1)).endswith("Row(x=1)")
    assert list(inspect.signature(Row).parameters) == ["x"]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        Row(1).x = 2  # type: ignore[misc]


def test_objects_survive_pickle_copy_and_matching() -> None:
    place = Place(1, name="here")
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place
    assert replace(place, x=4) == Place(4, 2, "here")
    match place:
        case Place(x, y, name):
            assert (x, y, name) == (1, 2, "here")
    with pytest.raises(ValueError, match="negative"):
        Place(-1)
    assert [each.name for each in fields(Place)] == ["x", "y", "name"]
    assert Place.KIND == "point"


def test_generic_and_abstract_classes_stay_what_they_are() -> None:
    class Named(ABC):
        __slots__ = ()

        @abstractmethod
        def named(self) -> str: ...

    @dataclass(frozen=True, slots=True)
    class Box(Named, Generic[T]):
        name: str
        content: T

        def named(self) -> str:
            return self.name

    @dataclass(slots=True, eq=False)
    class Unnamed(Named):
        x: int

    assert Box[int]("a", 1) == Box("a", 1)
    with pytest.raises(TypeError, match="abstract"):
        Unnamed(1)  # type: ignore[abstract]


def test_threads_that_need_a_class_at_once_all_get_it() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Row:
            x: int
            y: list[int] = field(default_factory=list)

        rows: list[object] = []
        start = threading.Barrier(4)

        def work(cls: type = Row, rows: list[object] = rows, start: threading.Barrier = start) -> None:
            start.wait()
            rows.append(cls(1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert rows == [Row(1)] * 4
