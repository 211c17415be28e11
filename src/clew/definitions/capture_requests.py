"""Captures requested for a run: in a file, on the command line, or in Python. All are read the same way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from clew.deferred import dataclass
from clew.definitions.capture_masks import MASK, Mask
from clew.definitions.data_nodes import node_of
from clew.definitions.kinds import read_source
from clew.definitions.nodes import ListNode, Node, ScalarNode
from clew.definitions.settings import CaptureMode
from clew.definitions.shapes import (
    NAME,
    Choice,
    JsonSchema,
    ListOf,
    Located,
    MapOf,
    Record,
    Shape,
    Whole,
    key,
    problems_in,
    record,
    refused,
)
from clew.definitions.yaml_nodes import read_yaml
from clew.diagnostics import Diagnostic, did_you_mean, raise_if_any
from clew.diagnostics.codes.workspace import INVALID_VALUE

ALL = "ALL"
"""Stands for every column."""


@dataclass(frozen=True, slots=True)
class _Columns(Shape[tuple[str, ...]]):
    """Names and patterns of columns, or ALL."""

    def read(self, node: Node) -> tuple[str, ...]:
        """The patterns; `*` for ALL."""
        if isinstance(node, ScalarNode):
            if node.text != ALL:
                raise refused(node, "ALL or a list of columns")
            return ("*",)
        return ListOf(NAME, "columns").read(node)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A word or a list."""
        return {"anyOf": [{"const": ALL}, ListOf(NAME, "columns").schema(definitions)]}


@record("the limits of a capture")
class WishedLimits(Located):
    """How large a capture may be. The environment sets the default for omitted limits."""

    max_bytes: int | None = key(Whole(1), "The most bytes.", default=None)
    max_rows: int | None = key(Whole(1), "The most rows.", default=None)
    max_columns: int | None = key(Whole(1), "The most columns.", default=None)

    def to_data(self) -> dict[str, object]:
        """As they are written."""
        return {"max_bytes": self.max_bytes, "max_rows": self.max_rows, "max_columns": self.max_columns}


@record("the sample of a capture")
class WishedSample(Located):
    """How many rows a sample has."""

    rows: int = key(Whole(1), "How many rows to keep.", default=200)

    def to_data(self) -> dict[str, object]:
        """As it is written."""
        return {"rows": self.rows}


@record("a capture")
class CaptureWish(Located):
    """A breakpoint, and what to keep of the rows there."""

    breakpoint: str = key(NAME, "The full name of a breakpoint, or its label if that is unique; * for all.")
    mode: CaptureMode | None = key(
        Choice(CaptureMode), "What to keep; by default as much as the environment allows by default.", default=None
    )
    limits: WishedLimits = key(Record(WishedLimits), "How large it may be.", default_factory=WishedLimits)
    sample: WishedSample = key(Record(WishedSample), "How many rows a sample has.", default_factory=WishedSample)
    include_columns: tuple[str, ...] = key(_Columns(), "ALL, or names and patterns of columns.", default=("*",))
    exclude_columns: tuple[str, ...] = key(_Columns(), "Names and patterns of columns to leave out.", default=())
    mask: Mapping[str, Mask] = key(MapOf(MASK, "masks by column"), "Columns to mask.", default_factory=dict)
    ttl_days: int | None = key(Whole(1), "Days until it is deleted; by default as the environment says.", default=None)
    store: str | None = key(
        NAME, "A capture_store of the environment; by default the environment's own storage.", default=None
    )

    def to_data(self) -> dict[str, object]:
        """What `capture_wishes_of_data` reads as the same wish, in values that JSON has."""
        return {
            "breakpoint": self.breakpoint,
            "mode": self.mode.value if self.mode is not None else None,
            "limits": self.limits.to_data(),
            "sample": self.sample.to_data(),
            "include_columns": list(self.include_columns),
            "exclude_columns": list(self.exclude_columns),
            "mask": {column: mask.to_data() for column, mask in self.mask.items()},
            "ttl_days": self.ttl_days,
            "store": self.store,
        }


@record("a file of captures")
class CaptureFile(Located):
    """The captures requested for a run."""

    captures: tuple[CaptureWish, ...] = key(ListOf(Record(CaptureWish), "captures"), "The captures.")


def capture_wishes_of_file(path: Path, root: Path) -> tuple[CaptureWish, ...]:
    """The captures that a YAML file lists. UserError with everything that is wrong."""
    tree = read_yaml(read_source(path, root))
    raise_if_any(tree.diagnostics)
    if tree.root is None:
        return ()
    wanted = Record(CaptureFile).read(tree.root)
    raise_if_any(problems_in(wanted))
    return wanted.captures


CaptureData = str | Mapping[str, object]
"""A capture in Python: NAME, NAME=MODE, or a mapping with the keys of a file."""


def capture_wishes_of_data(
    data: CaptureData | Sequence[CaptureData], origin: Literal["captures", "--capture"]
) -> tuple[CaptureWish, ...]:
    """Captures from Python data, or from words of the command line. UserError with everything that is wrong."""
    listed = [data] if isinstance(data, str | Mapping) or not isinstance(data, Iterable) else list(data)
    raise_if_any(problem for each in listed for problem in _problems(each, origin))
    nodes = [node_of(_spelled_out(each), f"<{origin}>") for each in listed]
    whole = ListNode(nodes[0].source, 0, 0, nodes) if nodes else None
    return ListOf(Record(CaptureWish), "captures").read(whole) if whole is not None else ()


def _problems(each: object, origin: str) -> Iterator[Diagnostic]:
    """What is wrong with a word, which has no place that a message could name."""
    if isinstance(each, Mapping):
        return
    name, equals, mode = each.partition("=") if isinstance(each, str) else ("", "", "")
    if not name or (equals and not mode):
        option = "--capture " if origin == "--capture" else ""
        hint = f"write {option}BREAKPOINT or {option}BREAKPOINT=MODE"
        shown = f'"{each}"' if isinstance(each, str) else repr(each)
        yield INVALID_VALUE.anywhere(problem=f"{shown} is not a capture", hint=hint)
    elif mode and mode not in set(CaptureMode):
        hint = did_you_mean(mode, CaptureMode) or f"it is one of {', '.join(CaptureMode)}"
        yield INVALID_VALUE.anywhere(problem=f'no capture mode "{mode}"', hint=hint)


def _spelled_out(each: CaptureData) -> Mapping[str, object]:
    if isinstance(each, Mapping):
        return each
    name, _, mode = each.partition("=")
    return {"breakpoint": name, "mode": mode or None}
